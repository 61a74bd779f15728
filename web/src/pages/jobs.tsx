import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { get, type Job, type JobCounts, post } from "../api/client";
import { useJobList } from "../api/jobList";
import { anyAdded } from "../api/live";
import { Empty, Fault, MORE, upTo } from "../parts/basics";
import { FINAL } from "../parts/jobPainter";
import { Rows } from "../parts/jobRows";
import { say } from "../parts/said";
import { brief } from "../parts/text";

const STATES = ["pending", "running", "failed", "completed", "blocked", "scheduled", "claimed", "cancelled", "skipped"];
/** At a time, so that a thousand chosen jobs are not a thousand requests at once. */
const AT_ONCE = 8;

/** A search is for an id if it looks like the beginning of one. */
const isId = (text: string) => /^[0-9a-f]{4,8}(-[0-9a-f-]*)?$/i.test(text);

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
  const counts = useCounts(filter);
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
