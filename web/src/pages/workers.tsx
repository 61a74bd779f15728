import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { call, get, type Job, type Page, post, segment, type Worker, type WorkerFigures } from "../api/client";
import { anyChanged, kindAdded, kindChanged } from "../api/live";
import { Ago, Card, Does, Empty, Fault, Facts, JobLink, State, Tags, Took, WorkerLink } from "../parts/basics";
import { useMay } from "../parts/gate";
import { Json } from "../parts/json";
import { Pages } from "../parts/pages";
import { brief, title } from "../parts/text";
import { useTitle } from "../parts/title";

const live = kindChanged("worker_");

export function Workers() {
  useTitle("Workers");
  return (
    <>
      <header className="page-head">
        <h1>Workers</h1>
      </header>
      <Pages<Worker>
        path="workers"
        label="Workers"
        meta={live}
        id={(worker) => worker.worker}
        empty="No worker has registered here. Start one: windlass worker --allow-commands"
        columns={[
          { name: "State", cell: (worker) => <><State of={worker.state} />{worker.draining && <span className="tag">draining</span>}</> },
          { name: "Name", cell: (worker) => <WorkerLink name={worker.worker} /> },
          { name: "Tags", cell: (worker) => <Tags of={worker.tags} /> },
          { name: "Slots", cell: (worker) => worker.slots || "" },
          { name: "Last seen", cell: (worker) => <Ago time={worker.last_seen} /> },
          { name: "Registered", cell: (worker) => <Ago time={worker.registered_at} />, opt: true },
          { name: "", cell: (worker) => <Drain worker={worker} />, opt: true },
        ]}
      />
    </>
  );
}

function Drain({ worker }: { worker: Worker }) {
  const { edit } = useMay();
  if (!edit) return null;
  const act = () => post(`workers/${segment(worker.worker)}/drain`, { draining: !worker.draining });
  return (
    <Does act={act} said={worker.draining ? "The worker claims jobs again." : "The worker finishes its jobs and claims no more."}>
      {worker.draining ? "Undrain" : "Drain"}
    </Does>
  );
}

const share = (failed: number, completed: number) =>
  failed + completed === 0 ? "no attempt" : `${failed.toLocaleString()} of ${(failed + completed).toLocaleString()} attempts, ${((failed / (failed + completed)) * 100).toFixed(1)} %`;

/** A worker that fails much more often than the others has something wrong with it, not with its jobs. */
function FailuresCard({ name }: { name: string }) {
  const found = useQuery({
    queryKey: ["worker-figures", name],
    queryFn: () => get<WorkerFigures>(`workers/${segment(name)}/figures`),
    meta: kindAdded("completed", "failed", "requeued"),
  });
  const figures = found.data;
  if (!figures) return <Fault error={found.error} />;
  const others = { failed: figures.fleet_failed - figures.failed, completed: figures.fleet_completed - figures.completed };
  const rate = (failed: number, completed: number) => (failed + completed > 0 ? failed / (failed + completed) : 0);
  const odd = figures.failed >= 5 && rate(figures.failed, figures.completed) > 2 * rate(others.failed, others.completed) + 0.05;
  return (
    <Card title="Failures in the last day">
      {odd && <p className="note">This worker fails much more often than the others.</p>}
      <Facts of={[["This worker", share(figures.failed, figures.completed)], ["All other workers", share(others.failed, others.completed)]]} />
    </Card>
  );
}

export function WorkerPage() {
  const { name } = useParams({ from: "/workers/$name" });
  const { edit } = useMay();
  const navigate = useNavigate();
  const found = useQuery({ queryKey: ["worker", name], queryFn: () => get<Worker>(`workers/${segment(name)}`), meta: live });
  const held = useQuery({
    queryKey: ["held", name],
    queryFn: () => get<Page<Job>>("jobs", { worker: name, limit: 100, commands: true }),
    meta: anyChanged,
  });
  const worker = found.data;
  useTitle(name, worker?.state);
  return (
    <>
      <header className="page-head">
        <h1>{brief(name, 100)}</h1>
        {worker && <State of={worker.state} />}
        {worker?.draining && <span className="tag">draining</span>}
        <span className="grow" />
        {worker && <Drain worker={worker} />}
        {worker && edit && (
          <Does
            className="danger"
            act={() => call("DELETE", `workers/${segment(name)}`)}
            ask={`Remove the worker ${name}? Jobs it holds count as lost and go to others.`}
            said="The worker was removed."
            then={() => void navigate({ to: "/workers" })}
          >
            Remove
          </Does>
        )}
      </header>
      <Fault error={found.error} />
      {worker && (
        <Facts
          of={[
            ["Last seen", <Ago time={worker.last_seen} />],
            ["Registered", <Ago time={worker.registered_at} />],
            ["Slots", worker.slots],
            ["Tags", <Tags of={worker.tags} />],
            ["Token of", worker.owner && brief(worker.owner)],
          ]}
        />
      )}
      <FailuresCard name={name} />
      <Card title="Jobs in hand" side={<Link to="/jobs" search={{ worker: name }}>As a list</Link>}>
        <Fault error={held.error} />
        {held.data?.items.length === 0 && <Empty>It holds no job now.</Empty>}
        <ul className="plain-list">
          {held.data?.items.map((job) => (
            <li key={job.id}>
              <State of={job.state} /> <JobLink id={job.id}>{brief(title(job), 100)}</JobLink> <span className="quiet"><Took from={job.claimed_at} /></span>
            </li>
          ))}
        </ul>
      </Card>
      {worker?.info != null && (
        <Card title="What it says about itself">
          <Json name="Information" value={worker.info} />
        </Card>
      )}
    </>
  );
}
