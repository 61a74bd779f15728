import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { Suspense, useEffect, useMemo, useRef, useState } from "react";
import { get, type Job, type Page, post, type Run, segment, type Step } from "../api/client";
import { jobChanged, MANY_STEPS, runChanged } from "../api/live";
import { Ago, Card, Does, Fault, Facts, JobLink, RunLink, State, Took, WorkerLink } from "../parts/basics";
import { causeOf, Failure, useFailures } from "../parts/failure";
import { Gantt } from "../parts/gantt";
import { useMay } from "../parts/gate";
import { Json } from "../parts/json";
import { later } from "../parts/later";
import { StepTable } from "../parts/stepTable";
import { brief, clean } from "../parts/text";
import { useTitle } from "../parts/title";
import { Steps } from "./runs";

const Graph = later(() => import("../parts/graph").then((part) => part.default));
/** Steps read for one run. A map of ten thousand is shown folded. */
const STEPS_MAX = 20_000;

const NONE: Step[] = [];

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

/** What is named in the address, or else what failed. */
function useChosen(run: Run | undefined, steps: Step[], cause: Step | undefined) {
  const { step: name } = useSearch({ from: "/runs/$id" });
  const navigate = useNavigate({ from: "/runs/$id" });
  const chosen = name === undefined ? (run?.state === "completed" ? undefined : cause) : steps.find((step) => step.name === name);
  const choose = (step: Step) => void navigate({ search: { step: step.name }, replace: true });
  return { name, chosen, choose };
}

export function RunPage() {
  const { id } = useParams({ from: "/runs/$id" });
  // What is chosen and filtered is of one run.
  return <RunOf key={id} id={id} />;
}

function RunOf({ id }: { id: string }) {
  const { edit } = useMay();
  const [all, setAll] = useState(false);
  const [state, setState] = useState("");
  const table = useRef<HTMLDivElement>(null);
  const jobs = useRef(new Set<string>());
  const found = useQuery({
    queryKey: ["run", id, all],
    queryFn: ({ signal }) => read(id, all, signal),
    meta: runChanged(id, () => jobs.current),
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) => (state.error || (state.data?.state === "running" && jobs.current.size > MANY_STEPS) ? 5000 : false),
  });
  const run = found.data;
  const stepsRead = run?.steps ?? NONE;
  const isWhole = !run?.steps_next;
  const failed = useFailures(run, stepsRead, isWhole);
  const { known, steps } = useMemo(() => {
    const known = new Set(stepsRead.map((step) => step.job));
    const others = failed.filter((step) => !known.has(step.job));
    return { known, steps: others.length ? [...stepsRead, ...others] : stepsRead };
  }, [stepsRead, failed]);
  const cause = causeOf(failed);
  const { name, chosen, choose } = useChosen(run, steps, cause);
  useTitle(run?.workflow ?? "Run", run?.state);
  // One that is named may be among those that were not read.
  const isMissing = !!run && name !== undefined && !chosen;
  useEffect(() => {
    if (isMissing && !isWhole) setAll(true);
  }, [isMissing, isWhole]);
  if (!run) return found.error ? <Fault error={found.error} /> : <p className="empty">Loading…</p>;
  jobs.current = known;
  const chooseJob = (job: string) => {
    const step = steps.find((one) => one.job === job);
    if (step) choose(step);
  };
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
        {edit && run.state !== "running" && run.state !== "completed" && <RetryRun run={id}>Retry from failed</RetryRun>}
      </header>
      <Fault error={found.error} />
      {cause && run.state !== "completed" && (
        <Failure
          step={cause}
          others={Math.max(0, run.failed - 1)}
          choose={choose}
          showOthers={() => {
            setState("failed");
            table.current?.scrollIntoView({ block: "start" });
          }}
        >
          {edit && (run.state === "running" ? <span className="quiet">The run can be retried when it has ended.</span> : <RetryRun run={id} className="primary">Retry from here</RetryRun>)}
        </Failure>
      )}
      <Facts
        of={[
          ["Steps", <Steps run={run} />],
          ["Started", <><Ago time={run.created_at} />{run.owner && <> by {brief(run.owner, 60)}</>}</>],
          ["Took", <Took from={run.created_at} to={run.finished_at} />],
          ["Cancelled by", run.cancelled_by && brief(run.cancelled_by)],
          ["Retry of", run.retry_of && <RunLink id={run.retry_of} />],
        ]}
      />
      {!isWhole && steps.length < run.total && (
        <p className="note">
          {steps.length.toLocaleString()} of {run.total.toLocaleString()} steps are shown.{" "}
          <button onClick={() => setAll(true)}>Load all</button>
        </p>
      )}
      {isMissing && isWhole && <p className="fault" role="alert">This run has no step "{brief(name, 100)}".</p>}
      {steps.filter((one) => one.waits_for === "approval").slice(0, 5).map((one) => (
        <Waits key={one.job} run={id} step={one} />
      ))}
      <div className={chosen ? "beside" : ""}>
        <div>
          <Card title="Graph">
            <Suspense fallback={<div className="graph" />}>
              <Graph steps={steps} chosen={chosen?.job} choose={chooseJob} />
            </Suspense>
          </Card>
          <div ref={table}>
            <Card title="Steps">
              <StepTable steps={steps} chosen={chosen?.job} choose={choose} state={state} setState={setState} isPart={!isWhole} loadAll={() => setAll(true)} />
            </Card>
          </div>
          <Card title="Time line">
            <Gantt steps={steps} from={run.created_at} to={run.finished_at} choose={chooseJob} />
          </Card>
        </div>
        {chosen && <StepPanel run={id} step={chosen} />}
      </div>
    </>
  );
}

