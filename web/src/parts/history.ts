// The history of this tab: what each of its entries remembers, so that Back shows a page as it was left.
import { createBrowserHistory } from "@tanstack/react-router";
import { useState } from "react";
import { base, here, setNamespace } from "../api/client";

/** Entries hold at most this many lists of jobs: each may be large. */
const LARGE_MAX = 3;
/** A page that is not there after this is not scrolled any more. */
const SCROLL_MS = 3000;

const inside = (pathname: string) => (pathname.startsWith(base.pathname) ? pathname.slice(base.pathname.length) : "");
export const pathOf = (namespace: string) => `${base.pathname}n/${encodeURIComponent(namespace)}`;

/** The namespace that an address names. */
function namespaceOf(pathname: string): string | undefined {
  const found = /^n\/([^/]+)/.exec(inside(pathname))?.[1];
  try {
    return found && decodeURIComponent(found);
  } catch {
    return found;
  }
}

/** Whether the address that was opened names a namespace. If not, it is the one that was looked at last. */
export const wasNamed = namespaceOf(location.pathname) !== undefined;
if (wasNamed) setNamespace(namespaceOf(location.pathname)!);
else history.replaceState(history.state, "", `${pathOf(here())}/${inside(location.pathname)}`.replace(/\/$/, "") + location.search + location.hash);

export const browserHistory = createBrowserHistory();
const entryOf = () => browserHistory.location.state.__TSR_index ?? 0;

const kept = new Map<number, Map<string, unknown>>();

export function remember(entry: number, name: string, value: unknown) {
  let names = kept.get(entry);
  if (!names) kept.set(entry, (names = new Map()));
  names.set(name, value);
}

/** Like `remember`, but what many entries hold of it is forgotten. */
export function rememberLarge(entry: number, name: string, value: unknown) {
  remember(entry, name, value);
  const holders = [...kept].filter(([, names]) => names.has(name)).sort(([a], [b]) => Math.abs(a - entry) - Math.abs(b - entry));
  holders.slice(LARGE_MAX).forEach(([, names]) => names.delete(name));
}

export const recall = <T>(entry: number, name: string) => kept.get(entry)?.get(name) as T | undefined;

/** The entry that a page was opened in. A page that is shown again without being made anew needs a key that changes with it. */
export const useEntry = () => useState(entryOf)[0];

/** State that a page has again when one comes back to it. */
export function useKept<T>(name: string, initial: T) {
  const entry = useEntry();
  const [value, setValue] = useState<T>(() => recall<T>(entry, name) ?? initial);
  const set = (next: T) => {
    remember(entry, name, next);
    setValue(next);
  };
  return [value, set] as const;
}

const main = () => document.getElementById("main");
let scrolling = 0;

/** Scrolls there as soon as the page is high enough, unless its reader scrolls first. */
function scrollTo(top: number) {
  const until = performance.now() + SCROLL_MS;
  const mine = ++scrolling;
  const step = () => {
    const element = main();
    if (mine !== scrolling || performance.now() > until) return;
    if (element) element.scrollTop = top;
    if (!element || Math.abs(element.scrollTop - top) > 1) requestAnimationFrame(step);
  };
  step();
}
for (const kind of ["wheel", "touchstart", "pointerdown", "keydown"]) addEventListener(kind, () => scrolling++, { passive: true, capture: true });

let last = entryOf();
browserHistory.subscribe(({ location, action }) => {
  const entry = entryOf();
  if (action.type !== "REPLACE") {
    remember(last, "top", main()?.scrollTop ?? 0);
    if (action.type === "PUSH") for (const at of [...kept.keys()]) if (at >= entry) kept.delete(at);
    scrollTo(recall<number>(entry, "top") ?? 0);
  }
  last = entry;
  const namespace = namespaceOf(location.pathname);
  if (namespace !== undefined && namespace !== here()) setNamespace(namespace);
});

/** Shows a page in another namespace. */
export function goTo(namespace: string, page = "", replace = false) {
  const path = pathOf(namespace) + (page && `/${page}`);
  if (replace) browserHistory.replace(path);
  else browserHistory.push(path);
}

/** The page that is shown, without what it shows of it: a job of one namespace is not in another. */
export const listShown = () => inside(location.pathname).split("/")[2] ?? "";
