import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { address, type Artifact, get, type Job, type Page, post, retryJob, type Run, type Settings, type Why } from "../api/client";
import { jobChanged, jobOrOthersChanged, runChanged } from "../api/live";
import { Ago, Card, Copy, Does, Fault, Facts, JobLink, RunLink, State, Tags, Took, WorkerLink } from "../parts/basics";
import { useMay } from "../parts/gate";
import { Json } from "../parts/json";
import { Log } from "../parts/log";
import { Attempts } from "../parts/attempts";
import { brief, clean, size, title } from "../parts/text";
import { useTitle } from "../parts/title";

const FINAL = new Set(["completed", "failed", "cancelled", "skipped"]);

export function JobPage(): ReactNode {
  const { id } = useParams({ from: "/jobs/$id" });
  const found = useQuery({ queryKey: ["job", id], queryFn: ({ signal }) => get<Job>(`jobs/${id}`, {}, signal), meta: jobChanged(id) });
  const job = found.data;
  useTitle(job ? title(job) : "Job", job?.state);
  if (!job) return found.error ? <Fault error={found.error} /> : <p className="empty">Loading…</p>;
  const ended = FINAL.has(job.state);
  return (
    <>
      <header className="page-head">
        <h1>{brief(title(job), 120)}</h1>
        <State of={job.state} />
        <span className="mono quiet">{job.id}</span>
        <Copy text={job.id} label="Copy id" />
        <span className="grow" />
        <Actions job={job} />
      </header>
      <Fault error={found.error} />
      {job.error && (
        <p className={ended ? "fault" : "note"} role={ended ? "alert" : undefined}>
          <strong>{job.error.reason}</strong> {clean(job.error.message ?? "").slice(0, 5000)}
        </p>
      )}
      {job.progress && !ended && (
        <label className="progress">
          <progress max={100} value={job.progress.percent} /> {Math.round(job.progress.percent)} % {brief(job.progress.message, 200)}
        </label>
      )}
      {!ended && <WhyCard job={job} />}
      <div className="columns">
        <Card title="About">
          <Facts
            of={[
              ["Created", <><Ago time={job.created_at} />{job.owner && <> by {brief(job.owner, 60)}</>}</>],
              ["Waited", job.claimed_at && <Took from={job.created_at} to={job.claimed_at} />],
              ["Ran", job.claimed_at && <Took from={job.claimed_at} to={job.finished_at} />],
              ["Worker", job.worker && <WorkerLink name={job.worker} />],
              ["Run", job.run && <RunLink id={job.run} />],
              ["Step", job.node && clean(job.node)],
              ["Definition", job.definition && <Link to="/definitions/$name" params={{ name: job.definition.split("@")[0] }}>{clean(job.definition)}</Link>],
              ["Tags", job.tags.length > 0 && <Tags of={job.tags} />],
              ["Priority", job.priority !== 100 && job.priority],
              ["Concurrency", job.concurrency && `${clean(job.concurrency.key)}, at most ${job.concurrency.limit}`],
              ["Starts", job.state === "scheduled" && <Ago time={job.run_at} />],
              ["Lease ends", !ended && job.lease_until && <Ago time={job.lease_until} />],
              ["Trace", job.trace_url && /^https?:/.test(job.trace_url) ? <a href={job.trace_url} rel="noreferrer">{job.trace}</a> : job.trace && <span className="mono">{job.trace}</span>],
              ["Retry of", job.retry_of && <JobLink id={job.retry_of} />],
              ["Retried as", job.retried_as && <JobLink id={job.retried_as} />],
              ["Retried by", job.retried_by && job.retried_by !== job.retried_as && <JobLink id={job.retried_by} />],
              ["Runs after", job.after?.length ? job.after.slice(0, 20).map((one) => <JobLink key={one} id={one} />) : undefined],
              ["Runs before", job.before?.length ? job.before.slice(0, 20).map((one) => <JobLink key={one} id={one} />) : undefined],
              ["Facets", Object.keys(job.facets ?? {}).length > 0 && <Tags of={Object.entries(job.facets ?? {}).map(([name, value]) => `${name}:${value}`)} />],
            ]}
          />
        </Card>
        <Card title="Attempts">
          <Attempts job={job} />
        </Card>
      </div>
      <Card title="Log">
        <Log job={job.id} running={!ended} />
      </Card>
      {job.payload !== undefined && job.payload !== null && (
        <Card title="Payload">
          <Json name="Payload" value={job.payload} />
        </Card>
      )}
      {job.result !== undefined && job.result !== null && (
        <Card title="Result">
          <Json name="Result" value={job.result} />
        </Card>
      )}
      <Artifacts job={job.id} />
    </>
  );
}

