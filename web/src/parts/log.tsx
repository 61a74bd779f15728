// A job's log as it is written.
import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, useEffect, useMemo, useRef, useState } from "react";
import { address, get, type LogMatches } from "../api/client";
import { useLiveState } from "../api/live";
import { follow } from "../api/stream";
import { afterReturns, pieces } from "./ansi";
import { Empty } from "./basics";
import { useKeys } from "./keys";
import { levelOf, plain } from "./level";
import { clean } from "./text";

const LINE = 20;
/** Of a longer log the newest are held, and the server searches the rest. */
const LINES_MAX = 50_000;
const LINE_MAX = 10_000;

type Line = { at: string; text: string; stream: string; attempt: number; number: number; read?: { text: string; plain: string; level: string } };
type Piece = { at: string; worker_at?: string; data: string; stream?: string; attempt: number };

/** What a line says: worked out when it is first looked for, and again if it grew. */
function read(line: Line) {
  if (line.read?.text !== line.text) {
    const text = plain(line.text);
    line.read = { text: line.text, plain: text, level: line.stream === "windlass" ? "note" : levelOf(text) };
  }
  return line.read!;
}

/** Lines in order. A line is done when its end has come; until then it grows. */
class Lines {
  all: Line[] = [];
  dropped = 0;
  private count = 0;
  private open = false;
  /** The cursor is at the beginning of the line: what comes takes the place of what is there. */
  private returned = false;

  add(piece: Piece) {
    const parts = piece.data.split("\n");
    parts.forEach((part, index) => {
      const last = this.all.at(-1);
      const ends = index < parts.length - 1;
      if (index === 0 && this.open && last && last.stream === (piece.stream ?? "")) {
        const whole = last.text + (this.returned ? "\r" : "") + part;
        last.text = afterReturns(whole).slice(0, LINE_MAX);
        this.returned = whole.endsWith("\r");
      } else if (ends || part) {
        const at = piece.worker_at ?? piece.at;
        const stream = piece.stream ?? "";
        this.all.push({ at, text: afterReturns(part).slice(0, LINE_MAX), stream, attempt: piece.attempt, number: ++this.count });
        this.returned = part.endsWith("\r");
      }
    });
    this.open = parts.at(-1) !== "" || (this.open && parts.length === 1);
    if (this.all.length > LINES_MAX * 1.1) {
      this.dropped += this.all.length - LINES_MAX;
      this.all = this.all.slice(-LINES_MAX);
    }
  }
}

const FOUND_MAX = 2_000;
type Found = { lines: Line[]; searched: number; done: boolean; error?: string };

