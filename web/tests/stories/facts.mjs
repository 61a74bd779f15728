// What pages tell about definitions, workers, schedules, traces, logs and items.
import assert from "node:assert/strict";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";

export const stories = {
  async definitions_workers_and_schedules_tell_how_it_went({ open, server, shot }) {
    await server.put("definitions/resize", { payload_schema: { type: "object" } });
    for (let at = 0; at < 7; at++) {
      await server.post("jobs", { definition: "resize", name: `photo ${at}`, payload: {} });
      const lease = await server.claim(at < 5 ? "good" : "bad");
      if (at < 5) await server.report("complete", { lease: lease.lease });
      else await server.report("fail", { lease: lease.lease, message: "no disk", permanent: true });
    }
    await server.put("schedules/often", { every_ms: 1000, job: { name: "by the clock", tags: ["nobody"] } });
    const page = await open({ path: "definitions/resize" });
    await page.getByText("71.4 % of 7").waitFor();
    await page.locator(".recent li", { hasText: "photo 6" }).first().waitFor();
    assert.equal(await page.locator(".recent li").count(), 7);
    await shot(page, "definition-figures");
    await page.locator(".recent a", { hasText: "photo 6" }).click();
    await page.getByRole("heading", { name: "photo 6" }).waitFor();
    await page.goto(`${server.url}/ui/workers/bad`);
    await page.getByText("2 of 2 attempts, 100.0 %").waitFor();
    await page.getByText("0 of 5 attempts, 0.0 %").waitFor();
    await shot(page, "worker-figures");
    await page.goto(`${server.url}/ui/schedules`);
    await page.getByRole("link", { name: "often" }).click();
    await page.locator("li", { hasText: "pending" }).first().waitFor();
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByText("It is paused.").waitFor();
    await shot(page, "schedule");
  },

  async a_schedule_that_is_run_by_hand_shows_the_job({ open, server }) {
    await server.put("schedules/rarely", { every_ms: 86_400_000, job: { name: "by hand", tags: ["nobody"] } });
    const page = await open({ path: "schedules/rarely" });
    await page.getByText("It has created no job yet.").waitFor();
    await page.getByRole("button", { name: "Run now" }).click();
    await page.getByText("A job was submitted.").waitFor();
    await page.locator(".plain-list li", { hasText: "pending" }).getByRole("link").click();
    await page.getByRole("heading", { name: "by hand" }).waitFor();
  },

  async a_job_links_to_its_trace({ open, server }) {
    const headers = { authorization: `Bearer ${server.token}`, "content-type": "application/json", traceparent: `00-${TRACE}-00f067aa0ba902b7-01` };
    const answer = await fetch(`${server.url}/api/v1/jobs`, { method: "POST", headers, body: "{}" });
    const { id } = await answer.json();
    const page = await open({ path: `jobs/${id}` });
    const link = page.getByRole("link", { name: TRACE });
    assert.equal(await link.getAttribute("href"), `https://traces.example.com/t/${TRACE}`);
  },

  /** Of a long log the page holds the newest lines; the server finds the others. */
  async long_logs_are_searched_by_the_server({ open, server, shot }) {
    const { id } = await server.post("jobs", { name: "talks a lot" });
    const lease = await server.claim();
    for (let part = 0; part < 60; part++) {
      const lines = Array.from({ length: 1000 }, (_, at) => (part === 0 && at === 7 ? "the needle lies here" : `line ${part * 1000 + at}`));
      await server.report("logs", { lease: lease.lease, data: `${lines.join("\n")}\n` });
    }
    await server.report("complete", { lease: lease.lease });
    const page = await open({ path: `jobs/${id}` });
    await page.getByText(/older ones are found by searching/).waitFor({ timeout: 60_000 });
    await page.getByLabel("Search the log").fill("NEEDLE");
    await page.locator(".line", { hasText: "the needle lies here" }).waitFor();
    await page.getByText("1 line of 60,000 searched on the server").waitFor();
    await shot(page, "log-search");
    await page.getByLabel("Search the log").fill("not in there");
    await page.getByText("No line fits.").waitFor();
  },

  /** Items of Silo's world, written as Silo's clients do. */
  async items_show_their_parts_and_what_is_dirty({ open, server, shot }) {
    const silo = async (method, path, body) => {
      const headers = { authorization: `Bearer ${server.token}`, "content-type": "application/json" };
      const answer = await fetch(`${server.url}/api/${path}`, { method, headers, body: JSON.stringify(body) });
      if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    };
    for (const [part_number, item_type, description] of [["ARM-001", "assembly", "Robot arm"], ["LINK-002", "part", "Upper link <b>"], ["BOLT-M5", "part", "Bolt"]]) {
      await silo("POST", "items", { part_number, item_type, description });
    }
    await silo("POST", "items/ARM-001/bom", { child_part_number: "LINK-002", quantity: 2, unit: "pcs" });
    await silo("POST", "items/LINK-002/bom", { child_part_number: "BOLT-M5", quantity: 4, unit: "pcs" });
    const keys = ["sketch", "pad", "hole", "fillet", "colour"];
    const nodes = keys.map((node_key) => ({ node_key, node_type: "pad", properties_hash: "1" }));
    const edges = [["sketch", "pad"], ["pad", "hole"], ["hole", "fillet"]].map(([source_key, target_key]) => ({ source_key, target_key }));
    await silo("PUT", "items/LINK-002/dag", { nodes, edges });
    await silo("POST", "items/LINK-002/dag/mark-dirty/pad", {});
    const page = await open({ path: "items" });
    await page.locator("header select").first().selectOption("silo");
    await page.getByRole("link", { name: "ARM-001" }).click();
    await page.locator("li", { hasText: "LINK-002" }).waitFor();
    await page.locator("li", { hasText: "BOLT-M5" }).getByText("× 4 pcs").waitFor();
    await shot(page, "item");
    await page.getByRole("link", { name: "LINK-002" }).click();
    await page.getByText("5 nodes, 3 dirty").waitFor();
    await page.locator(".step.pending").nth(2).waitFor();
    assert.equal(await page.locator(".step.pending").count(), 3);
    await page.locator(".react-flow__edge.dirty").first().waitFor({ state: "attached" });
    assert.equal(await page.locator(".react-flow__edge.dirty").count(), 2, "the cone that is dirty");
    await page.locator(".step", { hasText: "sketch" }).click();
    await page.getByText("3 depend on sketch").waitFor();
    assert.equal(await page.locator(".step.chosen").count(), 4);
    await shot(page, "item-graph");
    assert.equal(await page.locator("h1 + span").textContent(), "revision 1");
  },

  async the_overview_names_what_waits_for_people_and_what_fails_without_a_definition({ open, server }) {
    const { id } = await server.post("runs", { source: "name: album\nsteps:\n  ask: {wait: {approval: true}}\n" });
    const page = await open({ path: "workers" });
    await page.route("**/api/v1/overview?*", async (route) => {
      const answer = await route.fetch();
      const waiting_steps = [{ run: id, workflow: "album", step: "ask", job: id }];
      await route.fulfill({ json: { ...(await answer.json()), failing_others: { completed: 9_900, failed: 100 }, waiting_steps } });
    });
    await page.getByRole("link", { name: "Overview", exact: true }).click();
    await page.getByText("100 of 10,000 failed in the last hour or two").waitFor();
    await page.locator(".attention li", { hasText: "waits for approval" }).getByRole("link", { name: "ask" }).click();
    await page.waitForURL(`**/runs/${id}?step=ask`);
    await page.locator("#step", { hasText: "ask" }).waitFor();
  },
};
stories.a_job_links_to_its_trace.options = ["--trace-url", "https://traces.example.com/t/{trace}"];
