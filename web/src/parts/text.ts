// Texts that others wrote, made safe to look at: nothing in them can hide, reorder or run.

const LONG = 400;
// Control characters, and those that change the direction of writing or take no room.
const ODD = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

const visible = (char: string) => {
  const code = char.charCodeAt(0);
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  if (code === 0x7f) return "\u2421";
  return `\u27e8${code.toString(16)}\u27e9`;
};

export const clean = (text: string) => text.replace(ODD, visible);

/** On one line, and no longer than people read. */
export function brief(text: string | null | undefined, length = LONG): string {
  if (!text) return "";
  const cut = text.length > length ? `${text.slice(0, length)}…` : text;
  return clean(cut.replace(/\s+/g, " "));
}

/** Enough of an id to tell jobs apart that were submitted in the same moment: their ids begin alike. */
export const shortId = (id: string) => `${id.slice(0, 8)}…${id.slice(-4)}`;

export function length(ms: number): string {
  if (!Number.isFinite(ms)) return "";
  if (ms < 0) ms = 0;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} days`;
}

export function ago(ms: number): string {
  if (ms < -1500) return `in ${length(-ms)}`;
  if (ms < 1500) return "now";
  return `${length(ms).split(" ").slice(0, 2).join(" ")} ago`;
}

export function size(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  const units = ["kB", "MB", "GB", "TB"];
  let at = -1;
  do {
    bytes /= 1000;
    at++;
  } while (bytes >= 1000 && at < units.length - 1);
  return `${bytes.toFixed(bytes < 10 ? 1 : 0)} ${units[at]}`;
}

export const local = (time: string) => {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? time : date.toLocaleString();
};

type Named = { name?: string | null; node?: string | null; definition?: string | null; command?: string | null; payload?: unknown };

/** What people call a job: its name, or else what it runs. */
export function title(job: Named): string {
  const payload = job.payload as { shell?: unknown; command?: unknown } | null | undefined;
  const command = payload && typeof payload === "object" ? (payload.shell ?? payload.command) : undefined;
  const words = Array.isArray(command) ? command.join(" ") : typeof command === "string" ? command : undefined;
  return job.name || job.node || job.definition || job.command || words || "(no name)";
}
