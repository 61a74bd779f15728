// What a user does, and what must come of it.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { copyFileSync, readFileSync } from "node:fs";
import { proxy } from "./proxy.mjs";

const axe = readFileSync(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
/** Pictures of the documentation, written with SHOTS=1 WINDLASS_WRITE_DOCS=1. */
const IN_DOCS = { "overview-1280-light": "dashboard", "why-1280-light": "dashboard-why", "run-1280-dark": "dashboard-run" };
const WIDE = { viewport: { width: 1280, height: 800 } };
const OTHER_WIDTHS = [1440, 1024];
const NARROW = { width: 390, height: 844 };
const MARKUP = `<img src=x onerror="document.title='broken'"><script>document.title='broken'</script>`;
const ODD = "\u202e\u0007\u200b";

/** Serious findings of axe, which the page must not have; of these rules alone, if any are named. Its script is let in by the debugger,
 * past the page's own policy. */
async function findings(page, runOnly) {
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(axe);
  const found = await page.evaluate((runOnly) => globalThis.axe.run(document, { resultTypes: ["violations"], runOnly }), runOnly);
  return found.violations
    .filter((one) => one.impact === "serious" || one.impact === "critical")
    .map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 120)).join(" | ")}`);
}

async function define(server) {
  await server.put("definitions/resize", {
    description: "Resizes a photo.",
    payload_schema: {
      type: "object",
      required: ["photo", "width"],
      properties: { photo: { type: "string" }, width: { type: "integer", minimum: 1 }, sharp: { type: "boolean" } },
    },
  });
  await server.put("definitions/odd", { payload_schema: { oneOf: [{ type: "object" }, { type: "array" }] } });
}

export const stories = {
  async sign_in({ open, server }) {
    const page = await open({ token: null });
    await page.getByLabel("Token").fill("wrong");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("the token is not valid").waitFor();
    await page.getByLabel("Token").fill(server.token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    const [cookie] = await page.context().cookies(`${server.url}/api/v1/session`);
    assert.ok(cookie.httpOnly && cookie.sameSite === "Strict" && cookie.path === "/api/v1", JSON.stringify(cookie));
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Token").waitFor();
    const { code } = await server.post("session/codes");
    await page.goto(`${server.url}/ui/?again#code=${code}`);
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    assert.ok(!page.url().includes(code), "the code does not stay in the address");
  },

  async submit_by_form_and_follow_the_log({ open, server, shot }) {
    await define(server);
    const page = await open({ path: "definitions/resize" });
    await page.getByLabel("photo").fill("beach");
    await page.getByLabel("width").fill("300");
    await page.getByRole("button", { name: "Submit", exact: true }).click();
    await page.getByRole("heading", { name: "Why it is not running" }).waitFor();
    await page.getByText(/no worker/i).first().waitFor();
    await shot(page, "why");
    const lease = await server.claim();
    await page.locator("h1 + .state.claimed, h1 + .state.running").waitFor();
    await server.report("logs", { lease: lease.lease, data: "one\n\u001b[31mred\u001b[0m two\n" });
    await page.locator(".ansi-red-fg", { hasText: "red" }).waitFor();
    await server.report("logs", { lease: lease.lease, data: "ERROR three\n" });
    await page.locator(".line.error", { hasText: "three" }).waitFor();
    await page.getByLabel("Search the log").fill("two");
    await page.getByText("1 line", { exact: true }).waitFor();
    await server.report("complete", { lease: lease.lease, result: { bytes: 12345678901234567890n.toString() } });
    await page.locator("h1 + .state.completed").waitFor();
    await page.goto(`${server.url}/ui/definitions/odd`);
    await page.getByLabel("Payload as JSON").fill("{");
    await page.getByText("This is not JSON").waitFor();
  },

  async cancel_and_retry({ open, server }) {
    const { id } = await server.post("jobs", { name: "to cancel" });
    const page = await open({ path: `jobs/${id}` });
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("button", { name: "Yes" }).click();
    await page.locator("h1 + .state.cancelled").waitFor();
    await page.getByRole("button", { name: "Retry" }).click();
    await page.locator("h1 + .state.pending").waitFor();
    for (let at = 0; at < 3; at++) await server.post("jobs", { name: `many ${at}` });
    await page.getByRole("link", { name: "Jobs", exact: true }).click();
    await page.getByText("many 2").waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("x");
    await page.keyboard.press("j");
    await page.keyboard.press("x");
    await page.getByText("2 chosen").waitFor();
    await page.getByRole("button", { name: "Cancel 2" }).click();
    await page.getByRole("button", { name: "Yes" }).click();
    await page.getByText("2 of 2: cancel done.").waitFor();
    await page.locator(".state.cancelled").nth(2).waitFor();
  },

  async a_run_goes_green({ open, server, shot }) {
    const source = "name: album\nsteps:\n  collect: {payload: {}}\n  ask: {needs: collect, wait: {approval: true}}\n  publish: {needs: ask, payload: {}}\n";
    const { id } = await server.post("runs", { source });
    const page = await open({ path: `runs/${id}` });
    await page.locator(".step", { hasText: "collect" }).waitFor();
    const one = await server.claim();
    await page.locator(".step.claimed, .step.running").waitFor();
    await server.report("complete", { lease: one.lease });
    await page.locator(".step.completed", { hasText: "collect" }).waitFor();
    await page.getByRole("button", { name: "Approve" }).first().click();
    const two = await server.claim();
    await server.report("complete", { lease: two.lease, result: { published: true } });
    await page.locator(".step.completed").nth(2).waitFor();
    await page.locator("h1 + .state.completed").waitFor();
    await page.locator(".step", { hasText: "publish" }).click();
    await page.locator("#step .json-key", { hasText: "published" }).waitFor();
    await shot(page, "run-completed");
  },

  async roles_end_at_what_they_may({ open, server }) {
    const { token } = await server.post("tokens", { principal: "eve", role: "viewer" });
    const { id } = await server.post("jobs", { name: "look only" });
    const page = await open({ token, path: `jobs/${id}` });
    await page.getByRole("heading", { name: "look only" }).waitFor();
    assert.equal(await page.getByRole("button", { name: "Cancel" }).count(), 0);
    assert.equal(await page.getByRole("link", { name: "Tokens" }).count(), 0);
    await page.getByRole("link", { name: "Jobs", exact: true }).click();
    await page.getByText("look only").waitFor();
    assert.equal(await page.getByRole("checkbox").count(), 0);
    const limited = (await server.post("tokens", { principal: "mallory", role: "viewer", namespaces: ["team"] })).token;
    const other = await open({ token: limited });
    assert.deepEqual(await other.locator("select").first().locator("option").allTextContents(), ["team"]);
    // Its token ends in the middle of work.
    const { items } = await server.get("tokens");
    const session = items.find((one) => one.principal === "eve" && !one.shown.startsWith("wl_page_"));
    await server.call("DELETE", `tokens/${session.id}`);
    await page.getByText("The session has ended").waitFor();
  },

  async what_workers_write_is_only_text({ open, server, shot }) {
    const name = `${MARKUP}\u202e`;
    const payload = { [MARKUP]: MARKUP + ODD, deep: { list: [MARKUP] }, number: 1, long: "x".repeat(1_000_000) };
    const { id } = await server.post("jobs", { name, payload, tags: [], facets: { kind: "odd" } });
    const worker = `<b>w</b>`;
    const lease = await server.claim(worker);
    await server.report("logs", { lease: lease.lease, data: `${MARKUP}${ODD}\n\u001b]8;;javascript:alert(1)\u0007link\u001b]8;;\u0007\n` });
    await server.report("progress", { lease: lease.lease, percent: 50, message: MARKUP });
    const page = await open({ path: `jobs/${id}` });
    await page.locator(".line", { hasText: "<img" }).waitFor();
    await server.report("fail", { lease: lease.lease, message: MARKUP + ODD, permanent: true });
    await page.locator("h1 + .state.failed").waitFor();
    await shot(page, "hostile");
    for (const path of ["jobs", "workers", `workers/${encodeURIComponent(worker)}`, "events", "audit"]) {
      await page.goto(`${server.url}/ui/${path}`);
      await page.locator("h1").waitFor();
    }
    await page.goto(`${server.url}/ui/jobs?q=${encodeURIComponent(MARKUP)}`);
    await page.locator("h1").waitFor();
    assert.match(await page.title(), /^Jobs .* · Windlass$/);
    assert.equal(await page.locator("img, main script, .line a").count(), 0);
    const policy = (await (await fetch(`${server.url}/ui/`)).headers).get("content-security-policy");
    assert.ok(!policy.includes("unsafe"));
  },

  async a_restart_is_survived({ open, server }) {
    await server.post("jobs", { name: "before" });
    const page = await open({ path: "jobs" });
    await page.getByText("before").waitFor();
    await page.locator(".live.live").waitFor();
    await server.stop();
    await page.locator(".live.down").waitFor();
    await server.start();
    await server.post("jobs", { name: "after the restart" });
    await page.getByText("after the restart").waitFor();
    await page.locator(".live.live").waitFor();
  },

  async below_a_prefix({ open, server }) {
    const { id } = await server.post("jobs", { name: "below" });
    const between = await proxy({ target: server.url, prefix: "/tools/windlass" });
    const page = await open({ url: `http://127.0.0.1:${between.address().port}/tools/windlass`, path: `jobs/${id}` });
    await page.getByRole("heading", { name: "below" }).waitFor();
    await page.getByRole("link", { name: "Workers", exact: true }).click();
    await page.getByText("No worker has registered").waitFor();
    assert.ok(page.url().endsWith("/tools/windlass/ui/n/default/workers"), page.url());
    await page.locator(".live.live").waitFor();
    await page.context().close();
    between.closeAllConnections();
    between.close();
  },

  async the_first_load_is_small({ open }) {
    const page = await open({ token: null });
    await page.getByLabel("Token").waitFor();
    const bytes = await page.evaluate(() =>
      performance.getEntriesByType("resource").filter((one) => one.name.includes("/ui/")).reduce((sum, one) => sum + one.encodedBodySize, 0),
    );
    console.log(`      ${bytes} bytes compressed`);
    assert.ok(bytes > 10_000 && bytes < 250_000, `${bytes}`);
  },

  async every_page_with_a_demo({ browser, program, open, shot, front, folder }) {
    const child = spawn(program, ["up", "--demo", "--listen", "127.0.0.1:0"], { cwd: folder, stdio: ["ignore", "pipe", "inherit"] });
    let text = "";
    const link = await new Promise((ready, failed) => {
      child.stdout.on("data", (data) => {
        text += data;
        const found = /Dashboard\s+(\S+)/.exec(text);
        if (found && text.includes("Ctrl-C stops it")) ready(found[1]);
      });
      child.on("exit", () => failed(new Error(text)));
    });
    try {
      const url = await front(link.split("/ui/")[0]);
      const page = await open({ token: null, url, path: `#${link.split("#")[1]}` });
      await page.getByRole("heading", { name: "Overview" }).waitFor();
      // Something to show on every page within ten seconds.
      await page.getByText(/has waited|failed \d+ of/).first().waitFor({ timeout: 90_000 });
      const cookies = await page.context().storageState();
      // As the README says: from the link to a stuck job that is explained, with the whole command that helps.
      await page.locator(".attention a", { hasText: "train model" }).click();
      await page.locator("[data-code=no_worker_offers]", { hasText: "windlass worker --tag gpu-h100" }).getByText("--token-file .windlass/worker.token").waitFor();
      await page.goto(`${url}/ui/jobs?state=pending`);
      await page.getByText("train model").waitFor({ timeout: 10_000 });
      await page.getByText("train model").click();
      await page.locator("[data-code=no_worker_offers]").waitFor();
      const job = page.url().split("/").pop();
      await page.goto(`${url}/ui/runs`);
      await page.locator("td a", { hasText: "album" }).first().click();
      await page.locator(".step").first().waitFor();
      const run = page.url().split("/").pop();
      await page.context().close();
      const places = {
        overview: "", jobs: "jobs", why: `jobs/${job}`, runs: "runs", run: `runs/${run}`, workers: "workers",
        worker: "workers/render-1", definitions: "definitions", definition: "definitions/render-frame",
        items: "items", item: "items/LINK-002", schedules: "schedules", schedule: "schedules/digest", events: "events", tokens: "tokens", audit: "audit", settings: "settings", dialects: "dialects",
      };
      const faults = [];
      const wide = async (page, name) => {
        const [more, width] = await page.evaluate(() => [document.documentElement.scrollWidth - innerWidth, innerWidth]);
        if (more > 0) faults.push(`${name} is ${more} pixels wider than ${width}`);
      };
      // The page hears of it a moment later.
      const paint = async (page, colorScheme) => {
        await page.emulateMedia({ colorScheme });
        await page.locator(`html[data-theme=${colorScheme}]`).waitFor();
      };
      const look = async (places) => {
        const page = await (await browser.newContext({ ...WIDE, storageState: cookies, reducedMotion: "reduce" })).newPage();
        const told = (name, how, found) => faults.push(...found.map((one) => `${name}, ${how}: ${one}`));
        for (const [name, path] of places) {
          // Charts, graphs and lists are drawn a moment after their data came; there is no other sign of it.
          const drawn = () => page.waitForTimeout(name === "events" ? 1500 : 500);
          await page.goto(`${url}/ui/${path}`);
          await page.locator("h1").waitFor();
          await drawn();
          await shot(page, `${name}-1280-light`);
          await wide(page, name);
          told(name, "light", await findings(page));
          await paint(page, "dark");
          await shot(page, `${name}-1280-dark`);
          // Nothing but the colours has changed.
          told(name, "dark", await findings(page, ["color-contrast"]));
          await paint(page, "light");
          for (const width of OTHER_WIDTHS) {
            await page.setViewportSize({ width, height: 900 });
            await drawn();
            await shot(page, `${name}-${width}-light`);
            await wide(page, name);
          }
          await page.setViewportSize(NARROW);
          await page.reload();
          await page.locator("h1").waitFor();
          await drawn();
          await shot(page, `${name}-390-light`);
          await wide(page, name);
          told(name, "narrow", await findings(page));
          await paint(page, "dark");
          await shot(page, `${name}-390-dark`);
          told(name, "narrow and dark", await findings(page, ["color-contrast"]));
          await paint(page, "light");
          await page.setViewportSize(WIDE.viewport);
        }
        await page.context().close();
      };
      const all = Object.entries(places);
      await Promise.all([0, 1].map((at) => look(all.filter((_, place) => place % 2 === at))));
      assert.deepEqual(faults, []);
      if (process.env.WINDLASS_WRITE_DOCS) {
        for (const [from, to] of Object.entries(IN_DOCS)) copyFileSync(new URL(`shots/${from}.png`, import.meta.url), new URL(`../../docs/${to}.png`, import.meta.url));
      }
    } finally {
      const ended = new Promise((done) => child.once("exit", done));
      child.kill("SIGINT");
      await ended;
    }
  },
};
