import { Link } from "@tanstack/react-router";
import type { Definition } from "../api/client";
import { kindChanged } from "../api/live";
import { Ago, Tags } from "../parts/basics";
import { Pages } from "../parts/pages";
import { brief } from "../parts/text";
import { useTitle } from "../parts/title";

const live = kindChanged("definition_");

export function Definitions() {
  useTitle("Definitions");
  return (
    <>
      <header className="page-head">
        <h1>Definitions</h1>
      </header>
      <Pages<Definition>
        path="definitions"
        label="Definitions"
        meta={live}
        id={(one) => one.name}
        empty="There are no definitions here. A definition is a template for jobs: windlass definitions apply FILE"
        columns={[
          { name: "Name", cell: (one) => <Link to="/definitions/$name" params={{ name: one.name }}>{brief(one.name, 80)}</Link> },
          { name: "Version", cell: (one) => one.version },
          { name: "Description", cell: (one) => brief(one.body.description, 160), opt: true },
          { name: "Tags", cell: (one) => <Tags of={one.body.tags ?? []} /> },
          { name: "Changed", cell: (one) => <Ago time={one.created_at} /> },
        ]}
      />
    </>
  );
}
