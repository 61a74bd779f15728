// When each step ran.
import type { Step } from "../api/client";
import { now } from "../api/live";
import { useSecond } from "./basics";
import { brief, length } from "./text";

const ROWS_MAX = 200;

type Props = { steps: Step[]; from: string; to?: string | null; choose: (job: string) => void };

export function Gantt({ steps, from, to, choose }: Props) {
  useSecond();
  const begin = Date.parse(from);
  const end = Math.max(to ? Date.parse(to) : now(), begin + 1);
  const begun = steps.filter((step) => step.started_at).sort((a, b) => a.started_at!.localeCompare(b.started_at!));
  const percent = (time: number) => ((time - begin) / (end - begin)) * 100;
  if (begun.length === 0) return <p className="empty">No step has started yet.</p>;
  return (
    <>
      <ol className="gantt">
        {begun.slice(0, ROWS_MAX).map((step) => {
          const started = Date.parse(step.started_at!);
          const ended = step.finished_at ? Date.parse(step.finished_at) : end;
          const style = { left: `${percent(started)}%`, width: `max(3px, ${percent(ended) - percent(started)}%)` };
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
      {begun.length > ROWS_MAX && <p className="quiet">The first {ROWS_MAX} of {begun.length} that started are shown.</p>}
    </>
  );
}
