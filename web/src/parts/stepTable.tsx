// The steps of a run as a table that can be searched.
import { useEffect, useState } from "react";
import type { Step } from "../api/client";
import { Empty, State, Took, WorkerLink } from "./basics";
import { brief } from "./text";

/** What needs attention comes first. */
const ORDER = ["failed", "running", "claimed", "pending", "scheduled", "blocked", "cancelled", "skipped", "completed"];
const FIRST = 50;
const MORE = 500;

type Props = {
  steps: Step[];
  chosen?: string;
  choose: (step: Step) => void;
  state: string;
  setState: (state: string) => void;
  /** Not all steps of the run are here: a search needs the others, too. */
  isPart: boolean;
  loadAll: () => void;
};

export function StepTable({ steps, chosen, choose, state, setState, isPart, loadAll }: Props) {
  const [search, setSearch] = useState("");
  const [most, setMost] = useState(FIRST);
  useEffect(() => setMost(FIRST), [search, state]);
  useEffect(() => {
    if (isPart && (search || state)) loadAll();
  }, [isPart, search !== "" || state !== ""]);
  const counts = new Map<string, number>();
  for (const step of steps) counts.set(step.state, (counts.get(step.state) ?? 0) + 1);
  const wanted = search.toLowerCase();
  const fits = steps.filter((step) => (!state || step.state === state) && step.name.toLowerCase().includes(wanted));
  const place = new Map(ORDER.map((one, index) => [one, index]));
  const shown = fits.toSorted((a, b) => place.get(a.state)! - place.get(b.state)!);
  return (
    <>
      <div className="row wrap">
        <input data-search type="search" placeholder="Search steps by name" aria-label="Search steps by name" value={search} onChange={(event) => setSearch(event.target.value)} />
        <select aria-label="State of steps" value={state} onChange={(event) => setState(event.target.value)}>
          <option value="">all states</option>
          {ORDER.filter((one) => counts.has(one) || one === state).map((one) => (
            <option key={one} value={one}>
              {one} ({(counts.get(one) ?? 0).toLocaleString()})
            </option>
          ))}
        </select>
        <span className="quiet" role="status">
          {fits.length.toLocaleString()} {fits.length === 1 ? "step" : "steps"}
        </span>
      </div>
      {shown.length === 0 && <Empty>No step fits.</Empty>}
      {shown.length > 0 && (
        <div className="wide-table steps" tabIndex={0} role="region" aria-label="Steps">
          <table>
            <thead>
              <tr>
                <th scope="col">State</th>
                <th scope="col">Step</th>
                <th scope="col" className="opt">Worker</th>
                <th scope="col">Took</th>
                <th scope="col" className="opt">Error</th>
              </tr>
            </thead>
            <tbody>
              {shown.slice(0, most).map((step) => (
                <tr key={step.job} className={step.job === chosen ? "current" : ""} aria-current={step.job === chosen}>
                  <td><State of={step.state} /></td>
                  <td>
                    <button className="plain name" onClick={() => choose(step)}>{brief(step.name, 100)}</button>
                  </td>
                  <td className="opt"><WorkerLink name={step.worker} /></td>
                  <td><Took from={step.started_at} to={step.finished_at} ms={step.duration_ms} /></td>
                  <td className="opt bad-text">{brief(step.error?.message ?? step.error?.reason, 120)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {shown.length > most && <button onClick={() => setMost(most + MORE)}>Show more ({(shown.length - most).toLocaleString()} left)</button>}
    </>
  );
}
