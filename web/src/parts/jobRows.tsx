// The list of jobs. Only the rows in sight are there; the list listens for them, so that a row is nothing but text.
import { useNavigate, useRouter } from "@tanstack/react-router";
import { type MouseEvent, useEffect, useLayoutEffect, useRef, useState } from "react";
import type { useJobList } from "../api/jobList";
import { useSecond } from "./basics";
import { useMay } from "./gate";
import { type Look, Painter, ROW } from "./jobPainter";
import { useKeys } from "./keys";

/** The line of headings stays in sight. */
const HEAD = 32;
/** Rows before and behind those in sight: the browser may scroll a little before it asks for them. */
const AROUND = 3;
/** Older ones are asked for before one comes to the end. */
const AHEAD = 200;

type ListProps = { list: ReturnType<typeof useJobList>; chosen: Set<string>; setChosen: (chosen: Set<string>) => void };

/** Draws what is in sight whenever one scrolls, and whenever what it shows may have changed. */
function usePainter(look: Look, seen: (first: number, end: number) => void) {
  const scroll = useRef<HTMLDivElement>(null);
  const place = useRef<HTMLDivElement>(null);
  const draw = useRef(() => {});
  const painter = useRef<Painter>(null);
  // The height is read only when it changes: to ask for it makes the browser lay everything out.
  const height = useRef(0);
  useLayoutEffect(() => {
    draw.current = () => {
      if (!scroll.current || !place.current) return;
      painter.current ??= new Painter(place.current);
      const top = Math.floor(scroll.current.scrollTop / ROW);
      const first = Math.max(0, top - AROUND);
      const count = Math.ceil(height.current / ROW) + 2 * AROUND;
      painter.current.paint(first, count, look);
      seen(top, first + count);
    };
    draw.current();
  });
  useEffect(() => {
    const element = scroll.current!;
    const scrolled = () => draw.current();
    const sized = new ResizeObserver(([{ contentRect }]) => {
      height.current = contentRect.height;
      draw.current();
    });
    element.addEventListener("scroll", scrolled, { passive: true });
    sized.observe(element);
    return () => {
      element.removeEventListener("scroll", scrolled);
      sized.disconnect();
    };
  }, []);
  return { scroll, place, height };
}

export function Rows({ list, chosen, setChosen }: ListProps) {
  const navigate = useNavigate();
  const router = useRouter();
  const { edit } = useMay();
  const [at, setAt] = useState(-1);
  useSecond();
  const { rows } = list;
  const base = router.buildLocation({ to: "/jobs" }).href;
  const { scroll, place, height } = usePainter({ rows, at, chosen, edit, base }, (top, end) => {
    list.setTop(top === 0);
    // Whoever stays at the top is shown the newest again and again, and needs no others.
    if (end >= rows.length - (top === 0 ? 0 : AHEAD)) list.more();
  });
  const choose = (id: string) => {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    setChosen(next);
  };
  const open = (id: string) => void navigate({ to: "/jobs/$id", params: { id } });
  const reveal = (index: number) => {
    const element = scroll.current;
    if (!element) return;
    const top = index * ROW;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + ROW + HEAD > element.scrollTop + height.current) element.scrollTop = top + ROW + HEAD - height.current;
  };
  const move = (by: number) => {
    const next = Math.max(0, Math.min(rows.length - 1, at + by));
    setAt(next);
    reveal(next);
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
        <div ref={place} style={{ height: rows.length * ROW, position: "relative" }} />
      </div>
    </div>
  );
}
