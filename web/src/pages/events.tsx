import { useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { address, type Event } from "../api/client";
import { Empty, JobLink, RunLink, WorkerLink } from "../parts/basics";
import { brief, clean } from "../parts/text";

const KEPT = 1000;
/** Of a busy server: more could not be read anyway. */
const DRAWN_MS = 250;
const KNOWN = new Set(["id", "namespace", "at", "type", "job", "worker", "run"]);

export function Events() {
  const { type } = useSearch({ from: "/events" });
  const navigate = useNavigate({ from: "/events" });
  const [paused, setPaused] = useState(false);
  const [shown, setShown] = useState<Event[]>([]);
  const [count, setCount] = useState(0);
  const kept = useRef<Event[]>([]);
  useEffect(() => {
    kept.current = [];
    setShown([]);
    if (paused) return;
    let heard = 0;
    let waiting = false;
    const source = new EventSource(address("events", { type }));
    const hear = (message: MessageEvent) => {
      heard++;
      kept.current.push(JSON.parse(message.data));
      if (kept.current.length > KEPT * 2) kept.current = kept.current.slice(-KEPT);
      if (waiting) return;
      waiting = true;
      setTimeout(() => {
        waiting = false;
        setCount(heard);
        setShown(kept.current.slice(-KEPT).reverse());
      }, DRAWN_MS);
    };
    for (const kind of KINDS) source.addEventListener(kind, hear);
    return () => source.close();
  }, [type, paused]);
  return (
    <>
      <header className="page-head">
        <h1>Events</h1>
        <span className="quiet" role="status">{count.toLocaleString()} since this page was opened</span>
        <span className="grow" />
        <select aria-label="Type" value={type ?? ""} onChange={(event) => void navigate({ search: event.target.value ? { type: event.target.value } : {} })}>
          <option value="">all types</option>
          {KINDS.map((kind) => <option key={kind}>{kind}</option>)}
        </select>
        <button aria-pressed={paused} onClick={() => setPaused(!paused)}>{paused ? "Go on" : "Pause"}</button>
      </header>
      {shown.length === 0 && <Empty>{paused ? "Paused." : "Nothing has happened since this page was opened."}</Empty>}
      {shown.length > 0 && (
        <div className="wide-table" tabIndex={0} role="region" aria-label="Events">
          <table>
            <thead>
              <tr><th scope="col">Time</th><th scope="col">Type</th><th scope="col">About</th><th scope="col">More</th></tr>
            </thead>
            <tbody>
              {shown.slice(0, 300).map((event) => (
                <tr key={event.id}>
                  <td><time dateTime={event.at}>{new Date(event.at).toLocaleTimeString()}</time></td>
                  <td>{clean(event.type)}</td>
                  <td>{event.job ? <JobLink id={event.job} /> : event.run ? <RunLink id={event.run} /> : event.worker ? <WorkerLink name={event.worker} /> : ""}</td>
                  <td className="quiet">{more(event)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

const more = (event: Event) =>
  brief(
    Object.entries(event)
      .filter(([name]) => !KNOWN.has(name))
      .map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`)
      .join(", "),
    200,
  );

const KINDS = [
  "submitted", "ready", "claimed", "started", "progress", "completed", "failed", "requeued", "released", "cancel_requested",
  "cancelled", "skipped", "worker_registered", "worker_online", "worker_unreachable", "worker_offline", "worker_draining",
  "worker_undrained", "worker_deleted", "run_started", "run_grew", "run_finished", "definition_put", "definition_deleted",
  "linked", "unlinked", "record_put", "record_deleted", "told",
];
