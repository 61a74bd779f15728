// What made a run fail: the step, its error, the end of its log, and what one can do.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import { get, type Job, type LogPage, type Page, type Run, type Step } from "../api/client";
import { runChanged } from "../api/live";
import { afterReturns } from "./ansi";
import { Fault } from "./basics";
import { levelOf, plain } from "./level";
import { brief, clean } from "./text";

const FAILURES_MAX = 200;
const LINES = 8;
const LINE_MAX = 300;
/** Pages of a megabyte: of a longer log the end is not looked for here. */
const PAGES_MAX = 4;

/** A step as a list of jobs has it. */
const stepOf = (job: Job): Step => ({
  name: job.node ?? "",
  job: job.id,
  state: job.state,
  error: job.error,
  attempt: job.attempt,
  worker: job.worker,
  started_at: job.started_at ?? job.claimed_at,
  finished_at: job.finished_at,
  after: job.after,
});

/** The failed steps of a run, also of those that were not read: the last that were made come first, and the first may have failed. */
export function useFailures(run: Run | undefined, steps: Step[], isWhole: boolean): Step[] {
  const found = useQuery({
    queryKey: ["failures", run?.id],
    queryFn: ({ signal }) => get<Page<Job>>("jobs", { run: run!.id, state: "failed", limit: FAILURES_MAX }, signal).then((page) => page.items.map(stepOf)),
    enabled: !!run && run.failed > 0 && !isWhole,
    meta: run && runChanged(run.id, () => new Set()),
  });
  return useMemo(() => {
    const failed = steps.filter((step) => step.state === "failed");
    if (isWhole) return failed;
    const known = new Set(failed.map((step) => step.job));
    return [...failed, ...(found.data ?? []).filter((step) => !known.has(step.job))];
  }, [steps, isWhole, found.data]);
}

/** The failure that came first, and of what contains others the innermost: what contains it failed because of it. */
export function causeOf(failed: Step[]): Step | undefined {
  const contains = (owner: Step) => failed.some((step) => step !== owner && (step.name.startsWith(`${owner.name}[`) || step.name.startsWith(`${owner.name}/`)));
  const own = failed.filter((step) => !step.name.startsWith("~undo/"));
  const inner = failed.length > FAILURES_MAX ? own : own.filter((step) => !contains(step));
  return (inner.length ? inner : failed).toSorted((a, b) => (a.finished_at ?? "").localeCompare(b.finished_at ?? ""))[0];
}

async function endOfLog(job: string, signal: AbortSignal): Promise<string[] | null> {
  let text = "";
  let after = 0;
  for (let at = 0; at < PAGES_MAX; at++) {
    const page = await get<LogPage>(`jobs/${job}/logs`, { after }, signal);
    text = (text + page.pieces.map((piece) => piece.data).join("")).slice(-100_000);
    after = page.next;
    if (page.ended || page.pieces.length === 0) {
      const lines = text.split("\n").map((line) => clean(plain(afterReturns(line))).trimEnd()).filter(Boolean);
      const end = lines.slice(-LINES);
      // The line that explains a failure is not always among the last.
      const error = lines.slice(0, -LINES).findLast((line) => levelOf(line) === "error");
      const shown = error && !end.some((line) => levelOf(line) === "error") ? [error, "…", ...end] : end;
      return shown.map((line) => (line.length > LINE_MAX ? `${line.slice(0, LINE_MAX)}…` : line));
    }
  }
  return null;
}

type Props = { step: Step; others: number; choose: (step: Step) => void; showOthers: () => void; children?: ReactNode };

export function Failure({ step, others, choose, showOthers, children }: Props) {
  const found = useQuery({ queryKey: ["log-end", step.job], queryFn: ({ signal }) => endOfLog(step.job, signal), staleTime: Infinity });
  return (
    <section className="card failure" aria-label="What failed">
      <header>
        <h2>
          The step{" "}
          <button className="plain name" onClick={() => choose(step)} title={step.name}>
            {brief(step.name, 80)}
          </button>{" "}
          failed
        </h2>
        <div className="row wrap">
          {children}
          <Link to="/jobs/$id" params={{ id: step.job }} className="button">
            Open job and log
          </Link>
        </div>
      </header>
      {step.error && (
        <p className="bad-text">
          <strong>{step.error.reason}</strong> {clean(step.error.message ?? "").slice(0, 1000)}
        </p>
      )}
      <Fault error={found.error} />
      {found.data === null && <p className="quiet">Its log is too long to show the end of it here.</p>}
      {found.data && found.data.length > 0 && (
        <pre className="log-end" tabIndex={0} role="group" aria-label="The last lines of its log">
          {found.data.join("\n")}
        </pre>
      )}
      {found.data?.length === 0 && <p className="quiet">It wrote no log.</p>}
      {others > 0 && (
        <button className="small" onClick={showOthers}>
          {others.toLocaleString()} more {others === 1 ? "step" : "steps"} failed
        </button>
      )}
    </section>
  );
}
