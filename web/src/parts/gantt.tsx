// When each step ran.
import type { Step } from "../api/client";
import { now } from "../api/live";
import { useSecond } from "./basics";
import { brief, length } from "./text";

const ROWS_MAX = 200;
const FAILED_MAX = 50;

/** A worker need not say that it starts: it ran from the claim on, as its duration says. */
function ran(step: Step): [number, number | undefined] {
  const end = step.finished_at ? Date.parse(step.finished_at) : undefined;
  return [end !== undefined && step.duration_ms != null ? end - step.duration_ms : Date.parse(step.started_at!), end];
}

type Props = { steps: Step[]; from: string; to?: string | null; choose: (job: string) => void };

export function Gantt({ steps, from, to, choose }: Props) {
  useSecond();
  const begin = Date.parse(from);
  const end = Math.max(to ? Date.parse(to) : now(), begin + 1);
  const begun = steps.filter((step) => step.started_at).sort((a, b) => a.started_at!.localeCompare(b.started_at!));
  const first = begun.slice(0, ROWS_MAX);
  const failed = begun.slice(ROWS_MAX).filter((step) => step.state === "failed").slice(0, FAILED_MAX);
  const percent = (time: number) => ((time - begin) / (end - begin)) * 100;
  if (begun.length === 0) return <p className="empty">No step has started yet.</p>;
  return (
    <>
      <ol className="gantt">
        {[...first, ...failed].map((step) => {
          const [started, finished] = ran(step);
          const ended = finished ?? end;
          // A bar at the very end has room for what must be seen of it.
          const style = { left: `clamp(0%, ${percent(started)}%, 100% - 4px)`, width: `max(4px, ${percent(ended) - percent(started)}%)` };
          return (
            <li key={step.job}>
              <button className="plain" onClick={() => choose(step.job)} title={step.name}>
                {brief(step.name, 60)}
              </button>
              <span className="bar">
                <span className={`runs ${step.state}`} style={style} title={length(ended - started)} />
              </span>
              <span className="quiet">{length(ended - started)}</span>
            </li>
          );
        })}
      </ol>
      {begun.length > ROWS_MAX && <p className="quiet">The first {ROWS_MAX} of the {begun.length.toLocaleString()} steps that started are shown{failed.length > 0 && ", and those that failed"}.</p>}
    </>
  );
}
