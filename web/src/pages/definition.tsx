import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { type Definition, get, type History, type Page, post, segment } from "../api/client";
import { kindChanged } from "../api/live";
import { Ago, Card, Does, Fault, Facts, Tags } from "../parts/basics";
import { Diff } from "../parts/diff";
import { type Schema, SchemaForm } from "../parts/form";
import { useMay } from "../parts/gate";
import { Json } from "../parts/json";
import { brief, length } from "../parts/text";

export function DefinitionPage() {
  const { name } = useParams({ from: "/definitions/$name" });
  const { edit } = useMay();
  const found = useQuery({
    queryKey: ["definition", name],
    queryFn: () => get<Page<Definition>>(`definitions/${segment(name)}/versions`, { limit: 100 }),
    meta: kindChanged("definition_"),
  });
  const versions = found.data?.items ?? [];
  const latest = versions.at(-1);
  const [shown, setShown] = useState<number>();
  const one = versions.find((version) => version.version === shown) ?? latest;
  const before = one && versions.find((version) => version.version === one.version - 1);
  if (!latest || !one) return found.error ? <Fault error={found.error} /> : <p className="empty">Loading…</p>;
  return (
    <>
      <header className="page-head">
        <h1>{brief(name, 100)}</h1>
        <label>
          <span className="hidden">Version</span>
          <select value={one.version} onChange={(event) => setShown(Number(event.target.value))}>
            {[...versions].reverse().map((version) => (
              <option key={version.version} value={version.version}>
                version {version.version}
              </option>
            ))}
          </select>
        </label>
      </header>
      <p>{brief(one.body.description, 2000)}</p>
      <Facts of={[["Stored", <Ago time={one.created_at} />], ["Tags", one.body.tags?.length ? <Tags of={one.body.tags} /> : undefined]]} />
      <Figures name={name} />
      {edit && <Submit key={one.version} definition={one} />}
      <Card title={before ? `Changed from version ${before.version}` : "Body"}>
        {before ? <Diff from={before.body} to={one.body} /> : <Json name="Body" value={one.body} />}
      </Card>
    </>
  );
}

/** Of the last day. */
function Figures({ name }: { name: string }) {
  const found = useQuery({ queryKey: ["history", "of", name], queryFn: () => get<History>("history", { definition: name }), refetchInterval: 10_000 });
  const points = found.data?.points ?? [];
  const sum = (of: "completed" | "failed") => points.reduce((total, point) => total + (point[of] ?? 0), 0);
  const [completed, failed] = [sum("completed"), sum("failed")];
  const latest = points.at(-1);
  if (completed + failed === 0) return null;
  return (
    <Facts
      of={[
        ["Succeeded in the last day", `${((completed / (completed + failed)) * 100).toFixed(1)} % of ${completed + failed}`],
        ["Half ran no longer than", latest?.run_p50_ms != null && length(latest.run_p50_ms)],
        ["95 % ran no longer than", latest?.run_p95_ms != null && length(latest.run_p95_ms)],
      ]}
    />
  );
}

function Submit({ definition }: { definition: Definition }) {
  const navigate = useNavigate();
  const schema = (definition.body.payload_schema ?? undefined) as Schema | undefined;
  const [payload, setPayload] = useState<unknown>(definition.body.payload ?? (schema ? undefined : {}));
  const [fault, setFault] = useState("");
  const act = async () => {
    setFault("");
    try {
      return await post<{ id: string }>("jobs", { definition: `${definition.name}@${definition.version}`, payload });
    } catch (error) {
      setFault((error as Error).message);
      throw error;
    }
  };
  return (
    <Card title="Submit a job">
      <SchemaForm schema={schema} value={payload} set={setPayload} />
      <p role="alert" className="bad-text">
        {fault}
      </p>
      <Does className="primary" act={act} said="Submitted." then={(reply) => void navigate({ to: "/jobs/$id", params: { id: (reply as { id: string }).id } })}>
        Submit
      </Does>
    </Card>
  );
}
