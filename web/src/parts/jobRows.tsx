// The rows of the list of jobs. Only those in sight are there; while one scrolls they are given other jobs instead of being made
// anew, and the list listens for them, so that a row is nothing but text.
import { useNavigate, useRouter } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, type MouseEvent, useEffect, useRef, useState } from "react";
import type { Job } from "../api/client";
import type { useJobList } from "../api/jobList";
import { now } from "../api/live";
import { State, useSecond } from "./basics";
import { useMay } from "./gate";
import { useKeys } from "./keys";
import { ago, brief, length, local, title } from "./text";

const ROW = 40;
/** The line of headings stays in sight. */
const HEAD = 32;
const OVERSCAN = 4;
export const FINAL = new Set(["completed", "failed", "cancelled", "skipped"]);

type ListProps = { list: ReturnType<typeof useJobList>; chosen: Set<string>; setChosen: (chosen: Set<string>) => void };

export function Rows({ list, chosen, setChosen }: ListProps) {
  const scroll = useRef<HTMLDivElement>(null);
  const navigate = useNavigate();
  const router = useRouter();
  const { edit } = useMay();
  const [at, setAt] = useState(-1);
  const second = useSecond();
  const { rows } = list;
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroll.current,
    estimateSize,
    overscan: OVERSCAN,
    scrollPaddingStart: HEAD,
  });
  const items = virtual.getVirtualItems();
  const places = Math.ceil((virtual.scrollRect?.height ?? 0) / ROW) + 2 * OVERSCAN + 1;
  const end = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (end >= rows.length - 200) list.more();
  }, [end, rows.length]);
  const top = items[0]?.index ?? 0;
  useEffect(() => list.setTop(top === 0), [top === 0]);
  const choose = (id: string) => {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    setChosen(next);
  };
  const open = (id: string) => void navigate({ to: "/jobs/$id", params: { id } });
  const move = (by: number) => {
    const next = Math.max(0, Math.min(rows.length - 1, at + by));
    setAt(next);
    virtual.scrollToIndex(next);
    return true;
  };
  useKeys((key) => {
    if (key === "j" || key === "ArrowDown") return move(1);
    if (key === "k" || key === "ArrowUp") return move(-1);
    const job = rows[at];
    if (key === "Enter" && job && (document.activeElement === document.body || document.activeElement === scroll.current)) {
      open(job.id);
      return true;
    }
    if (key === "x" && job && edit) {
      choose(job.id);
      return true;
    }
  });
  const click = (event: MouseEvent) => {
    const target = event.target as HTMLElement;
    const id = target.closest<HTMLElement>("[data-id]")?.dataset.id;
    if (!id || event.button !== 0) return;
    if (target instanceof HTMLInputElement) choose(id);
    else if (target.closest("a") && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey) {
      event.preventDefault();
      open(id);
    }
  };
  const base = router.buildLocation({ to: "/jobs" }).href;
  return (
    <div className={edit ? "table jobs pickable" : "table jobs"} role="table" aria-label="Jobs" aria-rowcount={rows.length}>
      {list.hasNew && (
        <button className="new-rows" onClick={() => scroll.current?.scrollTo({ top: 0 })}>
          New jobs ↑
        </button>
      )}
      <div className="scroll" ref={scroll} tabIndex={0} role="rowgroup" aria-label="Rows" onClick={click}>
        <div className="tr head" role="row">
          {edit && <span role="columnheader" aria-label="Chosen" className="pick" />}
          <span role="columnheader">State</span>
          <span role="columnheader" className="wide">Job</span>
          <span role="columnheader">Id</span>
          <span role="columnheader" className="opt">Worker</span>
          <span role="columnheader" className="opt">Tries</span>
          <span role="columnheader">Took</span>
          <span role="columnheader">Created</span>
        </div>
        <div style={{ height: virtual.getTotalSize(), position: "relative" }}>
          {items.map(({ index, start }) => (
            <Row
              key={index % places}
              job={rows[index]}
              state={rows[index].state}
              second={second}
              index={index}
              top={start}
              base={base}
              current={index === at}
              chosen={chosen.has(rows[index].id)}
              edit={edit}
            />
          ))}
        </div>
      </div>
    </div>
  );
}

const estimateSize = () => ROW;

type RowProps = {
  job: Job;
  /** Beside the job, whose fields change in place. What else changes in it is seen with the next second. */
  state: string;
  second: number;
  index: number;
  top: number;
  base: string;
  current: boolean;
  chosen: boolean;
  edit: boolean;
};

const Row = memo(function Row({ job, index, top, base, current, chosen, edit }: RowProps) {
  const name = title(job);
  const ended = FINAL.has(job.state) ? (job.finished_at ?? job.claimed_at) : undefined;
  return (
    <div
      className={`tr${current ? " current" : ""}`}
      role="row"
      aria-rowindex={index + 1}
      data-id={job.id}
      style={{ transform: `translateY(${top}px)` }}
    >
      {edit && (
        <span role="cell" className="pick">
          <input type="checkbox" checked={chosen} readOnly aria-label={`Choose ${brief(name, 40)}`} />
        </span>
      )}
      <span role="cell">
        <State of={job.state} />
      </span>
      <span role="cell" className="wide">
        <a href={`${base}/${job.id}`}>{brief(name, 120)}</a>
        {job.error?.message && <span className="bad-text"> {brief(job.error.message, 160)}</span>}
      </span>
      <span role="cell" className="mono quiet" title={job.id}>{job.id.slice(-8)}</span>
      <span role="cell" className="opt">{brief(job.worker, 40)}</span>
      <span role="cell" className="opt">{job.attempt > 1 ? job.attempt : ""}</span>
      <span role="cell" className={job.claimed_at ? "" : "quiet"}>
        {job.claimed_at ? length((ended ? Date.parse(ended) : now()) - Date.parse(job.claimed_at)) : "–"}
      </span>
      <span role="cell" title={local(job.created_at)}>{ago(now() - Date.parse(job.created_at))}</span>
    </div>
  );
});
