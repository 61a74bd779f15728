// What should not be, shown safely and told in words.
import assert from "node:assert/strict";
import { proxy } from "../proxy.mjs";

const ODD = "\u202eabc\u0007\u200b\u0000";

export const stories = {
  async ten_megabytes_do_not_stop_a_page({ open, server, shot }) {
    const long = "0123456789".repeat(1_000_000);
    const { id } = await server.post("jobs", { name: "large", payload: { long, list: Array.from({ length: 5000 }, (_, at) => at) } });
    const lease = await server.claim();
    for (let at = 0; at < 6; at++) await server.report("logs", { lease: lease.lease, data: "x".repeat(250_000) });
    await server.report("logs", { lease: lease.lease, data: "\nshort\n" });
    await server.report("complete", { lease: lease.lease, result: long });
    const page = await open({ path: `jobs/${id}` });
    await page.getByRole("button", { name: "… all 10,000,000 characters" }).first().click({ timeout: 60_000 });
    await page.getByText("The first 1,000,000 are shown").waitFor();
    await page.locator(".line", { hasText: "short" }).waitFor();
    await page.getByRole("button", { name: "▸ [" }).click();
    await page.getByRole("button", { name: "4900 more" }).waitFor();
    await shot(page, "large");
  },

  async what_cannot_be_seen_is_made_visible({ open, server, shot }) {
    const { id } = await server.post("jobs", { name: "\u202eabc\u200b", payload: { [ODD]: ODD } });
    const lease = await server.claim();
    // Bytes that are no UTF-8 come from programs; as JSON they cannot be sent, so a file is.
    const token = await server.worker();
    const bytes = new Uint8Array([104, 105, 0xff, 0xfe, 0xc3, 10]);
    const sent = await fetch(`${server.url}/api/v1/leases/artifacts?name=${encodeURIComponent("a<b>.bin")}`, { method: "POST", headers: { authorization: `Bearer ${token}`, "windlass-lease": lease.lease }, body: bytes });
    assert.ok(sent.ok || sent.status === 404, String(sent.status));
    await server.report("logs", { lease: lease.lease, data: `\u202egnp.exe\ttab \u0007bell \ufffd\n` });
    await server.report("fail", { lease: lease.lease, message: ODD.replaceAll("\u0000", ""), permanent: true });
    const page = await open({ path: `jobs/${id}` });
    await page.locator(".line", { hasText: "⟨202e⟩gnp.exe" }).waitFor();
    await page.locator("h1", { hasText: "⟨202e⟩abc⟨200b⟩" }).waitFor();
    await page.locator(".json-key", { hasText: "␀" }).waitFor();
    assert.ok(!/[\u202e\u200b\u0007]/.test(await page.locator("main").innerText()));
    await shot(page, "odd");
  },

  async a_schema_that_no_form_can_draw_is_edited_as_json({ open, server }) {
    await server.put("definitions/odd", { payload_schema: { oneOf: [{ type: "object", required: ["a"] }, { type: "array" }] } });
    await server.put("definitions/deep", { payload_schema: { $ref: "#/$defs/x", $defs: { x: { type: "object" } } } });
    const page = await open({ path: "definitions/deep" });
    await page.getByText("This schema says more than a form can show").waitFor();
    await page.goto(`${server.url}/ui/definitions/odd`);
    await page.getByLabel("Payload as JSON").fill("{}");
    await page.getByRole("button", { name: "Submit", exact: true }).click();
    await page.locator("p.bad-text", { hasText: /not valid under any/ }).first().waitFor();
    await page.getByLabel("Payload as JSON").fill('{"a": 1}');
    await page.getByRole("button", { name: "Submit", exact: true }).click();
    await page.getByRole("heading", { name: "Why it is not running" }).waitFor();
  },

  async a_token_that_runs_out_in_the_middle_of_work_asks_for_another({ open, server }) {
    const { token } = await server.post("tokens", { principal: "eve", role: "editor", expires_ms: 4000 });
    const { id } = await server.post("jobs", { name: "half done" });
    const page = await open({ token, path: `jobs/${id}` });
    await page.getByRole("heading", { name: "half done" }).waitFor();
    await page.getByText("The session has ended. Sign in again to go on where you were.").waitFor({ timeout: 30_000 });
    await page.getByLabel("Token").fill(server.token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("button", { name: "Yes" }).click();
    await page.locator("h1 + .state.cancelled").waitFor();
    assert.ok(page.url().endsWith(id), "where one was");
  },

  /** A stream that stands still is cut off by the server or lags; the page says so, comes back and catches up. */
  async a_stream_that_ends_or_lags_is_caught_up_with({ open, server }) {
    const between = await proxy({ target: server.url });
    const page = await open({ url: `http://127.0.0.1:${between.address().port}`, path: "jobs" });
    await page.locator(".live.live").waitFor();
    const { port } = between.address();
    between.closeAllConnections();
    between.close();
    await page.locator(".live.down").waitFor();
    await server.post("jobs", { name: "meanwhile" });
    const again = await proxy({ target: server.url, port });
    await page.locator(".live.live").waitFor({ timeout: 30_000 });
    await page.getByText("meanwhile").waitFor();
    await page.context().close();
    again.closeAllConnections();
    again.close();
  },

  async a_wrong_clock_changes_no_times({ open, server }) {
    await server.post("jobs", { name: "just now" });
    const page = await open({ path: "jobs", clock: 3 * 3_600_000 });
    const row = page.locator(".scroll .tr", { hasText: "just now" });
    await row.waitFor();
    assert.match(await row.locator("span[role=cell]").last().innerText(), /^(now|\d+(\.\d)? s ago)$/);
    await page.getByText(/clock of this machine is 3 h 0 min ahead/).waitFor();
  },
};
stories.ten_megabytes_do_not_stop_a_page.options = ["--payload-max", "12MiB", "--body-max", "32MiB", "--job-log-max", "32MiB"];