function Actions({ job }: { job: Job }) {
  const { edit } = useMay();
  const navigate = useNavigate();
  if (!edit) return null;
  if (FINAL.has(job.state) && job.run) return <RetryRun job={job} run={job.run} />;
  if (FINAL.has(job.state)) {
    return (
      <Does
        act={() => retryJob(job)}
        ask={(job.retried_by || job.retried_as) && `The job was retried before, as ${job.retried_by ?? job.retried_as}. Run it once more?`}
        said="A new job runs it again."
        then={(reply) => void navigate({ to: "/jobs/$id", params: { id: (reply as { id: string }).id } })}
      >
        Retry
      </Does>
    );
  }
  const held = job.state === "claimed" || job.state === "running";
  return (
    <>
      <Does className="danger" act={() => post(`jobs/${job.id}/cancel`, {}, { mode: held ? "drain" : undefined })} said="The job is cancelled." ask={held ? "Cancel this job? Its worker is told, and ends it." : "Cancel this job?"}>
        {job.cancel_requested ? "Cancelling…" : "Cancel"}
      </Does>
      {held && (
        <Does className="danger" act={() => post(`jobs/${job.id}/cancel`, {}, { mode: "revoke" })} said="The job was ended." ask="End this job now, without waiting for its worker?">
          Revoke
        </Does>
      )}
    </>
  );
}

/** A step runs again with its run, where others wait for what it gives. */
function RetryRun({ job, run }: { job: Job; run: string }) {
  const navigate = useNavigate();
  const found = useQuery({ queryKey: ["run-head", run], queryFn: () => get<Run>(`runs/${run}`), meta: runChanged(run, () => new Set()) });
  const state = found.data?.state;
  if (state === "running") return <span className="quiet">A step runs again with its run, once that has ended: <RunLink id={run}>open the run</RunLink></span>;
  if (state !== "failed" && state !== "cancelled") return null;
  return (
    <Does
      ask={`The job is the step ${job.node ?? ""} of a run. Retry the run? A new one goes on from where it failed; steps that completed are not repeated.`}
      act={() => post<{ id: string }>(`runs/${run}/retry`)}
      said="A new run does again what did not complete."
      then={(reply) => void navigate({ to: "/runs/$id", params: { id: (reply as { id: string }).id } })}
    >
      Retry its run
    </Does>
  );
}

function WhyCard({ job }: { job: Job }) {
  const { edit } = useMay();
  const found = useQuery({
    queryKey: ["why", job.id, job.state],
    queryFn: ({ signal }) => get<Why>(`jobs/${job.id}/why`, {}, signal),
    meta: jobOrOthersChanged(job.id),
  });
  const why = found.data;
  return (
    <Card title={job.state === "running" || job.state === "claimed" ? "What it is doing" : "Why it is not running"} id="why">
      <Fault error={found.error} />
      {!why && !found.error && <p className="empty">Looking…</p>}
      {why?.reasons.map((reason, index) => (
        <div key={reason.code + index} className={`reason ${index === 0 ? "first" : ""}`} data-code={reason.code}>
          <p>{clean(reason.text)}</p>
          {reason.help && (
            <p className="help">
              <code>{clean(reason.help)}</code>
              {/^Start one: windlass worker/.test(reason.help) && <WorkerToken />}
            </p>
          )}
          <div className="row wrap">
            {edit && <Helps code={reason.code} job={job} />}
            {reason.jobs?.map((id) => <JobLink key={id} id={id} />)}
            {reason.workers?.map((name) => <WorkerLink key={name} name={name} />)}
          </div>
        </div>
      ))}
    </Card>
  );
}

/** A worker needs a token, which the first command line that one tries lacks. Only admins may read where the data is. */
function WorkerToken() {
  const { admin } = useMay();
  const settings = useQuery({ queryKey: ["settings"], queryFn: () => get<Settings>("settings"), enabled: admin });
  const data = settings.data?.items.find((one) => one.name === "data")?.value;
  return (
    <>
      {" "}
      It needs a worker's token: beside <code>windlass up</code>{" "}
      {data ? <>add <code>--token-file {clean(data)}/worker.token</code></> : <>add <code>--token-file FOLDER/worker.token</code> with the folder of its data (its <code>--data</code>, else <code>.windlass</code>)</>}
      ; elsewhere make one with <code>windlass token create NAME --role worker</code>.
    </>
  );
}

/** The button that does what the reason says would help. */
function Helps({ code, job }: { code: string; job: Job }) {
  const step = job.run && job.node && `runs/${job.run}/steps/${encodeURIComponent(job.node)}`;
  if (code === "waits_for_approval" && step) {
    return (
      <>
        <Does className="primary" act={() => post(`${step}/approve`)} said="Approved.">Approve</Does>
        <Does className="danger" act={() => post(`${step}/reject`)} said="Rejected." ask="Reject this step? It fails.">Reject</Does>
      </>
    );
  }
  if (code === "no_worker_offers" || code === "workers_offline" || code === "workers_busy") {
    return <Link to="/workers" className="button">Show workers</Link>;
  }
  return null;
}

function Artifacts({ job }: { job: string }) {
  const found = useQuery({
    queryKey: ["artifacts", job],
    queryFn: () => get<Page<Artifact>>("artifacts", { job, limit: 200 }),
    meta: jobChanged(job),
  });
  if (!found.data?.items.length) return null;
  return (
    <Card title="Artifacts">
      <ul className="plain-list">
        {found.data.items.map((file) => (
          <li key={file.id}>
            <a href={address(`artifacts/${file.id}/content`)} download={file.name}>
              {brief(file.name, 120)}
            </a>{" "}
            <span className="quiet">{size(file.size)}</span>
          </li>
        ))}
      </ul>
    </Card>
  );
}
