import { useNavigate, useSearch } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, useEffect, useRef, useState } from "react";
import { type Job, post } from "../api/client";
import { useJobList } from "../api/jobList";
import { Ago, Empty, Fault, JobLink, State, Took } from "../parts/basics";
import { useMay } from "../parts/gate";
import { useKeys } from "../parts/keys";
import { say } from "../parts/said";
import { brief } from "../parts/text";

const ROW = 40;
/** The line of headings stays in sight. */
const HEAD = 32;
const STATES = ["pending", "running", "failed", "completed", "blocked", "scheduled", "claimed", "cancelled", "skipped"];
/** At a time, so that a thousand chosen jobs are not a thousand requests at once. */
const AT_ONCE = 8;

const FINAL = new Set(["completed", "failed", "cancelled", "skipped"]);
/** A search is for an id if it looks like the beginning of one. */
const isId = (text: string) => /^[0-9a-f]{4,8}(-[0-9a-f-]*)?$/i.test(text);

export function title(job: Job): string {
  const payload = job.payload as { shell?: unknown; command?: unknown } | null | undefined;
  const command = payload && typeof payload === "object" ? (payload.shell ?? payload.command) : undefined;
  const words = Array.isArray(command) ? command.join(" ") : typeof command === "string" ? command : undefined;
  return job.name || job.node || job.definition || job.command || words || "(no name)";
}

export function Jobs() {
  const search = useSearch({ from: "/jobs" });
  const navigate = useNavigate({ from: "/jobs" });
  const set = (change: Record<string, string | undefined>) =>
    void navigate({ search: (old: Record<string, string>) => ({ ...old, ...change }) as Record<string, string>, replace: true });
  const q = search.q ?? "";
  const filter = {
    state: search.state,
    worker: search.worker,
    facet: q.includes(":") ? q : undefined,
    id: isId(q) ? q.toLowerCase() : undefined,
    name: q && !q.includes(":") && !isId(q) ? q : undefined,
  };
  const list = useJobList(filter);
  const [chosen, setChosen] = useState(new Set<string>());
  const states = (search.state ?? "").split(",").filter(Boolean);
  const toggle = (state: string) => {
    const next = states.includes(state) ? states.filter((one: string) => one !== state) : [...states, state];
    set({ state: next.join(",") || undefined });
  };
  useEffect(() => setChosen(new Set()), [search.state, search.q, search.worker]);
  return (
    <div className="fill">
      <header className="page-head">
        <h1>Jobs</h1>
        <span className="quiet" role="status">
          {list.rows.length.toLocaleString()}
          {list.hasMore ? "+" : ""} shown
        </span>
        <Search value={q} set={(value) => set({ q: value || undefined })} />
      </header>
      <div className="row wrap" role="group" aria-label="States">
        {STATES.map((state) => (
          <button key={state} className="chip" aria-pressed={states.includes(state)} onClick={() => toggle(state)}>
            {state}
          </button>
        ))}
        {search.worker && (
          <button className="chip" aria-pressed="true" onClick={() => set({ worker: undefined })}>
            held by {brief(search.worker, 40)} ✕
          </button>
        )}
      </div>
      <Fault error={list.error} />
      <Chosen rows={list.rows} chosen={chosen} clear={() => setChosen(new Set())} look={list.look} />
      {list.rows.length === 0 && !list.isFirst && !list.error ? (
        <Empty>
          {search.state || q || search.worker ? "No job fits this filter." : "There are no jobs yet. Try: windlass submit --shell 'echo hello'"}
        </Empty>
      ) : (
        <Rows list={list} chosen={chosen} setChosen={setChosen} />
      )}
    </div>
  );
}

function Search({ value, set }: { value: string; set: (value: string) => void }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text === value) return;
    const timer = setTimeout(() => set(text.trim()), 300);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <input
      data-search
      type="search"
      className="grow"
      placeholder="Name begins with…, id, or facet name:value"
      aria-label="Search jobs by the beginning of their name, by id, or by facet"
      value={text}
      onChange={(event) => setText(event.target.value)}
    />
  );
}

type ListProps = { list: ReturnType<typeof useJobList>; chosen: Set<string>; setChosen: (chosen: Set<string>) => void };

