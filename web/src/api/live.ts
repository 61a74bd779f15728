// What changes on the server, and the queries that have to be asked again because of it.
import type { Query, QueryClient } from "@tanstack/react-query";
import { useEffect, useSyncExternalStore } from "react";
import { address } from "./client";
import { Hub, type Message, type Pulse } from "./hub";

export type { Pulse };
type Listener = (pulse: Pulse) => void;
type Live = "connecting" | "live" | "down";

/** Queries are asked again at most this often, however much changes. */
const EVERY_MS = 1000;
/** And at most this often where it is not certain that a change concerns them. */
const PERHAPS_MS = 5000;
const AGAIN_MS = 2000;
const EVERYTHING: Pulse = { more: true };
/** Something was missed: everything may have changed. */
const isGap = (pulse: Pulse) => !!pulse.more && !pulse.counts;

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
  // Its script could not be loaded.
  let timer: ReturnType<typeof setTimeout> | undefined;
  worker.onerror = () => {
    set("down");
    timer = setTimeout(connect, AGAIN_MS);
  };
  worker.port.onmessage = ({ data }) => hear(data);
  worker.port.postMessage({ join: url });
  const gone = () => worker.port.postMessage({});
  const back = (event: PageTransitionEvent) => event.persisted && worker.port.postMessage({ join: url });
  addEventListener("pagehide", gone);
  addEventListener("pageshow", back);
  leave = () => {
    clearTimeout(timer);
    removeEventListener("pagehide", gone);
    removeEventListener("pageshow", back);
    gone();
    worker.port.close();
  };
}

export function disconnect() {
  leave();
  leave = () => {};
}

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

/** Whether a change concerns a query. Where much changes at once not every name is told; then it may or may not. */
type Concern = boolean | "perhaps";
const concern = (query: Query, pulses: Pulse[]): Concern => {
  const live = query.meta?.live as ((pulse: Pulse) => Concern | undefined) | undefined;
  const found = live ? pulses.map((pulse) => isGap(pulse) || live(pulse)) : [];
  return found.includes(true) || (found.includes("perhaps") && "perhaps");
};

/** Asks those active queries again whose `meta.live` says that a change concerns them. */
export function keepFresh(client: QueryClient) {
  let waiting: Pulse[] = [];
  /** What may have changed is not forgotten, only looked at later. */
  const owed = new WeakSet<Query>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const look = () => {
    timer = undefined;
    const pulses = waiting;
    waiting = [];
    for (const query of client.getQueryCache().findAll({ type: "active" })) {
      const concerned = concern(query, pulses) || (owed.has(query) && "perhaps");
      if (!concerned) continue;
      if (concerned === "perhaps" && query.state.dataUpdatedAt > Date.now() - PERHAPS_MS) {
        owed.add(query);
        wait();
      } else {
        owed.delete(query);
        void client.refetchQueries({ queryKey: query.queryKey, exact: true }, { cancelRefetch: false });
      }
    }
  };
  const wait = () => (timer ??= setTimeout(look, document.hidden ? EVERY_MS * 10 : EVERY_MS));
  listeners.add((pulse) => {
    waiting.push(pulse);
    wait();
  });
}

export const jobChanged = (id: string) => ({ live: (pulse: Pulse) => !!pulse.jobs?.[id] || (pulse.more && "perhaps") });
/** For what other jobs change, too, such as a place in line. */
export const jobOrOthersChanged = (id: string) => ({ live: (pulse: Pulse) => !!pulse.jobs?.[id] || "perhaps" });
/** A run of thousands of steps is read in many parts, so it is not read again for each of its jobs. */
export const MANY_STEPS = 2000;
export const runChanged = (id: string, jobs: () => Set<string>) => ({
  live: (pulse: Pulse) => {
    const known = jobs();
    const named = !!pulse.runs?.[id] || (known.size <= MANY_STEPS && Object.keys(pulse.jobs ?? {}).some((job) => known.has(job)));
    return named || (pulse.more && "perhaps");
  },
});
const hasKind = (pulse: Pulse, kinds: string[]) => Object.keys(pulse.counts ?? {}).some((kind) => kinds.some((of) => kind.startsWith(of)));
/** For lists of what events are named after: `worker`, `run`, `definition`. */
export const kindChanged = (...kinds: string[]) => ({ live: (pulse: Pulse) => hasKind(pulse, kinds) || (pulse.more && "perhaps") });
/** For sums over a long time, which change a little all the time. */
export const kindAdded = (...kinds: string[]) => ({ live: (pulse: Pulse) => (pulse.more || hasKind(pulse, kinds)) && "perhaps" });
export const anyChanged = { live: () => true };
export const anyAdded = { live: () => "perhaps" as const };
