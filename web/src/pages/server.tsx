import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { type Dialects as Served, get, type Settings as Found } from "../api/client";
import { Ago, Fault } from "../parts/basics";
import { brief } from "../parts/text";
import { useTitle } from "../parts/title";

export function Settings() {
  useTitle("Settings");
  const [search, setSearch] = useState("");
  const found = useQuery({ queryKey: ["settings"], queryFn: () => get<Found>("settings") });
  const rows = found.data?.items.filter((one) => `${one.name} ${one.value}`.includes(search)) ?? [];
  return (
    <>
      <header className="page-head">
        <h1>Settings</h1>
        <span className="quiet">what is in effect on this server, and where it comes from</span>
        <input data-search type="search" placeholder="Search" aria-label="Search settings" value={search} onChange={(event) => setSearch(event.target.value)} />
      </header>
      <Fault error={found.error} />
      <div className="wide-table" tabIndex={0} role="region" aria-label="Settings">
        <table>
          <thead>
            <tr><th scope="col">Setting</th><th scope="col">Value</th><th scope="col">From</th></tr>
          </thead>
          <tbody>
            {found.isSuccess && rows.length === 0 && <tr><td colSpan={3}>No setting contains "{brief(search, 60)}".</td></tr>}
            {rows.map((one) => (
              <tr key={one.name}>
                <td className="mono">{one.name}</td>
                <td className="mono">{brief(one.value, 300)}</td>
                <td className={one.origin === "default" ? "quiet" : ""}>{one.origin}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

export function Dialects() {
  useTitle("Dialects");
  const found = useQuery({ queryKey: ["dialects"], queryFn: () => get<Served>("dialects"), refetchInterval: 5000 });
  return (
    <>
      <header className="page-head">
        <h1>Dialects</h1>
        <span className="quiet">the protocols this server serves, since it started</span>
      </header>
      <Fault error={found.error} />
      <div className="wide-table" tabIndex={0} role="region" aria-label="Dialects">
        <table>
          <thead>
            <tr><th scope="col">Protocol</th><th scope="col">Namespace</th><th scope="col">Calls</th><th scope="col">Last call</th><th scope="col">By</th></tr>
          </thead>
          <tbody>
            {found.data?.items.map((one) => (
              <tr key={one.name}>
                <td>{one.name}</td>
                <td>{one.namespace ?? <span className="quiet">any</span>}</td>
                <td>{one.calls.toLocaleString()}</td>
                <td><Ago time={one.last_call} /></td>
                <td>{brief(one.last_caller, 60)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