function Rows({ list, chosen, setChosen }: ListProps) {
  const scroll = useRef<HTMLDivElement>(null);
  const navigate = useNavigate();
  const { edit } = useMay();
  const [at, setAt] = useState(-1);
  const { rows } = list;
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroll.current,
    estimateSize: () => ROW,
    overscan: 12,
    scrollPaddingStart: HEAD,
    getItemKey: (index) => rows[index]?.id ?? index,
  });
  const items = virtual.getVirtualItems();
  const end = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (end >= rows.length - 200) list.more();
  }, [end, rows.length]);
  const choose = (id: string) => {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    setChosen(next);
  };
  const move = (by: number) => {
    const next = Math.max(0, Math.min(rows.length - 1, at + by));
    setAt(next);
    virtual.scrollToIndex(next);
    return true;
  };
  useKeys((key) => {
    if (key === "j" || key === "ArrowDown") return move(1);
    if (key === "k" || key === "ArrowUp") return move(-1);
    const job = rows[at];
    if (key === "Enter" && job && (document.activeElement === document.body || document.activeElement === scroll.current)) {
      void navigate({ to: "/jobs/$id", params: { id: job.id } });
      return true;
    }
    if (key === "x" && job && edit) {
      choose(job.id);
      return true;
    }
  });
  return (
    <div className="table jobs" role="table" aria-label="Jobs" aria-rowcount={rows.length}>
      <div className="scroll" ref={scroll} tabIndex={0} role="rowgroup" aria-label="Rows">
        <div className="tr head" role="row">
          {edit && <span role="columnheader" aria-label="Chosen" className="pick" />}
          <span role="columnheader">State</span>
          <span role="columnheader" className="wide">Job</span>
          <span role="columnheader">Id</span>
          <span role="columnheader" className="opt">Worker</span>
          <span role="columnheader" className="opt">Tries</span>
          <span role="columnheader">Took</span>
          <span role="columnheader">Created</span>
        </div>
        <div style={{ height: virtual.getTotalSize(), position: "relative" }}>
          {items.map((item) => (
            <Row
              key={item.key}
              job={rows[item.index]}
              state={rows[item.index].state}
              index={item.index}
              top={item.start}
              current={item.index === at}
              chosen={chosen.has(rows[item.index].id)}
              choose={edit ? choose : undefined}
            />
          ))}
        </div>
      </div>
    </div>
  );
}

type RowProps = {
  job: Job;
  /** Beside the job, whose fields change in place. */
  state: string;
  index: number;
  top: number;
  current: boolean;
  chosen: boolean;
  choose?: (id: string) => void;
};

const Row = memo(
  function Row({ job, index, top, current, chosen, choose }: RowProps) {
    return (
      <div
        className={`tr${current ? " current" : ""}`}
        role="row"
        aria-rowindex={index + 1}
        style={{ transform: `translateY(${top}px)` }}
      >
        {choose && (
          <span role="cell" className="pick">
            <input type="checkbox" checked={chosen} onChange={() => choose(job.id)} aria-label={`Choose ${brief(title(job), 40)}`} />
          </span>
        )}
        <span role="cell">
          <State of={job.state} />
        </span>
        <span role="cell" className="wide">
          <JobLink id={job.id}>{brief(title(job), 120)}</JobLink>
          {job.error?.message && <span className="bad-text"> {brief(job.error.message, 160)}</span>}
        </span>
        <span role="cell" className="mono quiet" title={job.id}>
          {job.id.slice(-8)}
        </span>
        <span role="cell" className="opt">
          {brief(job.worker, 40)}
        </span>
        <span role="cell" className="opt">
          {job.attempt > 1 ? job.attempt : ""}
        </span>
        <span role="cell">
          <Took from={job.claimed_at} to={FINAL.has(job.state) ? (job.finished_at ?? job.claimed_at) : undefined} />
        </span>
        <span role="cell">
          <Ago time={job.created_at} />
        </span>
      </div>
    );
  },
  (a, b) =>
    a.job === b.job && a.state === b.state && a.top === b.top && a.current === b.current && a.chosen === b.chosen &&
    a.choose === b.choose,
);

type ChosenProps = { rows: Job[]; chosen: Set<string>; clear: () => void; look: () => void };

function Chosen({ rows, chosen, clear, look }: ChosenProps) {
  const [busy, setBusy] = useState(false);
  if (chosen.size === 0) return null;
  const jobs = rows.filter((job) => chosen.has(job.id));
  const each = async (verb: "cancel" | "retry", of: Job[]) => {
    setBusy(true);
    let failed = 0;
    const left = [...of];
    const work = async () => {
      for (let job = left.pop(); job; job = left.pop()) {
        await post(`jobs/${job.id}/${verb}`).catch(() => failed++);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    setBusy(false);
    say(`${of.length - failed} of ${of.length}: ${verb} done.${failed ? ` ${failed} refused.` : ""}`, failed ? "bad" : "good");
    clear();
    look();
  };
  const open = jobs.filter((job) => !FINAL.has(job.state));
  const ended = jobs.filter((job) => FINAL.has(job.state));
  return (
    <div className="row chosen" role="group" aria-label="Chosen jobs">
      <strong>{chosen.size} chosen</strong>
      <button className="danger" disabled={busy || open.length === 0} onClick={() => void each("cancel", open)}>
        Cancel {open.length}
      </button>
      <button disabled={busy || ended.length === 0} onClick={() => void each("retry", ended)}>
        Retry {ended.length}
      </button>
      <button className="plain" onClick={clear}>
        Choose none
      </button>
    </div>
  );
}
