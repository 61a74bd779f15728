// Small parts that every page uses.
import { useMutation } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useEffect, useRef, useState, useSyncExternalStore } from "react";
import { now } from "../api/live";
import { say } from "./said";
import { ago, brief, clean, length, local, shortId } from "./text";

const seconds = new Set<() => void>();
let second = 0;
setInterval(() => {
  second++;
  seconds.forEach((watcher) => watcher());
}, 1000);

/** Draws again every second, all on the same one. */
export function useSecond() {
  return useSyncExternalStore(
    (watcher) => {
      seconds.add(watcher);
      return () => seconds.delete(watcher);
    },
    () => second,
  );
}

export function Ago({ time }: { time?: string | null }) {
  useSecond();
  if (!time) return <span className="quiet">–</span>;
  return (
    <time dateTime={time} title={local(time)}>
      {ago(now() - Date.parse(time))}
    </time>
  );
}

/** How long something took, or has taken so far. `ms`: as it was measured. */
export function Took({ from, to, ms }: { from?: string | null; to?: string | null; ms?: number | null }) {
  useSecond();
  if (ms != null) return <>{length(ms)}</>;
  if (!from) return <span className="quiet">–</span>;
  return <>{length((to ? Date.parse(to) : now()) - Date.parse(from))}</>;
}

export const SIGNS: Record<string, string> = {
  completed: "✓",
  failed: "✕",
  cancelled: "⊘",
  skipped: "↷",
  running: "▶",
  claimed: "▷",
  pending: "•",
  scheduled: "◷",
  blocked: "‖",
  online: "●",
  unreachable: "◐",
  offline: "○",
};

/** A state is told by its word and its sign, never by its colour alone. */
export function State({ of }: { of: string }) {
  return (
    <span className={`state ${of}`}>
      <span aria-hidden="true">{SIGNS[of] ?? "•"}</span> {of}
    </span>
  );
}

/** Why a count may end in a plus. */
export const MORE = "There are more. With this filter counting stops at 1000, so that a page costs the same however many jobs there are.";
export const upTo = (of?: { count: number; more: boolean }) => (of ? `${of.count.toLocaleString()}${of.more ? "+" : ""}` : "–");

export function Fault({ error }: { error: unknown }) {
  if (!error) return null;
  return (
    <p className="fault" role="alert">
      {brief((error as Error).message, 2000)}
    </p>
  );
}

export const Empty = ({ children }: { children: ReactNode }) => <p className="empty">{children}</p>;

export function Card({ title, children, side, id }: { title?: ReactNode; children: ReactNode; side?: ReactNode; id?: string }) {
  return (
    <section className="card" id={id}>
      {title && (
        <header>
          <h2>{title}</h2>
          <div className="side">{side}</div>
        </header>
      )}
      {children}
    </section>
  );
}

export function Copy({ text, label = "Copy" }: { text: string | (() => string); label?: string }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    const value = typeof text === "string" ? text : text();
    try {
      await navigator.clipboard.writeText(value);
      setDone(true);
      setTimeout(() => setDone(false), 1500);
    } catch {
      say("The browser does not allow copying here; it does on https and on this machine.", "bad");
    }
  };
  return (
    <button className="small" onClick={() => void copy()}>
      {done ? "Copied" : label}
    </button>
  );
}

type Does<T> = {
  act: (ready: T) => Promise<unknown>;
  /** Looks whether it can be done; without a value nothing is. */
  before?: () => T | undefined;
  children: ReactNode;
  /** Asked before it is done. */
  ask?: ReactNode;
  said?: string;
  then?: (reply: unknown) => void;
  className?: string;
  disabled?: boolean;
};

/** A button that does something on the server, and says what came of it. */
export function Does<T = void>({ act, before, children, ask, said, then, className, disabled }: Does<T>) {
  const [asking, setAsking] = useState(false);
  const doing = useMutation({
    mutationFn: act,
    onSuccess: (reply) => {
      if (said) say(said);
      then?.(reply);
    },
  });
  const start = () => {
    const ready = before?.();
    if (before && ready === undefined) return;
    doing.mutate(ready as T);
  };
  return (
    <>
      <button className={className} disabled={disabled || doing.isPending} onClick={() => (ask ? setAsking(true) : start())}>
        {children}
      </button>
      {asking && <Ask close={() => setAsking(false)} yes={start}>{ask}</Ask>}
    </>
  );
}

function Ask({ children, close, yes }: { children: ReactNode; close: () => void; yes: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} onClose={close} aria-label="Please confirm">
      <p>{children}</p>
      <div className="row end">
        <button onClick={() => dialog.current?.close()}>No</button>
        <button
          className="danger"
          autoFocus
          onClick={() => {
            dialog.current?.close();
            yes();
          }}
        >
          Yes
        </button>
      </div>
    </dialog>
  );
}

export const JobLink = ({ id, children }: { id: string; children?: ReactNode }) => (
  <Link to="/jobs/$id" params={{ id }} className={children ? "" : "mono"} title={id}>
    {children ?? shortId(id)}
  </Link>
);
export const RunLink = ({ id, children }: { id: string; children?: ReactNode }) => (
  <Link to="/runs/$id" params={{ id }} className={children ? "" : "mono"} title={id}>
    {children ?? shortId(id)}
  </Link>
);
export const WorkerLink = ({ name }: { name?: string | null }) =>
  name ? (
    <Link to="/workers/$name" params={{ name }}>
      {brief(name, 60)}
    </Link>
  ) : (
    <span className="quiet">–</span>
  );

export function Facts({ of }: { of: [string, ReactNode][] }) {
  return (
    <dl className="facts">
      {of
        .filter(([, value]) => value !== undefined && value !== null && value !== false && value !== "")
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

export const Tags = ({ of }: { of?: string[] }) => (
  <>
    {of?.map((tag) => (
      <span key={tag} className="tag">
        {clean(tag)}
      </span>
    ))}
  </>
);
