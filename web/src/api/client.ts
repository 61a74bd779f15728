// Calls of the native API. The cookie goes with them by itself; calls that change something also send the key of the page.
import type { components } from "./schema";

type Schemas = components["schemas"];
export type Job = Schemas["Job"];
export type Why = Schemas["Why"];
export type Run = Schemas["Run"];
export type Step = Schemas["Step"];
export type Worker = Schemas["Worker"];
export type Definition = Schemas["Definition"];
export type Schedule = Schemas["Schedule"];
export type Session = Schemas["Session"];
export type Problem = Schemas["Problem"];
export type Token = Schemas["Token"];
export type Event = Schemas["Event"];
export type Stats = Schemas["Stats"];
export type Overview = Schemas["Overview"];
export type JobCounts = Schemas["JobCounts"];
export type History = Schemas["History"];
export type DefinitionFigures = Schemas["DefinitionFigures"];
export type WorkerFigures = Schemas["WorkerFigures"];
export type LogMatches = Schemas["LogMatches"];
export type Settings = Schemas["Settings"];
export type Dialects = Schemas["Dialects"];
export type Item = Schemas["Item"];
export type BomRow = Schemas["BomRow"];
export type FeatureGraph = Schemas["Graph"];
export type Artifact = Schemas["Artifact"];
export type State = Job["state"];
export type Page<T> = { items: T[]; next?: string | null };

/** Where the dashboard lies, with the slash at its end; and the server it belongs to. */
export const base = new URL("./", document.baseURI);
export const root = new URL("../", base);

export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly problem: Partial<Problem>,
  ) {
    super(problem.detail || problem.title || `The server answered with status ${status}.`);
  }
}

type Query = Record<string, string | number | boolean | null | undefined>;
type Call = { query?: Query; body?: unknown; signal?: AbortSignal; anywhere?: boolean };

let pageKey: string | null = null;
let namespace = localStorage.getItem("windlass.namespace") || "default";
let onSignedOut = () => {};

export const here = () => namespace;
export function setPageKey(key: string | null) {
  pageKey = key;
}
export function setNamespace(name: string) {
  namespace = name;
  localStorage.setItem("windlass.namespace", name);
}
export function whenSignedOut(then: () => void) {
  onSignedOut = then;
}

/** The address of a call, in the namespace that is shown unless it concerns all of them. */
export function address(path: string, query: Query = {}, anywhere = false): string {
  const url = new URL(`api/v1/${path}`, root);
  if (!anywhere) url.searchParams.set("namespace", namespace);
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== "") url.searchParams.set(name, String(value));
  }
  return url.href;
}

/** A number that JavaScript cannot hold, as it was written. */
export class RawNumber {
  constructor(readonly text: string) {}
}

function keepNumbers(_: string, value: unknown, context?: { source?: string }): unknown {
  const source = context?.source;
  return typeof value === "number" && source !== undefined && !Number.isSafeInteger(value) && String(value) !== source
    ? new RawNumber(source)
    : value;
}

export async function call<T>(method: string, path: string, { query, body, signal, anywhere }: Call = {}): Promise<T> {
  const headers: Record<string, string> = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (method !== "GET" && pageKey) headers["Windlass-Page-Key"] = pageKey;
  const request = { method, headers, body: body === undefined ? undefined : JSON.stringify(body), signal };
  let response: Response;
  try {
    response = await fetch(address(path, query, anywhere), request);
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Refused(0, { detail: "The server cannot be reached. This page tries again by itself." });
  }
  const text = await response.text();
  if (!response.ok) {
    if (response.status === 401 && path !== "session") onSignedOut();
    throw new Refused(response.status, parse(text) ?? {});
  }
  return (text ? JSON.parse(text, keepNumbers as never) : undefined) as T;
}

function parse(text: string): Partial<Problem> | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export const get = <T>(path: string, query?: Query, signal?: AbortSignal) => call<T>("GET", path, { query, signal });
export const post = <T>(path: string, body: unknown = {}, query?: Query) => call<T>("POST", path, { body, query });
export const segment = encodeURIComponent;