/** Lines that contain a text or have a level, found by the server, which has all of them. */
function useServerSearch(job: string, text: string, level: string): Found | undefined {
  const [found, setFound] = useState<Found>();
  // One that failed because the server was away is made again when it is back.
  const live = useLiveState();
  const again = found?.error ? live : "";
  useEffect(() => {
    setFound(undefined);
    if (!text && !level) return;
    const abort = new AbortController();
    const look = async () => {
      const lines: Line[] = [];
      let cursor: string | null | undefined;
      do {
        const page: LogMatches = await get(`jobs/${job}/logs/search`, { text: text.slice(0, 200), level, limit: 1000, cursor }, abort.signal);
        lines.push(...page.lines.map((one) => ({ at: one.at, text: afterReturns(one.text), stream: one.stream ?? "", attempt: one.attempt, number: one.line })));
        cursor = page.next;
        setFound({ lines: lines.slice(), searched: page.searched, done: !cursor });
      } while (cursor && lines.length < FOUND_MAX);
    };
    const timer = setTimeout(() => look().catch((error: Error) => abort.signal.aborted || setFound({ lines: [], searched: 0, done: true, error: error.message })), 300);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [job, text, level, again === "live"]);
  return found;
}

export function Log({ job, running }: { job: string; running: boolean }) {
  const lines = useRef(new Lines());
  const [drawn, draw] = useState(0);
  const [state, setState] = useState<"open" | "ended" | "down">("open");
  const [following, setFollowing] = useState(true);
  const [search, setSearch] = useState("");
  const [level, setLevel] = useState("");
  const [times, setTimes] = useState(true);
  useEffect(() => {
    let waiting = false;
    return follow({
      url: () => address(`jobs/${job}/logs/stream`),
      kinds: ["log", "end"],
      begin: () => (lines.current = new Lines()),
      state: setState,
      hear: (event, close) => {
        if (event.type === "end") {
          close();
          setState("ended");
          return draw((count) => count + 1);
        }
        lines.current.add(JSON.parse(event.data));
        if (waiting) return;
        waiting = true;
        setTimeout(() => {
          waiting = false;
          draw((count) => count + 1);
        }, 100);
      },
    });
  }, [job]);
  useKeys((key) => {
    if (key !== "f") return false;
    setFollowing(!following);
    return true;
  });
  const long = lines.current.dropped > 0;
  const found = useServerSearch(job, long ? search : "", long ? level : "");
  const filtered = search !== "" || level !== "";
  const shown = useMemo(() => {
    if (filtered && long) return found?.lines ?? [];
    const all = lines.current.all;
    const wanted = search.toLowerCase();
    return filtered ? all.filter((line) => read(line).plain.toLowerCase().includes(wanted) && (!level || read(line).level === level)) : all.slice();
  }, [drawn, search, level, long, found]);
  return (
    <div className="log">
      <div className="row wrap">
        <input data-search type="search" placeholder="Search the log" aria-label="Search the log" value={search} onChange={(event) => setSearch(event.target.value)} />
        <select value={level} onChange={(event) => setLevel(event.target.value)} aria-label="Level">
          <option value="">all levels</option>
          <option value="error">errors</option>
          <option value="warn">warnings</option>
          <option value="debug">debug</option>
        </select>
        <label>
          <input type="checkbox" checked={following} onChange={() => setFollowing(!following)} /> Follow
        </label>
        <label>
          <input type="checkbox" checked={times} onChange={() => setTimes(!times)} /> Local times
        </label>
        <span className="quiet" role="status">
          {shown.length.toLocaleString()} {shown.length === 1 ? "line" : "lines"}
          {state === "down" && " · reconnecting…"}
          {long && !filtered && ` · ${lines.current.dropped.toLocaleString()} older ones are found by searching or by level, and in the download`}
          {long && filtered && (found ? ` of ${found.searched.toLocaleString()} searched on the server${found.done ? "" : ", there are more"}` : " · the server searches…")}
        </span>
        <span className="grow" />
        <a href={address(`jobs/${job}/logs`, { format: "text" })} download={`${job}.log`}>
          Download
        </a>
      </div>
      {found?.error && <p className="fault" role="alert">{clean(found.error)}</p>}
      {shown.length === 0 ? (
        <Empty>{filtered ? (long && !found ? "The server searches…" : "No line fits.") : running ? "Nothing was written yet." : "The job wrote nothing."}</Empty>
      ) : (
        <LinesView lines={shown} times={times} follow={following} setFollow={setFollowing} short={state === "ended"} />
      )}
    </div>
  );
}

type ViewProps = {
  lines: Line[];
  times: boolean;
  follow: boolean;
  setFollow: (follow: boolean) => void;
  /** Nothing more comes, so that it need not be higher than what there is. */
  short: boolean;
};

function LinesView({ lines, times, follow, setFollow, short }: ViewProps) {
  const scroll = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroll.current,
    estimateSize: () => LINE,
    overscan: 30,
  });
  useEffect(() => {
    if (follow) virtual.scrollToIndex(lines.length - 1, { align: "end" });
  }, [lines.length, follow]);
  return (
    <div
      className="lines"
      ref={scroll}
      tabIndex={0}
      role="log"
      aria-label="Log"
      style={short ? { height: Math.min(420, lines.length * LINE + 12) } : undefined}
      onWheel={(event) => event.deltaY < 0 && follow && setFollow(false)}
    >
      <div style={{ height: virtual.getTotalSize(), position: "relative" }}>
        {virtual.getVirtualItems().map((item) => (
          <LineView key={lines[item.index].number} line={lines[item.index]} text={lines[item.index].text} top={item.start} times={times} />
        ))}
      </div>
    </div>
  );
}

const two = (number: number) => String(number).padStart(2, "0");

/** As the other times on the page: by this machine's time zone. */
function clock(at: string): string {
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) return at;
  return `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}.${String(time.getMilliseconds()).padStart(3, "0")}`;
}

type LineProps = { line: Line; text: string; top: number; times: boolean };

const LineView = memo(function LineView({ line, text, top, times }: LineProps) {
  return (
    <div className={`line ${read(line).level} ${line.stream}`} style={{ transform: `translateY(${top}px)` }}>
      {times && (
        <time dateTime={line.at} title={`${line.at} in UTC, attempt ${line.attempt}${line.stream ? `, ${line.stream}` : ""}`}>
          {clock(line.at)}
        </time>
      )}
      <code>
        {pieces(text).map(({ text, classes, style }, index) => (
          <span key={index} className={classes || undefined} style={style}>
            {text}
          </span>
        ))}
      </code>
    </div>
  );
});
