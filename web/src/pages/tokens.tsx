import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { call, type Token } from "../api/client";
import { Ago, Card, Copy, Does, Tags } from "../parts/basics";
import { Pages } from "../parts/pages";
import { say } from "../parts/said";
import { brief } from "../parts/text";
import { useTitle } from "../parts/title";

const DAY = 86_400_000;

export function Tokens() {
  useTitle("Tokens");
  const client = useQueryClient();
  const again = () => void client.invalidateQueries({ queryKey: ["pages", "tokens"] });
  return (
    <>
      <header className="page-head">
        <h1>Tokens</h1>
      </header>
      <Create done={again} />
      <Pages<Token>
        path="tokens"
        label="Tokens"
        id={(token) => token.id}
        empty="There are no tokens you may see."
        columns={[
          { name: "Principal", cell: (token) => brief(token.principal, 80) },
          { name: "Role", cell: (token) => token.role },
          { name: "Begins with", cell: (token) => <code>{brief(token.shown, 40)}</code> },
          { name: "Namespaces", cell: (token) => (token.namespaces?.length ? <Tags of={token.namespaces} /> : "all"), opt: true },
          { name: "Last used", cell: (token) => <Ago time={token.last_used} /> },
          { name: "Expires", cell: (token) => (token.expires_at ? <Ago time={token.expires_at} /> : "never"), opt: true },
          {
            name: "",
            cell: (token) => (
              <Does
                className="danger"
                act={() => call("DELETE", `tokens/${token.id}`, { anywhere: true })}
                ask={`Revoke this token of ${token.principal}? Tokens created with it are revoked too.`}
                said="The token was revoked."
                then={again}
              >
                Revoke
              </Does>
            ),
          },
        ]}
      />
    </>
  );
}

function Create({ done }: { done: () => void }) {
  const [made, setMade] = useState<string>();
  async function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const form = event.currentTarget;
    const data = new FormData(form);
    const days = Number(data.get("days"));
    const body = {
      principal: data.get("principal"),
      role: data.get("role"),
      namespaces: String(data.get("namespaces")).split(/[\s,]+/).filter(Boolean),
      expires_ms: days > 0 ? Math.round(days * DAY) : undefined,
    };
    try {
      setMade((await call<{ token: string }>("POST", "tokens", { body, anywhere: true })).token);
      form.reset();
      done();
    } catch (error) {
      say((error as Error).message, "bad");
    }
  }
  return (
    <Card title="Create a token">
      <form className="row wrap" onSubmit={(event) => void submit(event)}>
        <label>Principal <input name="principal" required /></label>
        <label>
          Role{" "}
          <select name="role" defaultValue="viewer">
            {["viewer", "editor", "admin", "worker"].map((role) => <option key={role}>{role}</option>)}
          </select>
        </label>
        <label>Namespaces <input name="namespaces" placeholder="all" /></label>
        <label>Days <input name="days" type="number" min="1" placeholder="no end" /></label>
        <button className="primary">Create</button>
      </form>
      {made && (
        <p className="note" role="status">
          <code>{made}</code> <Copy text={made} /> This is the only time it is shown.{" "}
          <button className="small" onClick={() => setMade(undefined)}>Hide</button>
        </p>
      )}
    </Card>
  );
}
