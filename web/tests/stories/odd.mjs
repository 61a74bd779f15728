// What should not be, shown safely and told in words.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { join } from "node:path";
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
    await server.report("logs", { lease: lease.lease, data: `\u202egnp.exe\ttab \u0007bell \ufffd\n` });
    await server.report("fail", { lease: lease.lease, message: ODD.replaceAll("\u0000", ""), permanent: true });
    const page = await open({ path: `jobs/${id}` });
    await page.locator(".line", { hasText: "⟨202e⟩gnp.exe" }).waitFor();
    await page.locator("h1", { hasText: "⟨202e⟩abc⟨200b⟩" }).waitFor();
    await page.locator(".json-key", { hasText: "␀" }).waitFor();
    assert.ok(!/[\u202e\u200b\u0007]/.test(await page.locator("main").innerText()));
    await shot(page, "odd");
  },

  /** Programs write what they like: to their log, to files, and into the names of files. A real worker passes it on. */
  async bytes_that_are_no_text_are_shown_as_such({ open, server, shot, program, folder }) {
    const wild = "h\\303\\251llo \\377\\376 \\303( \\355\\240\\200 end";
    const shell = `printf '${wild}\\n'; printf '\\377\\000\\376raw' > data.bin; "${program}" artifact put data.bin; printf x > "$(printf 'odd\\377name')"; "${program}" artifact put "$(printf 'odd\\377name')" || true; exit 1`;
    const { id } = await server.post("jobs", { name: "wild", payload: { shell }, retry: { attempts: 1 } });
    const env = { ...process.env, WINDLASS_TOKEN: await server.worker() };
    const args = ["worker", "--server", server.direct, "--name", "w1", "--work-dir", join(folder, "work"), "--allow-commands", "--once"];
    const worker = spawn(program, args, { env, stdio: "ignore" });
    const page = await open({ path: `jobs/${id}` });
    await page.locator("h1 + .state.failed").waitFor({ timeout: 30_000 });
    await page.locator(".line", { hasText: /héllo \ufffd+ \ufffd+\( \ufffd+ end/ }).waitFor();
    const link = page.getByRole("link", { name: "data.bin" });
    await link.waitFor();
    // A file comes back byte for byte, as a download and never as a page.
    const { bytes, headers } = await page.evaluate(async (url) => {
      const answer = await fetch(url);
      return { bytes: [...new Uint8Array(await answer.arrayBuffer())], headers: Object.fromEntries(answer.headers) };
    }, await link.getAttribute("href"));
    assert.deepEqual(bytes, [0xff, 0, 0xfe, ...Buffer.from("raw")]);
    assert.match(headers["content-disposition"], /^attachment/);
    assert.equal(headers["x-content-type-options"], "nosniff");
    assert.ok(!(await page.locator("main").innerText()).includes("\u0000"));
    await shot(page, "no-text");
    if (worker.exitCode === null) await new Promise((done) => worker.once("exit", done));
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
    const { token } = await server.post("tokens", { principal: "eve", role: "editor", expires_ms: 10_000 });
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