function RetryRun({ run, children, className }: { run: string; children: string; className?: string }) {
  const navigate = useNavigate();
  return (
    <Does
      className={className}
      act={() => post<{ id: string }>(`runs/${run}/retry`)}
      said="A new run does again what did not complete."
      then={(reply) => void navigate({ to: "/runs/$id", params: { id: (reply as { id: string }).id } })}
    >
      {children}
    </Does>
  );
}

const WAITS: Record<string, (step: Step) => string> = {
  approval: () => "for approval",
  event: (step) => `for the event ${brief(step.event)}`,
  time: () => "until its time has come",
};

function Waits({ run, step }: { run: string; step: Step }) {
  const { edit } = useMay();
  const path = `runs/${run}/steps/${segment(step.name)}`;
  return (
    <div className="note row wrap">
      <span>
        The step <strong>{brief(step.name)}</strong> waits {WAITS[step.waits_for ?? ""]?.(step)}.
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
  const [open, setOpen] = useState(true);
  return (
    <section className="card step-panel" id="step" aria-label={`Step ${brief(step.name, 100)}`}>
      <header>
        <h2>
          Step {brief(step.name, 100)} <State of={step.state} />
        </h2>
        <div className="row">
          <Link to="/jobs/$id" params={{ id: step.job }} className="button">Open job and log</Link>
          <button className="plain fold-panel" aria-expanded={open} onClick={() => setOpen(!open)}>{open ? "Hide" : "Show"}</button>
        </div>
      </header>
      {open && (
        <>
      {step.waits_for && step.waits_for in WAITS && <Waits run={run} step={step} />}
      <Facts
        of={[
          ["Worker", step.worker && <WorkerLink name={step.worker} />],
          ["Attempt", step.attempt || undefined],
          ["Ran", step.started_at && <Took from={step.started_at} to={step.finished_at} ms={step.duration_ms} />],
          ["Waits for", step.waits_for && { approval: "approval", event: "an event", time: "its time", members: "its own items or steps", plan: "the planner" }[step.waits_for]],
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
        </>
      )}
    </section>
  );
}
