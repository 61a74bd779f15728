import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { lazy, Suspense, useRef, useState } from "react";
import { get, type Job, type Page, post, type Run, segment, type Step } from "../api/client";
import { jobChanged, MANY_STEPS, runChanged } from "../api/live";
import { Ago, Card, Does, Fault, Facts, JobLink, RunLink, State, Took, WorkerLink } from "../parts/basics";
import { Gantt } from "../parts/gantt";
import { useMay } from "../parts/gate";
import { Json } from "../parts/json";
import { brief, clean } from "../parts/text";
import { Steps } from "./runs";

const Graph = lazy(() => import("../parts/graph"));
/** Steps read for one run. A map of ten thousand is shown folded. */
const STEPS_MAX = 20_000;

async function read(id: string, all: boolean, signal: AbortSignal): Promise<Run> {
  const run = await get<Run>(`runs/${id}`, {}, signal);
  let next = run.steps_next;
  while (all && next && (run.steps?.length ?? 0) < STEPS_MAX) {
    const page: Page<Step> = await get(`runs/${id}/steps`, { limit: 1000, cursor: next }, signal);
    run.steps = [...(run.steps ?? []), ...page.items];
    next = page.next;
  }
  run.steps_next = next;
  return run;
}

export function RunPage() {
  const { id } = useParams({ from: "/runs/$id" });
  const { edit } = useMay();
  const navigate = useNavigate();
  const [chosen, setChosen] = useState<string>();
  const [all, setAll] = useState(false);
  const jobs = useRef(new Set<string>());
  const found = useQuery({
    queryKey: ["run", id, all],
    queryFn: ({ signal }) => read(id, all, signal),
    meta: runChanged(id, () => jobs.current),
    refetchInterval: ({ state }) => (state.data?.state === "running" && jobs.current.size > MANY_STEPS ? 5000 : false),
  });
  const run = found.data;
  if (!run) return found.error ? <Fault error={found.error} /> : <p className="empty">Loading…</p>;
  const steps = run.steps ?? [];
  jobs.current = new Set(steps.map((step) => step.job));
  const step = steps.find((one) => one.job === chosen);
  return (
    <>
      <header className="page-head">
        <h1>{brief(run.workflow ?? "Run", 120)}</h1>
        <State of={run.state} />
        <span className="mono quiet">{run.id}</span>
        <span className="grow" />
        {edit && run.state === "running" && (
          <Does className="danger" act={() => post(`runs/${id}/cancel`)} said="The run is cancelled." ask="Cancel this run? Waiting steps end at once.">
            Cancel
          </Does>
        )}
        {edit && run.state !== "running" && run.state !== "completed" && (
          <Does
            act={() => post<{ id: string }>(`runs/${id}/retry`)}
            said="A new run does again what did not complete."
            then={(reply) => void navigate({ to: "/runs/$id", params: { id: (reply as { id: string }).id } })}
          >
            Retry from failed
          </Does>
        )}
      </header>
      <Fault error={found.error} />
      <Facts
        of={[
          ["Steps", <Steps run={run} />],
          ["Started", <><Ago time={run.created_at} />{run.owner && <> by {brief(run.owner, 60)}</>}</>],
          ["Took", <Took from={run.created_at} to={run.finished_at} />],
          ["Cancelled by", run.cancelled_by && brief(run.cancelled_by)],
          ["Retry of", run.retry_of && <RunLink id={run.retry_of} />],
        ]}
      />
      {run.steps_next && steps.length < run.total && (
        <p className="note">
          The first {steps.length.toLocaleString()} of {run.total.toLocaleString()} steps are shown.{" "}
          <button onClick={() => setAll(true)}>Load all</button>
        </p>
      )}
      {steps.filter((one) => one.waits_for === "approval").slice(0, 5).map((one) => (
        <Waits key={one.job} run={id} step={one} />
      ))}
      <Card title="Graph">
        <Suspense fallback={<div className="graph" />}>
          <Graph steps={steps} chosen={chosen} choose={setChosen} />
        </Suspense>
      </Card>
      {step && <StepPanel run={id} step={step} />}
      <Card title="Time line">
        <Gantt steps={steps} from={run.created_at} to={run.finished_at} choose={setChosen} />
      </Card>
    </>
  );
}

function Waits({ run, step }: { run: string; step: Step }) {
  const { edit } = useMay();
  const path = `runs/${run}/steps/${segment(step.name)}`;
  return (
    <div className="note row wrap">
      <span>
        The step <strong>{brief(step.name)}</strong> waits for {step.waits_for === "event" ? `the event ${brief(step.event)}` : "approval"}.
      </span>
      {edit && step.waits_for === "approval" && (
        <>
          <Does className="primary" act={() => post(`${path}/approve`)} said="Approved.">
            Approve
          </Does>
          <Does className="danger" act={() => post(`${path}/reject`)} said="Rejected." ask={`Reject the step ${step.name}? It fails.`}>
            Reject
          </Does>
        </>
      )}
      {edit && step.waits_for === "event" && (
        <Does act={() => post(`runs/${run}/events`, { name: step.event })} said="Sent." ask={`Send the event ${step.event} without a payload?`}>
          Send event
        </Does>
      )}
    </div>
  );
}

function StepPanel({ run, step }: { run: string; step: Step }) {
  const found = useQuery({ queryKey: ["job", step.job], queryFn: () => get<Job>(`jobs/${step.job}`), meta: jobChanged(step.job) });
  const job = found.data;
  return (
    <Card
      title={<>Step {brief(step.name, 100)} <State of={step.state} /></>}
      side={<Link to="/jobs/$id" params={{ id: step.job }} className="button">Open job and log</Link>}
      id="step"
    >
      {step.waits_for && step.waits_for !== "members" && step.waits_for !== "plan" && <Waits run={run} step={step} />}
      <Facts
        of={[
          ["Worker", step.worker && <WorkerLink name={step.worker} />],
          ["Attempt", step.attempt || undefined],
          ["Ran", step.started_at && <Took from={step.started_at} to={step.finished_at} />],
          ["Waits for", step.waits_for ?? undefined],
          ["Reused from", step.kept_from && <JobLink id={step.kept_from} />],
          ["Error", step.error && <span className="bad-text">{step.error.reason} {clean(step.error.message ?? "").slice(0, 2000)}</span>],
        ]}
      />
      <Fault error={found.error} />
      <div className="columns">
        <div>
          <h3>Input</h3>
          {job?.payload != null ? <Json name="Input" value={job.payload} /> : <p className="quiet">None.</p>}
        </div>
        <div>
          <h3>Output</h3>
          {job?.result != null ? <Json name="Output" value={job.result} /> : <p className="quiet">None{job && !job.finished_at ? " yet" : ""}.</p>}
        </div>
      </div>
    </Card>
  );
}
