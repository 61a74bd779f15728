// Pages whose code is loaded when it is needed, or when the browser has nothing else to do. A server that is down must not cost
// anyone the page: what could not be loaded comes by itself as soon as the server answers.
import { type ComponentType, lazy, useEffect, useState } from "react";
import { base } from "../api/client";

const LOOK_MS = 2000;
/** So soon after a reload another one would not help. */
const SOON_MS = 20_000;
/** A browser that is never idle loads them all the same. */
const IDLE_MS = 2000;
const RELOADED = "windlass.reloaded";

export class NotLoaded extends Error {}

const loads: (() => Promise<unknown>)[] = [];

/** A part of a page, by how it is imported. */
export function later<P extends object>(load: () => Promise<ComponentType<P>>) {
  loads.push(load);
  return lazy(() =>
    load().then(
      (part) => ({ default: part }),
      (error: Error) => {
        throw new NotLoaded(error.message);
      },
    ),
  );
}

/** Loads all of them, one after the other, so that every page opens although the server is away. */
export async function loadAll() {
  const idle = (then: () => void) => ("requestIdleCallback" in globalThis ? requestIdleCallback(then, { timeout: IDLE_MS }) : setTimeout(then, 200));
  for (const load of loads) {
    await new Promise<void>((ready) => idle(() => ready()));
    await load().catch(() => {});
  }
}

const reloadedAt = () => Number(sessionStorage.getItem(RELOADED) ?? 0);

function reload() {
  sessionStorage.setItem(RELOADED, String(Date.now()));
  location.reload();
}

const serverAnswers = () =>
  fetch(base, { cache: "no-store" }).then(
    (answer) => answer.ok,
    () => false,
  );

export function Broken({ error }: { error: unknown }) {
  if (error instanceof NotLoaded) return <ComesBack why={error.message} />;
  return (
    <div className="fault" role="alert">
      <p>This page failed: {(error as Error).message}</p>
      <button onClick={() => location.reload()}>Load it again</button>
    </div>
  );
}

function ComesBack({ why }: { why: string }) {
  const [stuck, setStuck] = useState(false);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout>;
    let gone = false;
    let wasAway = false;
    const look = async () => {
      const isHere = await serverAnswers();
      if (gone) return;
      // A new version of the server has other files: a page that was loaded from it just now has the right ones.
      if (isHere) return wasAway || Date.now() - reloadedAt() > SOON_MS ? reload() : setStuck(true);
      wasAway = true;
      timer = setTimeout(() => void look(), LOOK_MS);
    };
    void look();
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, []);
  return (
    <div className={stuck ? "fault" : "note"} role="alert">
      <p>
        {stuck
          ? `The server answers, but this page could not be loaded from it: ${why}`
          : "This page could not be loaded, because the server cannot be reached. It opens by itself as soon as the server answers."}
      </p>
      {stuck && <button onClick={reload}>Load it again</button>}
    </div>
  );
}
