import { useQuery } from "@tanstack/react-query";
import { useNavigate, useRouterState, useSearch } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { get, type Job, type JobCounts, type Page, post, retryJob } from "../api/client";
import { type List, useJobList } from "../api/jobList";
import { anyAdded } from "../api/live";
import { Does, Empty, Fault, MORE, upTo } from "../parts/basics";
import { recall, rememberLarge, useEntry, useKept } from "../parts/history";
import { FINAL } from "../parts/jobPainter";
import { Rows } from "../parts/jobRows";
import { say } from "../parts/said";
import { brief } from "../parts/text";
import { useTitle } from "../parts/title";

const STATES = ["pending", "running", "failed", "completed", "blocked", "scheduled", "claimed", "cancelled", "skipped"];
/** At a time, so that a thousand chosen jobs are not a thousand requests at once. */
const AT_ONCE = 8;

/** A list that was left for another page and is shown again is made anew; one whose filter changes is not. */
export function Jobs() {
  const entry = useRouterState({ select: ({ location }) => (location.pathname === "/jobs" ? location.state.__TSR_index : undefined) });
  const last = useRef(entry);
  if (entry !== undefined) last.current = entry;
  return <JobsPage key={last.current} />;
}

function JobsPage() {
  const search = useSearch({ from: "/jobs" });
  const navigate = useNavigate({ from: "/jobs" });
  const set = (change: Record<string, string | undefined>) =>
    void navigate({ search: (old: Record<string, string>) => ({ ...old, ...change }) as Record<string, string>, replace: true });
  const q = search.q ?? "";
  const meant = useMeant(q);
  const filter = { state: search.state, worker: search.worker, ...meant.filter };
  const entry = useEntry();
  const list = useJobList(filter, recall<List>(entry, "list"));
  useEffect(() => () => rememberLarge(entry, "list", list.list), [list.list]);
  const [chosen, setChosen] = useKept("chosen", new Set<string>());
  const counts = useCounts(filter);
  const states = (search.state ?? "").split(",").filter(Boolean);
  const toggle = (state: string) => {
    const next = states.includes(state) ? states.filter((one: string) => one !== state) : [...states, state];
    set({ state: next.join(",") || undefined });
  };
  const shown = JSON.stringify([search.state, search.q, search.worker]);
  const before = useRef(shown);
  useEffect(() => {
    if (before.current !== shown) setChosen(new Set());
    before.current = shown;
  }, [shown]);
  useTitle("Jobs", [search.state, q].filter(Boolean).join(", "));
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
          <button key={state} className="chip" aria-pressed={states.includes(state)} onClick={() => toggle(state)} title={counts?.[state]?.more ? MORE : undefined}>
            {state} <span className="count">{counts ? upTo(counts[state]) : ""}</span>
          </button>
        ))}
        {counts && STATES.some((state) => counts[state]?.more) && <span className="quiet">+ counted up to 1,000 with this filter</span>}
        {search.worker && (
          <button className="chip" aria-pressed="true" onClick={() => set({ worker: undefined })}>
            held by {brief(search.worker, 40)} ✕
          </button>
        )}
      </div>
      {meant.isId && <p className="quiet">Jobs whose id is or begins with {brief(q, 60)}.</p>}
      <Fault error={list.error ?? meant.error} />
      <Chosen rows={list.rows} chosen={chosen} clear={() => setChosen(new Set())} look={list.look} />
      {meant.isOpen ? (
        <Empty>Looking…</Empty>
      ) : list.rows.length === 0 && !list.isFirst && !list.error ? (
        <Empty>
          {search.state || q || search.worker ? "No job fits this filter." : "There are no jobs yet. Try: windlass submit --shell 'echo hello'"}
        </Empty>
      ) : (
        <Rows list={list} chosen={chosen} setChosen={setChosen} />
      )}
    </div>
  );
}

/** The beginning of an id, or an id as pages show it: `01a1e388…3f2c`. */
const ID = /^([0-9a-f]{4,8}(?:-[0-9a-f-]*)?)(?:…([0-9a-f]{1,12}))?$/i;
/** Of the jobs submitted in the same minute, so many are compared with an id that is shown in part. */
const COMPARED_MAX = 5000;

/** The id that begins and ends so, or the beginning of those that begin so; undefined if no job has one. */
async function idOf(begin: string, end: string | undefined, signal: AbortSignal): Promise<string | undefined> {
  let cursor: string | null | undefined;
  for (let seen = 0; seen < COMPARED_MAX; ) {
    const page = await get<Page<Job>>("jobs", { id: begin, limit: end ? 1000 : 1, cursor }, signal);
    const found = page.items.find((job) => !end || job.id.endsWith(end));
    if (found) return end ? found.id : begin;
    seen += page.items.length;
    cursor = page.next;
    if (!cursor) return undefined;
  }
}

