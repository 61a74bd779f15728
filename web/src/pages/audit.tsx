import { type Event, toJson } from "../api/client";
import { Pages } from "../parts/pages";
import { brief, local } from "../parts/text";
import { useTitle } from "../parts/title";

const KNOWN = new Set(["id", "namespace", "at", "type", "by", "action"]);

export function Audit() {
  useTitle("Audit");
  return (
    <>
      <header className="page-head">
        <h1>Audit</h1>
        <span className="quiet">what operators did, newest first</span>
      </header>
      <Pages<Event>
        path="audit"
        label="Audit"
        id={(event) => String(event.id)}
        empty="Nothing is in the audit log."
        columns={[
          { name: "Time", cell: (event) => local(event.at) },
          { name: "By", cell: (event) => brief(String((event as Record<string, unknown>).by ?? "")) },
          { name: "Namespace", cell: (event) => event.namespace, opt: true },
          { name: "What", cell: (event) => what(event) },
        ]}
      />
    </>
  );
}

const what = (event: Event) =>
  brief(
    Object.entries(event)
      .filter(([name]) => !KNOWN.has(name) || name === "action")
      .map(([name, value]) => (name === "action" ? String(value) : `${name} ${typeof value === "string" ? value : toJson(value)}`))
      .join(", "),
    300,
  );
