// The rows of the list of jobs that are in sight. They are written past React: while one scrolls, each frame gives most of them
// another job, and comparing what React would make of them costs more than all they show.
import type { Job } from "../api/client";
import { now } from "../api/live";
import { SIGNS } from "./basics";
import { ago, brief, length, local, shortId, title } from "./text";

export const ROW = 40;
export const FINAL = new Set(["completed", "failed", "cancelled", "skipped"]);

/** What all rows have in common. */
export type Look = { rows: Job[]; current?: string; chosen: Set<string>; edit: boolean; base: string };

function cell(className = "") {
  const made = document.createElement("span");
  made.setAttribute("role", "cell");
  if (className) made.className = className;
  return made;
}

/** A text that is written only where it changed. */
class Words {
  private readonly node = document.createTextNode("");
  private text = "";

  constructor(readonly place: HTMLElement) {
    place.append(this.node);
  }

  set(text: string) {
    if (text !== this.text) this.node.data = this.text = text;
  }
}

class Line {
  readonly root = document.createElement("div");
  private readonly box = document.createElement("input");
  private readonly pick = cell("pick");
  private readonly badge = document.createElement("span");
  private readonly sign = new Words(document.createElement("span"));
  private readonly state: Words;
  private readonly link = new Words(document.createElement("a"));
  private readonly error = new Words(document.createElement("span"));
  private readonly id = new Words(cell("mono quiet"));
  private readonly worker = new Words(cell("opt"));
  private readonly tries = new Words(cell("opt"));
  private readonly took = new Words(cell());
  private readonly created = new Words(cell());
  private index = -1;
  private job?: Job;
  private shown = "";
  private name = "";

  constructor() {
    this.root.className = "tr";
    this.root.setAttribute("role", "row");
    this.box.type = "checkbox";
    this.pick.append(this.box);
    this.sign.place.setAttribute("aria-hidden", "true");
    this.badge.append(this.sign.place, " ");
    this.state = new Words(this.badge);
    this.error.place.className = "bad-text";
    const state = cell();
    state.append(this.badge);
    const wide = cell("wide");
    wide.append(this.link.place, " ", this.error.place);
    const rest = [this.id, this.worker, this.tries, this.took, this.created].map((one) => one.place);
    this.root.append(state, wide, ...rest);
  }

  draw(index: number, look: Look) {
    const job = look.rows[index];
    if (this.index !== index) {
      this.index = index;
      this.root.style.transform = `translateY(${index * ROW}px)`;
      this.root.setAttribute("aria-rowindex", String(index + 1));
    }
    if (this.job !== job) this.meet(job, look.base);
    this.root.classList.toggle("current", job.id === look.current);
    if (look.edit !== this.pick.isConnected) look.edit ? this.root.prepend(this.pick) : this.pick.remove();
    this.box.checked = look.chosen.has(job.id);
    this.tell(job);
  }

  /** What a job keeps. */
  private meet(job: Job, base: string) {
    this.job = job;
    this.root.dataset.id = job.id;
    (this.link.place as HTMLAnchorElement).href = `${base}/${job.id}`;
    this.id.place.title = job.id;
    this.id.set(shortId(job.id));
    // Written by the browser's tables of languages, which takes long: only for those who ask.
    this.created.place.removeAttribute("title");
  }

  /** What may change in it, and with time. */
  private tell(job: Job) {
    if (this.shown !== job.state) {
      this.shown = job.state;
      this.badge.className = `state ${job.state}`;
      this.sign.set(SIGNS[job.state] ?? "•");
      this.state.set(job.state);
    }
    const name = title(job);
    if (this.name !== name) {
      this.name = name;
      this.link.set(brief(name, 120));
      this.box.setAttribute("aria-label", `Choose ${brief(name, 40)}`);
    }
    this.error.set(brief(job.error?.message, 160));
    this.worker.set(brief(job.worker, 40));
    this.tries.set(job.attempt > 1 ? String(job.attempt) : "");
    const ended = FINAL.has(job.state) ? (job.finished_at ?? job.claimed_at) : undefined;
    this.took.set(job.claimed_at ? length((ended ? Date.parse(ended) : now()) - Date.parse(job.claimed_at)) : "–");
    this.created.set(ago(now() - Date.parse(job.created_at)));
  }

  /** The time it was created, in full. */
  explain() {
    if (this.job) this.created.place.title = local(this.job.created_at);
  }
}

export class Painter {
  private readonly lines: Line[] = [];

  constructor(private readonly place: HTMLElement) {
    place.addEventListener("mouseover", (event) => {
      const row = (event.target as HTMLElement).closest(".tr");
      this.lines.find((line) => line.root === row)?.explain();
    });
  }

  /** Draws the rows from `first` on. A row that stays in sight keeps its place among the lines, so that nothing of it is written. */
  paint(first: number, count: number, look: Look) {
    const end = Math.min(look.rows.length, first + count);
    while (this.lines.length < count) this.lines.push(new Line());
    const places = this.lines.length;
    for (let at = first; at < first + places; at++) {
      const line = this.lines[at % places];
      if (at < end) {
        line.draw(at, look);
        if (!line.root.isConnected) this.place.append(line.root);
      } else line.root.remove();
    }
  }
}