/** What a search is for: a facet, an id if a job has one like it, or else the beginning of a name. */
function useMeant(q: string) {
  const [, begin, end] = ID.exec(q.toLowerCase()) ?? [];
  const found = useQuery({
    queryKey: ["id", q],
    queryFn: ({ signal }) => idOf(begin, end, signal).then((id) => id ?? null),
    enabled: begin !== undefined,
    meta: anyAdded,
  });
  const id = begin === undefined ? undefined : (found.data ?? undefined);
  const facet = q.includes(":") ? q : undefined;
  const filter = { facet, id, name: q && !facet && !id ? q : undefined };
  return { filter, isId: id !== undefined, isOpen: begin !== undefined && found.isPending && !found.error, error: begin === undefined ? undefined : found.error };
}

/** By state, of the jobs that the rest of the filter chooses; of ids there is nothing to count. */
function useCounts({ facet, name, worker, id }: { facet?: string; name?: string; worker?: string; id?: string }) {
  const query = { facet, name, worker, max_age_ms: 1000 };
  const found = useQuery({ queryKey: ["counts", query], queryFn: ({ signal }) => get<JobCounts>("jobs/counts", query, signal), meta: anyAdded, enabled: !id });
  return id ? undefined : found.data?.jobs;
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

type ChosenProps = { rows: Job[]; chosen: Set<string>; clear: () => void; look: () => void };

const count = (number: number, what: string) => `${number.toLocaleString()} ${what}${number === 1 ? "" : "s"}`;

/** Does the same to many, a few at a time, and says how it went. */
async function each<T>(all: T[], act: (one: T) => Promise<unknown>, done: string) {
  let failed = 0;
  let why = "";
  const left = [...all];
  const work = async () => {
    for (let one = left.shift(); one !== undefined; one = left.shift()) {
      await act(one).catch((error: Error) => {
        failed++;
        why ||= error.message;
      });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  say(`${(all.length - failed).toLocaleString()} of ${all.length.toLocaleString()}: ${done}.${failed ? ` ${failed.toLocaleString()} refused, the first because: ${why}` : ""}`, failed ? "bad" : "good");
}

function Chosen({ rows, chosen, clear, look }: ChosenProps) {
  if (chosen.size === 0) return null;
  const jobs = rows.filter((job) => chosen.has(job.id));
  const open = jobs.filter((job) => !FINAL.has(job.state));
  const ended = jobs.filter((job) => FINAL.has(job.state));
  const alone = ended.filter((job) => !job.run);
  const before = alone.filter((job) => job.retried_by || job.retried_as).length;
  // A step runs again with its run, where others wait for what it gives.
  const runs = [...new Set(ended.flatMap((job) => job.run ?? []))];
  const then = () => {
    clear();
    look();
  };
  return (
    <div className="row wrap chosen" role="group" aria-label="Chosen jobs">
      <strong>{chosen.size.toLocaleString()} chosen</strong>
      <Does
        className="danger"
        disabled={open.length === 0}
        ask={`Cancel ${count(open.length, "job")}? The workers of those that run are told to stop.`}
        act={() => each(open, (job) => post(`jobs/${job.id}/cancel`), "cancel done")}
        then={then}
      >
        Cancel {open.length.toLocaleString()}
      </Does>
      <Does
        disabled={alone.length === 0}
        ask={`Run ${count(alone.length, "job")} again? Each is submitted as a new job.${before > 0 ? ` ${before.toLocaleString()} of them ${before === 1 ? "was" : "were"} retried before.` : ""}`}
        act={() => each(alone, retryJob, "retry done")}
        then={then}
      >
        Retry {alone.length.toLocaleString()}
      </Does>
      {runs.length > 0 && (
        <Does
          ask={`${count(ended.length - alone.length, "chosen job")} ${ended.length - alone.length === 1 ? "is a step" : "are steps"}, which run again with their run only. Retry ${count(runs.length, "run")}? Each goes on from where it failed, as a new run.`}
          act={() => each(runs, (run) => post(`runs/${run}/retry`), "retry done")}
          then={then}
        >
          Retry {count(runs.length, "run")}
        </Does>
      )}
      <button className="plain" onClick={clear}>
        Choose none
      </button>
    </div>
  );
}
