// What differs between two values, line by line.
import { toJson } from "../api/client";
import { clean } from "./text";

const LINES_MAX = 600;

type Line = { kind: "same" | "out" | "in"; text: string };

/** By the longest common subsequence; of long texts only the beginning is compared. */
export function lines(from: string[], to: string[]): Line[] {
  const width = to.length + 1;
  const table = new Uint16Array((from.length + 1) * width);
  for (let a = from.length - 1; a >= 0; a--) {
    for (let b = to.length - 1; b >= 0; b--) {
      table[a * width + b] = from[a] === to[b] ? table[(a + 1) * width + b + 1] + 1 : Math.max(table[(a + 1) * width + b], table[a * width + b + 1]);
    }
  }
  const found: Line[] = [];
  let [a, b] = [0, 0];
  while (a < from.length || b < to.length) {
    if (a < from.length && b < to.length && from[a] === to[b]) {
      found.push({ kind: "same", text: from[a++] });
      b++;
    } else if (b >= to.length || (a < from.length && table[(a + 1) * width + b] >= table[a * width + b + 1])) {
      found.push({ kind: "out", text: from[a++] });
    } else found.push({ kind: "in", text: to[b++] });
  }
  return found;
}

const text = (value: unknown) => (typeof value === "string" ? value : toJson(value, 2)).split("\n").slice(0, LINES_MAX);

export function Diff({ from, to }: { from: unknown; to: unknown }) {
  return (
    <pre className="diff" tabIndex={0}>
      {lines(text(from), text(to)).map((line, index) => (
        <div key={index} className={line.kind}>
          {{ same: "  ", out: "- ", in: "+ " }[line.kind]}
          {clean(line.text).slice(0, 500)}
        </div>
      ))}
    </pre>
  );
}
