import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, Suspense, useMemo, useState } from "react";
import { get, type History, type Overview as Figures } from "../api/client";
import { anyChanged, now } from "../api/live";
import { Ago, Card, Empty, Fault, JobLink, Tags, upTo, useSecond, WorkerLink } from "../parts/basics";
import { later } from "../parts/later";
import { brief, length, local } from "../parts/text";
import { useTitle } from "../parts/title";

type WaitingStep = { run: string; workflow?: string | null; step: string; job: string; event?: string | null; until?: string | null };
type Data = Figures & { failing_others?: { completed: number; failed: number } | null; waiting_steps?: WaitingStep[] };
const Chart = later(() => import("../parts/chart").then((part) => part.default));
/** A job that waits longer than this needs attention. */
const LONG_MS = 60_000;
/** Without somebody's help they wait for ever. */
const HOPELESS = new Set(["no_worker_offers", "workers_offline"]);
const SOON_MS = 5_000;
const TILES = ["pending", "running", "blocked", "scheduled", "failed", "completed"];

export function Overview() {
  const found = useQuery({ queryKey: ["overview"], queryFn: ({ signal }) => get<Data>("overview", {}, signal), meta: anyChanged });
  const data = found.data;
  useTitle("Overview");
  return (
    <>
      <header className="page-head">
        <h1>Overview</h1>
        {data && <span className="quiet">Windlass {data.version}, {data.store} store</span>}
      </header>
      <Fault error={found.error} />
      <div className="tiles">
        {TILES.map((state) => (
          <Link key={state} className="tile" to="/jobs" search={{ state }}>
            <b>{upTo(data?.jobs[state])}</b> {state}
          </Link>
        ))}
        <Link className="tile" to="/workers">
          <b>{data ? data.workers.online : "–"}</b> workers online
        </Link>
      </div>
      <Card title="Needs attention now">{data ? <Attention data={data} /> : <Empty>Looking…</Empty>}</Card>
      <Charts />
      <Card title="Waiting, by lane">{data && <Lanes data={data} />}</Card>
    </>
  );
}

function Attention({ data }: { data: Data }) {
  useSecond();
  const found: [string, ReactNode][] = [];
  if (data.store_full) found.push(["full", <>The store is full and accepts no writes. Free some space on its disk.</>]);
  for (const lane of data.lanes) {
    const waited = lane.since ? now() - Date.parse(lane.since) : 0;
    if (waited < (HOPELESS.has(lane.reason_code ?? "") ? SOON_MS : LONG_MS)) continue;
    found.push([
      `lane ${lane.oldest}`,
      <>
        <JobLink id={lane.oldest}>{brief(lane.oldest_name, 60) || undefined}</JobLink> has waited {length(waited)}
        {(lane.waiting.count > 1 || lane.waiting.more) && <> with {upTo({ ...lane.waiting, count: lane.waiting.count - 1 })} {lane.waiting.count === 2 && !lane.waiting.more ? "other" : "others"}</>}. {lane.reason && brief(lane.reason, 300)}
      </>,
    ]);
  }
  for (const one of data.failing) {
    found.push([
      `failing ${one.definition}`,
      <>
        <Link to="/definitions/$name" params={{ name: one.definition }}>{brief(one.definition, 60)}</Link> failed {one.failed} of {one.failed + one.completed} times in the last hour or two. <Link to="/jobs" search={{ state: "failed" }}>Failed jobs</Link>
      </>,
    ]);
  }
  const others = data.failing_others;
  if (others) {
    found.push([
      "failing others",
      <>
        Jobs without a definition, or whose workers did not report: {others.failed.toLocaleString()} of {(others.failed + others.completed).toLocaleString()} failed in the last hour or two. <Link to="/jobs" search={{ state: "failed" }}>Failed jobs</Link>
      </>,
    ]);
  }
  for (const one of data.waiting_steps ?? []) {
    found.push([
      `step ${one.job}`,
      <>
        The step <Link to="/runs/$id" params={{ id: one.run }} search={{ step: one.step }}>{brief(one.step, 60)}</Link> of {one.workflow ? brief(one.workflow, 60) : "a run"} waits for {one.event ? `the event ${brief(one.event, 60)}` : "approval"}
        {one.until && <>, until {local(one.until)} at the latest</>}.
      </>,
    ]);
  }
  for (const name of data.lost_workers.slice(0, 10)) {
    found.push([`lost ${name}`, <>The worker <WorkerLink name={name} /> is not heard of.</>]);
  }
  if (found.length === 0) return <Empty>Nothing. No job waits too long, nothing fails, and all workers are there.</Empty>;
  return (
    <ul className="plain-list attention">
      {found.map(([key, what]) => (
        <li key={key}>
          <span aria-hidden="true">⚠</span> {what}
        </li>
      ))}
    </ul>
  );
}

