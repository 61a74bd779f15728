import { useNavigate, useSearch } from "@tanstack/react-router";
import type { Run } from "../api/client";
import { kindAdded, kindChanged, type Pulse } from "../api/live";
import { Ago, RunLink, State, Took } from "../parts/basics";
import { Pages } from "../parts/pages";
import { brief } from "../parts/text";
import { useTitle } from "../parts/title";

const STATES = ["running", "completed", "failed", "cancelled"];
const runs = kindChanged("run_");
const jobs = kindAdded("completed", "failed");
/** A run begins and ends by events of its own; how far it is, its jobs say. */
const live = { live: (pulse: Pulse) => runs.live(pulse) || jobs.live(pulse) };

export function Runs() {
  const { state, workflow } = useSearch({ from: "/runs" });
  useTitle("Runs", [state, workflow].filter(Boolean).join(", "));
  const navigate = useNavigate({ from: "/runs" });
  const set = (next?: string) => void navigate({ search: (old: Record<string, string>) => ({ ...old, state: next }) as Record<string, string> });
  return (
    <>
      <header className="page-head">
        <h1>Runs</h1>
        {workflow && <span className="quiet">of {brief(workflow)}</span>}
      </header>
      <div className="row wrap" role="group" aria-label="States">
        {STATES.map((one) => (
          <button key={one} className="chip" aria-pressed={one === state} onClick={() => set(one === state ? undefined : one)}>
            {one}
          </button>
        ))}
      </div>
      <Pages<Run>
        path="runs"
        label="Runs"
        query={{ state, workflow }}
        meta={live}
        id={(run) => run.id}
        empty={state || workflow ? "No run fits this filter." : "There are no runs here. Start one: windlass workflow run NAME"}
        columns={[
          { name: "State", cell: (run) => <State of={run.state} /> },
          { name: "Workflow", cell: (run) => <RunLink id={run.id}>{brief(run.workflow ?? "(inline)", 80)}</RunLink> },
          { name: "Steps", cell: (run) => <Steps run={run} /> },
          { name: "Started", cell: (run) => <Ago time={run.created_at} /> },
          { name: "Took", cell: (run) => <Took from={run.created_at} to={run.finished_at} />, opt: true },
          { name: "By", cell: (run) => brief(run.owner, 40), opt: true },
        ]}
      />
    </>
  );
}

export function Steps({ run }: { run: Run }) {
  const parts: [string, number][] = [
    ["completed", run.completed],
    ["failed", run.failed],
    ["cancelled", run.cancelled],
    ["skipped", run.skipped],
    ["open", run.open],
  ];
  const words = parts.filter(([, count]) => count > 0).map(([name, count]) => `${count} ${name}`);
  return (
    <span title={words.join(", ")}>
      <span className="stack" aria-hidden="true">
        {parts.map(([name, count]) => count > 0 && <span key={name} className={name} style={{ flexGrow: count }} />)}
      </span>{" "}
      {run.total - run.open}/{run.total}
      {run.failed > 0 && <span className="bad-text"> {run.failed} failed</span>}
    </span>
  );
}
