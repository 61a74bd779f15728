// Calls of the native API. The cookie goes with them by itself; calls that change something also send the key of the page.
import { useSyncExternalStore } from "react";
import type { components } from "./schema";

type Schemas = components["schemas"];
/** `retried_by`: the last job that was made by retrying it. */
export type Job = Schemas["Job"] & { retried_by?: string | null };
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
export type LogPage = Schemas["LogPage"];
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
const moved = new Set<() => void>();

/** The namespace that is shown: the one in the address. */
export const here = () => namespace;
export const useNamespace = () =>
  useSyncExternalStore((watcher) => {
    moved.add(watcher);
    return () => void moved.delete(watcher);
  }, here);
export function setPageKey(key: string | null) {
  pageKey = key;
}
export function setNamespace(name: string) {
  namespace = name;
  localStorage.setItem("windlass.namespace", name);
  moved.forEach((watcher) => watcher());
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

/** JSON as it is sent and shown: a number that JavaScript cannot hold is written as it came. */
export function toJson(value: unknown, indent?: number): string {
  // No text that anyone wrote contains it.
  const mark = crypto.getRandomValues(new Uint32Array(4)).join("-");
  const marked = JSON.stringify(value, (_, part) => (part instanceof RawNumber ? `${mark}${part.text}${mark}` : part), indent) ?? "";
  return marked.replaceAll(`"${mark}`, "").replaceAll(`${mark}"`, "");
}

export const fromJson = (text: string): unknown => JSON.parse(text, keepNumbers as never);

function keepNumbers(_: string, value: unknown, context?: { source?: string }): unknown {
  const source = context?.source;
  return typeof value === "number" && source !== undefined && !Number.isSafeInteger(value) && String(value) !== source
    ? new RawNumber(source)
    : value;
}

/** What is read is asked for again as soon as the server answers; what was to be changed is not. */
const UNREACHABLE = {
  read: "The server cannot be reached. This page tries again by itself.",
  change: "The server cannot be reached. If it stopped while it answered, this may have been done: look before you try again.",
};

export async function call<T>(method: string, path: string, { query, body, signal, anywhere }: Call = {}): Promise<T> {
  const headers: Record<string, string> = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (method !== "GET" && pageKey) headers["Windlass-Page-Key"] = pageKey;
  const request = { method, headers, body: body === undefined ? undefined : toJson(body), signal };
  let response: Response;
  try {
    response = await fetch(address(path, query, anywhere), request);
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Refused(0, { detail: UNREACHABLE[method === "GET" ? "read" : "change"] });
  }
  const text = await response.text();
  if (!response.ok) {
    if (response.status === 401 && path !== "session") onSignedOut();
    throw new Refused(response.status, parse(text) ?? {});
  }
  return (text ? fromJson(text) : undefined) as T;
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
/** One that was retried before is retried once more only if that is said. */
export const retryJob = (job: Job) => post<{ id: string }>(`jobs/${job.id}/retry`, {}, { again: job.retried_by || job.retried_as ? true : undefined });
export const segment = encodeURIComponent;