function Lanes({ data }: { data: Data }) {
  if (data.lanes.length === 0) return <Empty>No job waits for a worker.</Empty>;
  return (
    <div className="wide-table" tabIndex={0} role="region" aria-label="Lanes">
      <table>
        <thead>
          <tr>
            <th scope="col">Tags</th>
            <th scope="col">Waiting</th>
            <th scope="col">Oldest</th>
            <th scope="col" className="opt">Why</th>
          </tr>
        </thead>
        <tbody>
          {data.lanes.map((lane) => (
            <tr key={lane.oldest}>
              <td>{lane.tags.length ? <Tags of={lane.tags} /> : <span className="quiet">none</span>}</td>
              <td>{upTo(lane.waiting)}</td>
              <td>
                <JobLink id={lane.oldest} /> <Ago time={lane.since} />
              </td>
              <td className="opt">{brief(lane.reason, 200)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

type Span = "hour" | "day" | "month";
const SPANS: Record<Span, number> = { hour: 3_600_000, day: 86_400_000, month: 30 * 86_400_000 };

function Charts() {
  const [span, setSpan] = useState<Span>("hour");
  const found = useQuery({
    queryKey: ["history", span === "month" ? "month" : "day"],
    queryFn: ({ signal }) => get<History>("history", { span: span === "month" ? "month" : "day", max_age_ms: 5000 }, signal),
    refetchInterval: 10_000,
  });
  const shown = useMemo(() => spread(found.data, SPANS[span]), [found.data, span]);
  const side = (
    <div className="row" role="group" aria-label="Time shown">
      {(Object.keys(SPANS) as Span[]).map((one) => (
        <button key={one} className="chip" aria-pressed={one === span} onClick={() => setSpan(one)}>
          {one}
        </button>
      ))}
    </div>
  );
  return (
    <div className="columns">
      <Card title={`Jobs by the ${span === "month" ? "hour" : "minute"}`} side={side}>
        <Fault error={found.error} />
        <Suspense fallback={<div className="chart" />}>
          <Chart label="Jobs submitted, claimed, completed and failed" times={shown.times} series={shown.counts} />
        </Suspense>
      </Card>
      <Card title="Wait and run times">
        <Suspense fallback={<div className="chart" />}>
          <Chart label="Wait and run times" times={shown.times} series={shown.lengths} isTime />
        </Suspense>
      </Card>
    </div>
  );
}

/** A value for every step, also for those in which nothing was done. */
function spread(history: History | undefined, span: number) {
  const step = history?.step_ms ?? 60_000;
  const end = Math.floor(now() / step);
  const from = end - Math.round(span / step) + 1;
  const at = new Map(history?.points.map((point) => [Math.floor(Date.parse(point.at) / step), point]));
  const steps = Array.from({ length: end - from + 1 }, (_, index) => from + index);
  const points = steps.map((one) => at.get(one));
  const counts = (["submitted", "claimed", "completed", "failed"] as const).map((name, index) => ({
    name,
    colour: ["--quiet", "--busy", "--good", "--bad"][index],
    values: points.map((point) => point?.[name] ?? 0),
  }));
  const kinds = [["wait_p50_ms", "half waited", "--wait"], ["wait_p95_ms", "95 % waited", "--off"], ["run_p50_ms", "half ran", "--busy"], ["run_p95_ms", "95 % ran", "--good"]] as const;
  const lengths = kinds.map(([key, name, colour]) => ({ name, colour, values: points.map((point) => point?.[key] ?? null) }));
  return { times: steps.map((one) => (one * step) / 1000), counts, lengths };
}
