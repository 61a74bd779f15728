import { useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { address, type Event, toJson } from "../api/client";
import { follow } from "../api/stream";
import { Empty, JobLink, RunLink, WorkerLink } from "../parts/basics";
import { brief, clean } from "../parts/text";
import { useTitle } from "../parts/title";

const KEPT = 1000;
/** Of a busy server: more could not be read anyway. */
const DRAWN_MS = 250;
const KNOWN = new Set(["id", "namespace", "at", "type", "job", "worker", "run"]);

/** The events since the page was opened, the newest first. While it is paused they are kept, and shown when it goes on. */
function useEvents(type: string | undefined, paused: boolean) {
  const [shown, setShown] = useState<Event[]>([]);
  const [heard, setHeard] = useState(0);
  const [state, setState] = useState<"open" | "down">("open");
  const [missing, setMissing] = useState(false);
  const kept = useRef<Event[]>([]);
  const isPaused = useRef(paused);
  const draw = () => {
    if (!isPaused.current) setShown(kept.current.slice(-KEPT).reverse());
  };
  useEffect(() => {
    isPaused.current = paused;
    draw();
  }, [paused]);
  useEffect(() => {
    kept.current = [];
    setShown([]);
    setHeard(0);
    setMissing(false);
    let count = 0;
    let waiting = false;
    const hear = (message: MessageEvent) => {
      if (message.type === "gap") return setMissing(true);
      count++;
      kept.current.push(JSON.parse(message.data));
      if (kept.current.length > KEPT * 2) kept.current = kept.current.slice(-KEPT);
      if (waiting) return;
      waiting = true;
      setTimeout(() => {
        waiting = false;
        setHeard(count);
        draw();
      }, DRAWN_MS);
    };
    return follow({ url: () => address("events", { type, after: kept.current.at(-1)?.id }), kinds: [...KINDS, "gap"], hear, state: setState });
  }, [type]);
  return { shown, heard, state, missing };
}

export function Events() {
  const { type } = useSearch({ from: "/events" });
  const navigate = useNavigate({ from: "/events" });
  const [paused, setPaused] = useState(false);
  const { shown, heard, state, missing } = useEvents(type, paused);
  const [pausedAt, setPausedAt] = useState(0);
  useTitle("Events", [type, paused && "paused"].filter(Boolean).join(", "));
  const pause = () => {
    setPausedAt(heard);
    setPaused(!paused);
  };
  return (
    <>
      <header className="page-head">
        <h1>Events</h1>
        <span className="quiet" role="status">
          {heard.toLocaleString()} since this page was opened or its filter changed
          {paused && `, ${(heard - pausedAt).toLocaleString()} of them since it was paused`}
          {state === "down" && " · reconnecting…"}
        </span>
        <span className="grow" />
        <select aria-label="Type" value={type ?? ""} onChange={(event) => void navigate({ search: event.target.value ? { type: event.target.value } : {} })}>
          <option value="">all types</option>
          {KINDS.map((kind) => <option key={kind}>{kind}</option>)}
        </select>
        <button aria-pressed={paused} onClick={pause}>{paused ? "Go on" : "Pause"}</button>
      </header>
      {missing && <p className="note">Some events are missing here: more happened than the connection could carry, or it was away for too long.</p>}
      {shown.length === 0 && <Empty>{type ? `No event of the type ${brief(type, 60)} has come` : "Nothing has happened"} since this page was opened.{paused && " It is paused."}</Empty>}
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
      .map(([name, value]) => `${name}: ${typeof value === "string" ? value : toJson(value)}`)
      .join(", "),
    200,
  );

const KINDS = [
  "submitted", "ready", "claimed", "started", "progress", "completed", "failed", "requeued", "released", "cancel_requested",
  "cancelled", "skipped", "worker_registered", "worker_online", "worker_unreachable", "worker_offline", "worker_draining",
  "worker_undrained", "worker_deleted", "run_started", "run_grew", "run_finished", "definition_put", "definition_deleted",
  "linked", "unlinked", "record_put", "record_deleted", "told",
];
