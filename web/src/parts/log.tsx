// A job's log as it is written.
import { useVirtualizer } from "@tanstack/react-virtual";
import { AnsiUp } from "ansi_up";
import { memo, useEffect, useMemo, useRef, useState } from "react";
import { address, get, type LogMatches } from "../api/client";
import { Empty } from "./basics";
import { useKeys } from "./keys";
import { clean } from "./text";

const LINE = 20;
/** Of a longer log the newest are held, and the server searches the rest. */
const LINES_MAX = 50_000;
const LINE_MAX = 10_000;

type Line = { at: string; text: string; stream: string; attempt: number; number: number };
type Piece = { at: string; worker_at?: string; data: string; stream?: string; attempt: number };

const LEVELS: [string, RegExp][] = [
  ["error", /\b(ERROR|FATAL|CRITICAL|PANIC)\b|"level":"error"/],
  ["warn", /\bWARN(ING)?\b|"level":"warn/],
  ["debug", /\b(DEBUG|TRACE)\b|"level":"debug"/],
];
const levelOf = (line: Line) => (line.stream === "windlass" ? "note" : (LEVELS.find(([, mark]) => mark.test(line.text))?.[0] ?? ""));

/** Lines in order. A line is done when its end has come; until then it grows. */
class Lines {
  all: Line[] = [];
  dropped = 0;
  private count = 0;
  private open = false;

  add(piece: Piece) {
    const parts = piece.data.split("\n");
    parts.forEach((part, index) => {
      const last = this.all.at(-1);
      const text = part.replace(/\r$/, "").replace(/^.*\r/, "");
      if (index === 0 && this.open && last && last.stream === (piece.stream ?? "")) {
        if (last.text.length < LINE_MAX) last.text += text;
      } else if (index < parts.length - 1 || text) {
        const at = piece.worker_at ?? piece.at;
        const stream = piece.stream ?? "";
        this.all.push({ at, text: text.slice(0, LINE_MAX), stream, attempt: piece.attempt, number: ++this.count });
      }
    });
    this.open = parts.at(-1) !== "";
    if (this.all.length > LINES_MAX * 1.1) {
      this.dropped += this.all.length - LINES_MAX;
      this.all = this.all.slice(-LINES_MAX);
    }
  }
}

const FOUND_MAX = 2_000;
type Found = { lines: Line[]; searched: number; done: boolean; error?: string };

/** Lines that contain a text, found by the server, which has all of them. */
function useServerSearch(job: string, text: string): Found | undefined {
  const [found, setFound] = useState<Found>();
  useEffect(() => {
    setFound(undefined);
    if (!text) return;
    const abort = new AbortController();
    const look = async () => {
      const lines: Line[] = [];
      let cursor: string | null | undefined;
      do {
        const page: LogMatches = await get(`jobs/${job}/logs/search`, { text: text.slice(0, 200), limit: 1000, cursor }, abort.signal);
        lines.push(...page.lines.map((one) => ({ at: one.at, text: one.text, stream: one.stream ?? "", attempt: one.attempt, number: one.line })));
        cursor = page.next;
        setFound({ lines: lines.slice(), searched: page.searched, done: !cursor });
      } while (cursor && lines.length < FOUND_MAX);
    };
    const timer = setTimeout(() => look().catch((error: Error) => abort.signal.aborted || setFound({ lines: [], searched: 0, done: true, error: error.message })), 300);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [job, text]);
  return found;
}

export function Log({ job, running }: { job: string; running: boolean }) {
  const lines = useRef(new Lines());
  const [drawn, draw] = useState(0);
  const [state, setState] = useState<"open" | "ended" | "down">("open");
  const [follow, setFollow] = useState(true);
  const [search, setSearch] = useState("");
  const [level, setLevel] = useState("");
  const [times, setTimes] = useState(true);
  useEffect(() => {
    lines.current = new Lines();
    let waiting = false;
    const source = new EventSource(address(`jobs/${job}/logs/stream`));
    source.onopen = () => setState("open");
    source.addEventListener("log", (event) => {
      lines.current.add(JSON.parse(event.data));
      if (waiting) return;
      waiting = true;
      setTimeout(() => {
        waiting = false;
        draw((count) => count + 1);
      }, 100);
    });
    source.addEventListener("end", () => {
      source.close();
      setState("ended");
      draw((count) => count + 1);
    });
    source.onerror = () => setState("down");
    return () => source.close();
  }, [job]);
  useKeys((key) => {
    if (key !== "f") return false;
    setFollow(!follow);
    return true;
  });
  const long = lines.current.dropped > 0;
  const found = useServerSearch(job, long ? search : "");
  const shown = useMemo(() => {
    const wanted = search.toLowerCase();
    if (wanted && long) return (found?.lines ?? []).filter((line) => !level || levelOf(line) === level);
    const all = lines.current.all;
    if (!wanted && !level) return all.slice();
    return all.filter((line) => (!wanted || line.text.toLowerCase().includes(wanted)) && (!level || levelOf(line) === level));
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
          <input type="checkbox" checked={follow} onChange={() => setFollow(!follow)} /> Follow
        </label>
        <label>
          <input type="checkbox" checked={times} onChange={() => setTimes(!times)} /> Times
        </label>
        <span className="quiet" role="status">
          {shown.length.toLocaleString()} lines
          {state === "down" && " · reconnecting…"}
          {long && !search && ` · ${lines.current.dropped.toLocaleString()} older ones are found by searching, and in the download`}
          {long && search && (found ? ` of ${found.searched.toLocaleString()} searched on the server${found.done ? "" : ", there are more"}` : " · the server searches…")}
        </span>
        <span className="grow" />
        <a href={address(`jobs/${job}/logs`, { format: "text" })} download={`${job}.log`}>
          Download
        </a>
      </div>
      {found?.error && <p className="fault" role="alert">{clean(found.error)}</p>}
      {shown.length === 0 ? (
        <Empty>{search || level ? "No line fits." : running ? "Nothing was written yet." : "The job wrote nothing."}</Empty>
      ) : (
        <LinesView lines={shown} times={times} follow={follow} setFollow={setFollow} short={state === "ended"} />
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

const ansi = new AnsiUp();
ansi.use_classes = true;
// Links in logs lead nowhere: whoever wrote them is not who reads them.
ansi.url_allowlist = {};

/** Colours become classes; everything else is escaped by the library, and what could hide is made visible first. */
function coloured(text: string): string {
  const kept = text.split("\u001b").map(clean).join("\u001b");
  return ansi.ansi_to_html(`${kept}\u001b[0m`);
}

type LineProps = { line: Line; text: string; top: number; times: boolean };

const LineView = memo(function LineView({ line, text, top, times }: LineProps) {
  return (
    <div className={`line ${levelOf(line)} ${line.stream}`} style={{ transform: `translateY(${top}px)` }}>
      {times && (
        <time dateTime={line.at} title={`attempt ${line.attempt}${line.stream ? `, ${line.stream}` : ""}, ${line.at}`}>
          {line.at.slice(11, 23)}
        </time>
      )}
      <code dangerouslySetInnerHTML={{ __html: coloured(text) }} />
    </div>
  );
});
