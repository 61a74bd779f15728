// The keyboard: what each key does is said in one place, where `?` shows it.
import { useEffect, useRef } from "react";

type Handler = (key: string) => boolean | void;
const handlers: Handler[] = [];

const typing = (target: EventTarget | null) =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  // What a dialog asks is answered first.
  if (document.querySelector("dialog[open]")) return;
  if (typing(event.target)) {
    if (event.key === "Escape") (event.target as HTMLElement).blur();
    return;
  }
  for (const handler of [...handlers].reverse()) {
    if (handler(event.key)) {
      event.preventDefault();
      return;
    }
  }
});

/** The handler that came last is asked first; true: it was its key. */
export function useKeys(handler: Handler) {
  const latest = useRef(handler);
  latest.current = handler;
  useEffect(() => {
    const mine: Handler = (key) => latest.current(key);
    handlers.push(mine);
    return () => void handlers.splice(handlers.indexOf(mine), 1);
  }, []);
}

export const KEYS: [string, string][] = [
  ["/", "Search or filter"],
  ["j  k", "Next and previous row"],
  ["Enter", "Open the row"],
  ["x", "Choose the row"],
  ["g then o, j, r, w, d, s, e", "Go to overview, jobs, runs, workers, definitions, schedules, events"],
  ["f", "Follow the log"],
  ["?", "This list"],
  ["Esc", "Leave a field, a dialog or the row"],
];
