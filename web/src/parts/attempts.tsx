// The tries at a job, each with how long it waited and ran, on one scale.
import type { Job } from "../api/client";
import { now } from "../api/live";
import { Empty, useSecond, WorkerLink } from "./basics";
import { brief, length } from "./text";

type Try = { number: number; worker: string; claimed?: number; ended?: number; started?: number; error?: string; state: string };

function tries(job: Job): Try[] {
  const time = (text?: string | null) => (text ? Date.parse(text) : undefined);
  const past: Try[] = (job.attempts ?? []).map((one) => ({
    number: one.number,
    worker: one.worker,
    claimed: time(one.claimed_at),
    started: time(one.started_at),
    ended: time(one.ended_at),
    error: `${one.error.reason} ${one.error.message ?? ""}`,
    state: "failed",
  }));
  const known = past.some((one) => one.number === job.attempt);
  if (job.attempt > 0 && !known && job.claimed_at) {
    past.push({
      number: job.attempt,
      worker: job.worker ?? "",
      claimed: time(job.claimed_at),
      started: time(job.started_at),
      ended: time(job.finished_at),
      error: job.error ? `${job.error.reason} ${job.error.message ?? ""}` : undefined,
      state: job.state,
    });
  }
  return past;
}

export function Attempts({ job }: { job: Job }) {
  useSecond();
  const all = tries(job);
  if (all.length === 0) return <Empty>No worker has taken it yet.</Empty>;
  const from = Date.parse(job.created_at);
  const to = Math.max(job.finished_at ? Date.parse(job.finished_at) : now(), from + 1);
  const percent = (time: number) => `${Math.max(0, Math.min(100, ((time - from) / (to - from)) * 100))}%`;
  let waitedFrom = from;
  return (
    <ol className="attempts">
      {all.slice(-50).map((one) => {
        const claimed = one.claimed ?? waitedFrom;
        const ended = one.ended ?? to;
        const waited = claimed - waitedFrom;
        const waits = { left: percent(waitedFrom), width: `calc(${percent(claimed)} - ${percent(waitedFrom)})` };
        const runs = { left: percent(claimed), width: `max(2px, calc(${percent(ended)} - ${percent(claimed)}))` };
        waitedFrom = ended;
        return (
          <li key={one.number}>
            <div>
              <strong>{one.number}</strong> <WorkerLink name={one.worker} />{" "}
              <span className="quiet">
                waited {length(waited)}, ran {length(ended - claimed)}
              </span>
            </div>
            <div className="bar" aria-hidden="true">
              <span className="waits" style={waits} />
              <span className={`runs ${one.state}`} style={runs} />
            </div>
            {one.error && <div className="bad-text">{brief(one.error, 500)}</div>}
          </li>
        );
      })}
    </ol>
  );
}
