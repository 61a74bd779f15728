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

class List {
  rows: Job[] = [];
  readonly at = new Map<string, Job>();
  next?: string | null = "";
  error?: Error;
  loading = false;
  private refused = 0;
  /** Nobody has scrolled down. */
  isAtTop = true;
  hasNew = false;

  constructor(
    readonly filter: Filter,
    readonly changed: () => void,
    readonly signal: AbortSignal,
  ) {}

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
      if (this.signal.aborted) return;
      this.error = error as Error;
      this.refused = performance.now();
    }
    this.loading = false;
    this.changed();
  }

  /** Looks at the first rows again: new jobs are in front, and the newest are the most likely to have changed. */
  async look() {
    try {
      const page = await this.page(HEAD, undefined, AGE_MS);
      const fresh = page.items.filter((job) => !this.at.has(job.id));
      for (const job of page.items) {
        const known = this.at.get(job.id);
        if (known) Object.assign(known, { error: undefined, worker: undefined, progress: undefined }, job);
      }
      this.error = undefined;
      this.hasNew = fresh.length > 0 && !this.isAtTop;
      // Whoever reads further down is not moved by what comes in front.
      if (this.isAtTop) this.take(page, fresh);
    } catch (error) {
      if (this.signal.aborted) return;
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

export function useJobList(filter: Filter) {
  const [, draw] = useState(0);
  const list = useRef<List>(null);
  const key = JSON.stringify(filter);
  const waiting = useRef(false);
  useEffect(() => {
    const abort = new AbortController();
    const fresh = new List(JSON.parse(key), () => draw((count) => count + 1), abort.signal);
    list.current = fresh;
    void fresh.more();
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
  return {
    rows: list.current?.rows ?? [],
    isFirst: !list.current || (list.current.next === "" && !list.current.error),
    hasMore: list.current?.next != null,
    error: list.current?.error,
    more: () => void list.current?.more(),
    look: () => void list.current?.look(),
    hasNew: !!list.current?.hasNew,
    setTop: (isAtTop: boolean) => {
      const current = list.current;
      if (!current || current.isAtTop === isAtTop) return;
      current.isAtTop = isAtTop;
      if (isAtTop && current.hasNew) void current.look();
    },
  };
}
