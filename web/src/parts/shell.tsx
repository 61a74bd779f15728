// What is around every page: where one is, where one can go, and whether what is shown is current.
import { useQuery } from "@tanstack/react-query";
import { Link, Outlet, useNavigate, useRouterState } from "@tanstack/react-router";
import { Suspense, useEffect, useRef, useState } from "react";
import { get, useNamespace } from "../api/client";
import { ahead, useLiveState } from "../api/live";
import { maySee, signOut, useMay, useSession } from "./gate";
import { goTo, listShown } from "./history";
import { KEYS, useKeys } from "./keys";
import { brief, length } from "./text";
import { applyTheme, theme, type Theme } from "./theme";

type Place = { to: string; name: string; key?: string; admin?: boolean };
export const PLACES: Place[] = [
  { to: "/", name: "Overview", key: "o" },
  { to: "/jobs", name: "Jobs", key: "j" },
  { to: "/runs", name: "Runs", key: "r" },
  { to: "/workers", name: "Workers", key: "w" },
  { to: "/definitions", name: "Definitions", key: "d" },
  { to: "/schedules", name: "Schedules", key: "s" },
  { to: "/items", name: "Items" },
  { to: "/events", name: "Events", key: "e" },
  { to: "/tokens", name: "Tokens", admin: true },
  { to: "/audit", name: "Audit", admin: true },
  { to: "/settings", name: "Settings", admin: true },
  { to: "/dialects", name: "Dialects" },
];

export function Shell() {
  const { admin } = useMay();
  const session = useSession();
  const namespace = useNamespace();
  const [menu, setMenu] = useState(false);
  const [help, setHelp] = useState(false);
  const going = useRef(false);
  const navigate = useNavigate();
  const path = useRouterState({ select: (state) => state.location.pathname });
  useEffect(() => setMenu(false), [path]);
  useKeys((key) => {
    if (going.current) {
      going.current = false;
      const place = PLACES.find((place) => place.key === key);
      if (place) void navigate({ to: place.to });
      return !!place;
    }
    if (key === "g") return (going.current = true);
    if (key === "?") {
      setHelp(true);
      return true;
    }
    if (key === "/") {
      const search = document.querySelector<HTMLInputElement>("[data-search]");
      search?.focus();
      return !!search;
    }
  });
  return (
    <div className="shell">
      <a className="skip" href="#main">
        Skip to the page
      </a>
      <header className="top">
        <button className="menu" aria-expanded={menu} aria-controls="places" onClick={() => setMenu(!menu)}>
          ☰<span className="hidden"> Menu</span>
        </button>
        <Link to="/" className="brand">
          Windlass
        </Link>
        <Namespaces />
        <Live />
        <span className="grow" />
        <Themes />
        <button className="plain" onClick={() => setHelp(true)} aria-label="Keyboard help" title="Keyboard help">
          ?
        </button>
        <Me />
      </header>
      <nav id="places" className={menu ? "open" : ""} aria-label="Pages">
        {PLACES.filter((place) => !place.admin || admin).map((place) => (
          <Link key={place.to} to={place.to} activeProps={{ "aria-current": "page" }} activeOptions={{ exact: place.to === "/" }}>
            {place.name}
          </Link>
        ))}
      </nav>
      <main id="main" tabIndex={-1}>
        <Clock />
        <Suspense fallback={<p className="empty">Loading…</p>}>
          {maySee(session, namespace) ? <Outlet /> : <NotYours namespace={namespace} />}
        </Suspense>
      </main>
      {help && <Help close={() => setHelp(false)} />}
    </div>
  );
}

function Help({ close }: { close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} onClose={close} aria-label="Keyboard">
      <h2>Keyboard</h2>
      <table>
        <tbody>
          {KEYS.map(([key, does]) => (
            <tr key={key}>
              <th scope="row">
                <kbd>{key}</kbd>
              </th>
              <td>{does}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <div className="row end">
        <button autoFocus onClick={() => dialog.current?.close()}>
          Close
        </button>
      </div>
    </dialog>
  );
}

const CLOCK_MS = 60_000;

/** Times on the pages are right all the same: they go by the server's clock. */
function Clock() {
  useLiveState();
  const by = ahead();
  if (Math.abs(by) < CLOCK_MS) return null;
  return (
    <p className="note" role="status">
      The clock of this machine is {length(Math.abs(by))} {by > 0 ? "ahead of" : "behind"} the server's. Ages and durations here go by the server's clock.
    </p>
  );
}

function Live() {
  const state = useLiveState();
  const words = { live: "Live", connecting: "Connecting…", down: "Reconnecting…" }[state];
  return (
    <span className={`live ${state}`} role="status">
      <span aria-hidden="true" className="dot" /> {words}
    </span>
  );
}

function NotYours({ namespace }: { namespace: string }) {
  const { namespaces } = useSession();
  return (
    <p className="fault" role="alert">
      This page is in the namespace {brief(namespace, 64)}, which your session may not see. It may see: {namespaces.map((name) => brief(name, 64)).join(", ")}.
    </p>
  );
}

function Namespaces() {
  const { namespaces } = useSession();
  const shown = useNamespace();
  const all = useQuery({
    queryKey: ["namespaces"],
    queryFn: () => get<{ items: string[] }>("namespaces").then((page) => page.items),
    enabled: namespaces.length === 0,
  });
  const names = [...new Set([...(namespaces.length ? namespaces : (all.data ?? ["default"])), shown])].sort();
  return (
    <label className="namespace">
      <span className="hidden">Namespace</span>
      <select value={shown} onChange={(event) => goTo(event.target.value, listShown())}>
        {names.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  );
}

function Themes() {
  const [value, setValue] = useState<Theme>(theme());
  const next = ({ auto: "light", light: "dark", dark: "auto" } as const)[value];
  const change = () => {
    applyTheme(next);
    setValue(next);
  };
  return (
    <button className="plain" onClick={change} title={`Colours: ${value}`} aria-label={`Colours: ${value}; change to ${next}`}>
      {{ auto: "◐", light: "☀", dark: "☾" }[value]}
    </button>
  );
}

function Me() {
  const session = useSession();
  return (
    <span className="me">
      <span title={`Role: ${session.role}`}>
        {session.principal} <span className="quiet">{session.role}</span>
      </span>
      <button className="plain" onClick={() => void signOut()}>
        Sign out
      </button>
    </span>
  );
}
