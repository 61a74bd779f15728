// The list of jobs. Only the rows in sight are there; the list listens for them, so that a row is nothing but text.
import { useNavigate, useRouter } from "@tanstack/react-router";
import { type MouseEvent, type RefObject, useEffect, useLayoutEffect, useRef, useState } from "react";
import type { Job } from "../api/client";
import type { useJobList } from "../api/jobList";
import { useSecond } from "./basics";
import { useMay } from "./gate";
import { recall, remember, useEntry, useKept } from "./history";
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
function usePainter(scroll: RefObject<HTMLDivElement | null>, look: Look, seen: (first: number, end: number) => void) {
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
  return { place, height };
}

/** Where the list was scrolled to when one left it. */
function useKeptScroll(scroll: RefObject<HTMLDivElement | null>) {
  const entry = useEntry();
  useLayoutEffect(() => {
    const element = scroll.current!;
    element.scrollTop = recall<number>(entry, "rows") ?? 0;
    return () => remember(entry, "rows", element.scrollTop);
  }, []);
}

/** The row under the keyboard, by its job: where the row is changes as jobs come and go. */
function useCurrent(rows: Job[]) {
  const [current, setCurrent] = useKept<string | undefined>("current", undefined);
  const last = useRef(0);
  const index = () => {
    if (current === undefined) return -1;
    if (rows[last.current]?.id !== current) last.current = rows.findIndex((job) => job.id === current);
    return last.current;
  };
  return { current, setCurrent, index };
}

export function Rows({ list, chosen, setChosen }: ListProps) {
  const navigate = useNavigate();
  const router = useRouter();
  const { edit } = useMay();
  const [pointed, setPointed] = useState(false);
  useSecond();
  const { rows } = list;
  const { current, setCurrent, index } = useCurrent(rows);
  const base = router.buildLocation({ to: "/jobs" }).href;
  const scroll = useRef<HTMLDivElement>(null);
  useKeptScroll(scroll);
  const { place, height } = usePainter(scroll, { rows, current, chosen, edit, base }, (top, end) => {
    list.setTop(top === 0);
    // At the top the newest are shown again and again, and no others are needed.
    if (end >= rows.length - (top === 0 ? 0 : AHEAD)) list.more();
  });
  const isHeld = pointed || current !== undefined || chosen.size > 0;
  useEffect(() => list.setHeld(isHeld), [isHeld, list.list]);
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
    if (rows.length === 0) return false;
    const next = Math.max(0, Math.min(rows.length - 1, index() + by));
    setCurrent(rows[next].id);
    reveal(next);
    return true;
  };
  useKeys((key) => {
    if (key === "j" || key === "ArrowDown") return move(1);
    if (key === "k" || key === "ArrowUp") return move(-1);
    const job = rows[index()];
    if (key === "Enter" && job && (document.activeElement === document.body || document.activeElement === scroll.current)) {
      open(job.id);
      return true;
    }
    if (key === "x" && job && edit) {
      choose(job.id);
      return true;
    }
    if (key === "Escape" && current !== undefined) {
      setCurrent(undefined);
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
      {list.fresh.count > 0 && (
        <button
          className="new-rows"
          onClick={() => {
            scroll.current?.scrollTo({ top: 0 });
            list.showFresh();
          }}
        >
          {list.fresh.count.toLocaleString()}
          {list.fresh.more ? "+" : ""} new ↑
        </button>
      )}
      <div
        className="scroll"
        ref={scroll}
        tabIndex={0}
        role="rowgroup"
        aria-label="Rows"
        onClick={click}
        onPointerMove={(event) => event.pointerType === "mouse" && setPointed(true)}
        onPointerLeave={() => setPointed(false)}
      >
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
