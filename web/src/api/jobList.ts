// A list of jobs that grows at both ends: older ones as one scrolls, new ones as they come. Rows are changed in place, so that
// a hundred thousand of them cost nothing while they stay as they are.
import { useCallback, useEffect, useRef, useState } from "react";
import { get, type Job, type Page, type State } from "./client";
import { type Pulse, usePulse } from "./live";

const PAGE = 1000;
const HEAD = 100;
/** All pages that look at the same list share an answer of this age. */
const AGE_MS = 800;
const LOOK_MS = 1000;
/** So long after a page could not be read it is not asked for again. */
const AGAIN_MS = 5000;
/** So many may gather in front of a list that nobody scrolls. */
const HELD_MAX = 5_000;
/** No list grows past this; filters lead further. */
export const ROWS_MAX = 300_000;

/** The state an event leaves a job in, where the event alone says so. */
const AFTER: Record<string, State> = {
  ready: "pending",
  claimed: "claimed",
  started: "running",
  progress: "running",
  completed: "completed",
  failed: "failed",
  cancelled: "cancelled",
  skipped: "skipped",
};

export type Filter = { state?: string; name?: string; facet?: string; worker?: string; id?: string };

export class List {
  rows: Job[] = [];
  readonly at = new Map<string, Job>();
  next?: string | null = "";
  error?: Error;
  loading = false;
  private refused = 0;
  isAtTop = true;
  /** The pointer or a selection is on the rows: they stay where they are. */
  isHeld = false;
  /** Jobs that came and are not among the rows yet. */
  fresh = { count: 0, more: false };
  /** Where the list is shown now. */
  changed = () => {};
  signal?: AbortSignal;

  constructor(readonly filter: Filter) {}

  private page(limit: number, cursor?: string, max_age_ms?: number) {
    return get<Page<Job>>("jobs", { ...this.filter, commands: true, limit, cursor, max_age_ms }, this.signal);
  }

  async more() {
    if (this.loading || this.next == null || this.rows.length >= ROWS_MAX) return;
    if (this.error && performance.now() < this.refused + AGAIN_MS) return;
    this.loading = true;
    try {
      const page = await this.page(PAGE, this.next);
      const fresh = page.items.filter((job) => !this.at.has(job.id));
      fresh.forEach((job) => this.at.set(job.id, job));
      this.rows = this.rows.concat(fresh);
      this.next = page.next ?? null;
      this.error = undefined;
    } catch (error) {
      if (this.signal?.aborted) return;
      this.error = error as Error;
      this.refused = performance.now();
    }
    this.loading = false;
    this.changed();
  }

  /** Looks at the first rows again: new jobs are in front, and the newest are the most likely to have changed. */
  async look(show = false) {
    try {
      const page = await this.page(HEAD, undefined, AGE_MS);
      const fresh = page.items.filter((job) => !this.at.has(job.id));
      for (const job of page.items) {
        const known = this.at.get(job.id);
        if (known) Object.assign(known, { error: undefined, worker: undefined, progress: undefined }, job);
      }
      this.error = undefined;
      // Rows do not move for a reader who is further down or points at one.
      const still = this.rows.length > 0 && (!this.isAtTop || this.isHeld) && !show;
      this.fresh = still ? { count: fresh.length, more: page.next != null && fresh.length === page.items.length } : { count: 0, more: false };
      if (!still) this.take(page, fresh);
    } catch (error) {
      if (this.signal?.aborted) return;
      this.error = error as Error;
    }
    this.changed();
  }

  private take(page: Page<Job>, fresh: Job[]) {
    // More came than one look shows, or more is held than needed: what follows is read again when one scrolls there.
    const gap = page.next != null && fresh.length === page.items.length;
    if (!this.filter.name && (gap || this.rows.length > HELD_MAX)) {
      this.rows = page.items;
      this.next = page.next ?? null;
    } else {
      // Those that no longer fit and are new enough to be among the first are gone from it.
      const shown = new Set(page.items.map((job) => job.id));
      const last = page.items.at(-1)?.id;
      const fits = (job: Job) => shown.has(job.id) || (page.next != null && last !== undefined && job.id < last);
      this.rows = fresh.concat(this.filter.name ? this.rows : this.rows.filter(fits));
      if (this.next === "") this.next = page.next ?? null;
    }
    if (this.rows.length !== this.at.size + fresh.length) this.at.clear();
    const unknown = this.at.size === 0 ? this.rows : fresh;
    unknown.forEach((job) => this.at.set(job.id, job));
  }

  hear(pulse: Pulse): boolean {
    let patched = false;
    for (const [id, kind] of Object.entries(pulse.jobs ?? {})) {
      const job = this.at.get(id);
      const state = AFTER[kind];
      if (job && state && job.state !== state) {
        job.state = state;
        patched = true;
      }
    }
    if (patched) this.changed();
    return !!pulse.more || Object.keys(pulse.jobs ?? {}).length > 0;
  }
}

/** The list of a filter. One that was shown before goes on where it was. */
export function useJobList(filter: Filter, before?: List) {
  const [, draw] = useState(0);
  const list = useRef<List>(before);
  const key = JSON.stringify(filter);
  const waiting = useRef(false);
  useEffect(() => {
    const abort = new AbortController();
    const known = list.current && JSON.stringify(list.current.filter) === key ? list.current : undefined;
    const current = known ?? new List(JSON.parse(key));
    Object.assign(current, { signal: abort.signal, loading: false, changed: () => draw((count) => count + 1) });
    list.current = current;
    if (known) void current.look();
    else void current.more();
    return () => abort.abort();
  }, [key]);
  const hear = useCallback((pulse: Pulse) => {
    const current = list.current;
    if (!current?.hear(pulse) || waiting.current) return;
    waiting.current = true;
    setTimeout(() => {
      waiting.current = false;
      void list.current?.look();
    }, LOOK_MS);
  }, []);
  usePulse(hear);
  /** Where the rows may move again, what was held back is shown. */
  const free = (change: Partial<Pick<List, "isAtTop" | "isHeld">>) => {
    const current = list.current;
    if (!current) return;
    const wasStill = !current.isAtTop || current.isHeld;
    Object.assign(current, change);
    if (wasStill && current.isAtTop && !current.isHeld) void current.look();
  };
  return {
    list: list.current,
    rows: list.current?.rows ?? [],
    isFirst: !list.current || (list.current.next === "" && !list.current.error),
    hasMore: list.current?.next != null,
    error: list.current?.error,
    fresh: list.current?.fresh ?? { count: 0, more: false },
    more: () => void list.current?.more(),
    look: () => void list.current?.look(),
    showFresh: () => void list.current?.look(true),
    setTop: (isAtTop: boolean) => free({ isAtTop }),
    setHeld: (isHeld: boolean) => free({ isHeld }),
  };
}
