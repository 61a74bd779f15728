// JSON to look at: folded where it is long, with everything in it as text.
import { useState } from "react";
import { RawNumber, toJson } from "../api/client";
import { Copy } from "./basics";
import { clean } from "./text";

const TEXT_MAX = 500;
/** More in one place stops the browser, and nobody reads it. */
const WHOLE_MAX = 1_000_000;
const MEMBERS = 100;
const OPEN_DEPTH = 2;

export function Json({ value, name }: { value: unknown; name: string }) {
  return (
    <div className="json" role="group" aria-label={name}>
      <div className="json-side">
        <Copy text={() => toJson(value, 2)} />
      </div>
      <Value value={value} depth={0} />
    </div>
  );
}

function Value({ value, depth }: { value: unknown; depth: number }) {
  if (value instanceof RawNumber) return <span className="json-number">{value.text}</span>;
  if (typeof value === "string") return <Text text={value} />;
  if (value === null || typeof value !== "object") {
    return <span className={`json-${typeof value}`}>{String(value)}</span>;
  }
  return <Members of={value as object} depth={depth} />;
}

function Text({ text }: { text: string }) {
  const [whole, setWhole] = useState(false);
  const long = text.length > TEXT_MAX;
  return (
    <span className="json-string">
      "{clean(long && !whole ? text.slice(0, TEXT_MAX) : text.slice(0, WHOLE_MAX))}"
      {whole && text.length > WHOLE_MAX && <span className="quiet"> The first {WHOLE_MAX.toLocaleString("en")} are shown; copying copies all.</span>}
      {long && (
        <button className="small" onClick={() => setWhole(!whole)}>
          {whole ? "less" : `… all ${text.length.toLocaleString()} characters`}
        </button>
      )}
    </span>
  );
}

function Members({ of, depth }: { of: object; depth: number }) {
  const list = Array.isArray(of);
  const keys = Object.keys(of);
  const [open, setOpen] = useState(depth < OPEN_DEPTH && keys.length <= MEMBERS);
  const [shown, setShown] = useState(MEMBERS);
  const [left, right] = list ? ["[", "]"] : ["{", "}"];
  if (keys.length === 0) return <>{left + right}</>;
  return (
    <>
      <button className="fold" aria-expanded={open} onClick={() => setOpen(!open)}>
        {open ? "▾" : "▸"} {left}
        {!open && ` ${keys.length} ${right}`}
      </button>
      {open && (
        <>
          <ul>
            {keys.slice(0, shown).map((key) => (
              <li key={key}>
                {!list && <span className="json-key">{clean(key)}: </span>}
                <Value value={(of as Record<string, unknown>)[key]} depth={depth + 1} />
              </li>
            ))}
          </ul>
          {keys.length > shown && (
            <button className="small" onClick={() => setShown(shown + 1000)}>
              {keys.length - shown} more
            </button>
          )}
          {right}
        </>
      )}
    </>
  );
}
