import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { type Definition, type DefinitionFigures, get, type Page, post, segment } from "../api/client";
import { kindAdded, kindChanged } from "../api/live";
import { Ago, Card, Does, Empty, Fault, Facts, JobLink, State, Tags, Took } from "../parts/basics";
import { Diff } from "../parts/diff";
import { type Schema, SchemaForm, usePayload } from "../parts/form";
import { useMay } from "../parts/gate";
import { Json } from "../parts/json";
import { brief, length, title } from "../parts/text";
import { useTitle } from "../parts/title";

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
  useTitle(name, one && `version ${one.version}`);
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

function Figures({ name }: { name: string }) {
  const found = useQuery({
    queryKey: ["figures", name],
    queryFn: () => get<DefinitionFigures>(`definitions/${segment(name)}/figures`),
    meta: kindAdded("completed", "failed"),
  });
  const figures = found.data;
  if (!figures) return <Fault error={found.error} />;
  const ended = figures.completed + figures.failed;
  return (
    <Card title="The last day" side={<span className="quiet">jobs that ended with a report of their worker</span>}>
      {ended === 0 && figures.recent.length === 0 && <Empty>No job of this definition has ended.</Empty>}
      {ended > 0 && (
        <Facts
          of={[
            ["Succeeded", `${((figures.completed / ended) * 100).toFixed(1)} % of ${ended.toLocaleString()}`],
            ["Half ran no longer than", figures.run_p50_ms != null && length(figures.run_p50_ms)],
            ["95 % ran no longer than", figures.run_p95_ms != null && length(figures.run_p95_ms)],
          ]}
        />
      )}
      <ul className="plain-list recent">
        {figures.recent.map((job) => (
          <li key={job.id}>
            <State of={job.state} /> <JobLink id={job.id}>{brief(title(job), 80)}</JobLink>{" "}
            <span className="quiet">ran <Took from={job.claimed_at} to={job.finished_at} />, ended <Ago time={job.finished_at} /></span>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function Submit({ definition }: { definition: Definition }) {
  const navigate = useNavigate();
  const draft = usePayload((definition.body.payload_schema ?? undefined) as Schema | undefined, definition.body.payload ?? undefined);
  const [fault, setFault] = useState("");
  const act = async (payload: unknown) => {
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
      <SchemaForm draft={draft} />
      <p role="alert" className="bad-text">
        {fault}
      </p>
      <Does
        className="primary"
        before={draft.read}
        act={(ready) => act(ready.payload)}
        said="Submitted."
        then={(reply) => void navigate({ to: "/jobs/$id", params: { id: (reply as { id: string }).id } })}
      >
        Submit
      </Does>
    </Card>
  );
}
