import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { Suspense, useState } from "react";
import { type BomRow, type FeatureGraph, get, type Item, type Page, segment } from "../api/client";
import { anyChanged } from "../api/live";
import { Ago, Card, Empty, Fault, Facts, Tags } from "../parts/basics";
import { later } from "../parts/later";
import { Pages } from "../parts/pages";
import { brief } from "../parts/text";
import { useTitle } from "../parts/title";

const Features = later(() => import("../parts/features").then((part) => part.default));

const ItemLink = ({ part }: { part: string }) => (
  <Link to="/items/$part" params={{ part }}>
    {brief(part, 60)}
  </Link>
);

export function Items() {
  useTitle("Items");
  return (
    <>
      <header className="page-head">
        <h1>Items</h1>
      </header>
      <Pages<Item>
        path="items"
        label="Items"
        id={(item) => item.id}
        empty="There are no items in this namespace. Those of Silo are in the namespace silo."
        columns={[
          { name: "Part number", cell: (item) => <ItemLink part={item.part_number} /> },
          { name: "Description", cell: (item) => brief(item.description, 120) },
          { name: "Type", cell: (item) => brief(item.item_type, 40), opt: true },
          { name: "Revision", cell: (item) => item.revision },
          { name: "Changed", cell: (item) => <Ago time={item.updated_at} /> },
        ]}
      />
    </>
  );
}

export function ItemPage() {
  const { part } = useParams({ from: "/items/$part" });
  const path = `items/${segment(part)}`;
  const found = useQuery({ queryKey: ["item", part], queryFn: () => get<Item>(path), meta: anyChanged });
  const bom = useQuery({ queryKey: ["bom", part], queryFn: () => get<Page<BomRow>>(`${path}/bom/levels`, { depth: 10 }), meta: anyChanged });
  const item = found.data;
  useTitle(part, item && `revision ${item.revision}`);
  return (
    <>
      <header className="page-head">
        <h1>{brief(part, 100)}</h1>
        {item && <span className="quiet">revision {item.revision}</span>}
      </header>
      <Fault error={found.error} />
      {item && (
        <Facts
          of={[
            ["Description", brief(item.description, 500)],
            ["Type", brief(item.item_type)],
            ["Projects", item.projects?.length ? <Tags of={item.projects} /> : undefined],
            ["Changed", <><Ago time={item.updated_at} /> by {brief(item.updated_by, 60)}</>],
          ]}
        />
      )}
      <Card title="Bill of material">
        <Fault error={bom.error} />
        {bom.data?.items.length === 0 && <Empty>It contains nothing.</Empty>}
        <ul className="plain-list">
          {bom.data?.items.slice(0, 1000).map((row, index) => (
            <li key={index} style={{ paddingLeft: (row.level ?? 1) * 18 }}>
              <ItemLink part={row.child} /> <span className="quiet">× {row.quantity} {brief(row.unit, 20)} {row.relation}</span>
            </li>
          ))}
        </ul>
      </Card>
      <GraphCard path={path} />
    </>
  );
}

function GraphCard({ path }: { path: string }) {
  const [chosen, setChosen] = useState<string>();
  const found = useQuery({ queryKey: ["features", path], queryFn: () => get<FeatureGraph>(`${path}/graph`), meta: anyChanged });
  const cone = useQuery({
    queryKey: ["cone", path, chosen],
    queryFn: () => get<FeatureGraph>(`${path}/graph/cone`, { node: chosen, direction: "forward" }),
    enabled: chosen !== undefined,
  });
  const graph = found.data;
  const reached = new Set(cone.data?.nodes.map((node) => node.key) ?? []);
  if (chosen) reached.add(chosen);
  const dirty = graph?.nodes.filter((node) => node.state === "dirty").length ?? 0;
  return (
    <Card title="Features" side={graph && <span className="quiet">{graph.nodes.length} {graph.nodes.length === 1 ? "node" : "nodes"}, {dirty} dirty{chosen && `, ${reached.size - 1} depend on ${brief(chosen, 40)}`}</span>}>
      <Fault error={found.error ?? cone.error} />
      {graph?.nodes.length === 0 && <Empty>It has no feature graph.</Empty>}
      {graph && graph.nodes.length > 0 && (
        <Suspense fallback={<div className="graph" />}>
          <Features graph={graph} cone={reached} choose={setChosen} />
        </Suspense>
      )}
    </Card>
  );
}
