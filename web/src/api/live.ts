// What changes on the server, and the queries that have to be asked again because of it.
import type { QueryClient } from "@tanstack/react-query";
import { useEffect, useSyncExternalStore } from "react";
import { address } from "./client";
import { Hub, type Message, type Pulse } from "./hub";

export type { Pulse };
type Listener = (pulse: Pulse) => void;
type Live = "connecting" | "live" | "down";

/** Queries are asked again at most this often, however much changes. */
const EVERY_MS = 1000;
const EVERYTHING: Pulse = { more: true };

const listeners = new Set<Listener>();
const watchers = new Set<() => void>();
let state: Live = "connecting";
let offset = 0;
let leave = () => {};

/** How far the clock of this machine is ahead of the server's. */
export const ahead = () => -offset;

/** The server's time; the clock of this machine may be wrong. */
export const now = () => Date.now() + offset;

function set(next: Live) {
  state = next;
  watchers.forEach((watcher) => watcher());
}

function hear(message: Message) {
  if ("hello" in message) {
    offset = Date.parse(message.hello.now) - Date.now();
    set("live");
    // Whatever was missed in between.
    listeners.forEach((listener) => listener(EVERYTHING));
  } else if ("pulse" in message) listeners.forEach((listener) => listener(message.pulse));
  else set("down");
}

export function setClock(serverNow: string) {
  offset = Date.parse(serverNow) - Date.now();
}

/** Follows the namespace that is shown. */
export function connect() {
  leave();
  set("connecting");
  const url = address("pulse");
  if (typeof SharedWorker === "undefined") {
    const hub = new Hub();
    hub.join(url, hear);
    leave = () => hub.leave(hear);
    return;
  }
  const worker = new SharedWorker(new URL("./live.worker.ts", import.meta.url), { type: "module", name: "windlass" });
  worker.port.onmessage = ({ data }) => hear(data);
  worker.port.postMessage({ join: url });
  const gone = () => worker.port.postMessage({});
  const back = (event: PageTransitionEvent) => event.persisted && worker.port.postMessage({ join: url });
  addEventListener("pagehide", gone);
  addEventListener("pageshow", back);
  leave = () => {
    removeEventListener("pagehide", gone);
    removeEventListener("pageshow", back);
    gone();
    worker.port.close();
  };
}

export const disconnect = () => leave();

export function useLiveState(): Live {
  return useSyncExternalStore(
    (watcher) => {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    () => state,
  );
}

export function usePulse(listener: Listener) {
  useEffect(() => {
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, [listener]);
}

/** Asks those active queries again whose `meta.live` says that a change concerns them. */
export function keepFresh(client: QueryClient) {
  let waiting: Pulse[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  const look = () => {
    timer = undefined;
    const pulses = waiting;
    waiting = [];
    for (const query of client.getQueryCache().findAll({ type: "active" })) {
      const live = query.meta?.live as ((pulse: Pulse) => boolean) | undefined;
      if (live && pulses.some((pulse) => pulse.more || live(pulse))) {
        void client.refetchQueries({ queryKey: query.queryKey, exact: true }, { cancelRefetch: false });
      }
    }
  };
  listeners.add((pulse) => {
    waiting.push(pulse);
    timer ??= setTimeout(look, document.hidden ? EVERY_MS * 10 : EVERY_MS);
  });
}

export const jobChanged = (id: string) => ({ live: (pulse: Pulse) => !!pulse.jobs?.[id] });
/** A run of thousands of steps is read in many parts, so it is not read again for each of its jobs. */
export const MANY_STEPS = 2000;
export const runChanged = (id: string, jobs: () => Set<string>) => ({
  live: (pulse: Pulse) => {
    const known = jobs();
    return !!pulse.runs?.[id] || (known.size <= MANY_STEPS && Object.keys(pulse.jobs ?? {}).some((job) => known.has(job)));
  },
});
/** For lists of what events are named after: `worker`, `run`, `definition`. */
export const kindChanged = (...kinds: string[]) => ({
  live: (pulse: Pulse) => Object.keys(pulse.counts ?? {}).some((kind) => kinds.some((of) => kind.startsWith(of))),
});
export const anyChanged = { live: () => true };
