// Short messages about what was done, read aloud by screen readers.
import { useSyncExternalStore } from "react";

type Line = { key: number; text: string; kind: "good" | "bad" };
let lines: Line[] = [];
let last = 0;
const watchers = new Set<() => void>();
const change = (next: Line[]) => {
  lines = next;
  watchers.forEach((watcher) => watcher());
};

export function say(text: string, kind: Line["kind"] = "good") {
  const key = ++last;
  change([...lines.slice(-3), { key, text, kind }]);
  setTimeout(() => change(lines.filter((line) => line.key !== key)), kind === "bad" ? 10_000 : 4000);
}

export function Said() {
  const shown = useSyncExternalStore(
    (watcher) => {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    () => lines,
  );
  return (
    <div className="said" role="status" aria-live="polite">
      {shown.map((line) => (
        <div key={line.key} className={line.kind}>
          {line.text}
        </div>
      ))}
    </div>
  );
}
