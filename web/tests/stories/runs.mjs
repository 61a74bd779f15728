// Runs: what one sees and does with them.
import assert from "node:assert/strict";

const run = (server, source, input) => server.post("runs", { source, input });

export const stories = {
  async a_failed_run_is_undone_and_retried_from_where_it_failed({ open, server, shot }) {
    const source = `name: trip
steps:
  hotel:
    payload: {nights: 2}
    compensate: {payload: {cancel: "\${{ output.booking }}"}}
  car:
    needs: hotel
    retry: {attempts: 1}
    payload: {for: "\${{ steps.hotel.output.booking }}"}
`;
    const { id } = await run(server, source);
    const page = await open({ path: `runs/${id}` });
    const hotel = await server.claim();
    await server.report("complete", { lease: hotel.lease, result: { booking: "h-17" } });
    const car = await server.claim();
    await page.locator(".step.claimed, .step.running", { hasText: "car" }).click();
    // What one step gave is what the next one got.
    await page.locator("#step .json-string", { hasText: "h-17" }).waitFor();
    await server.report("fail", { lease: car.lease, message: "no cars", permanent: true });
    await page.locator(".step", { hasText: "undo hotel" }).waitFor();
    const undo = await server.claim();
    await server.report("complete", { lease: undo.lease });
    await page.locator(".step.completed", { hasText: "undo hotel" }).waitFor();
    await page.locator("h1 + .state.failed").waitFor();
    await page.locator(".gantt li", { hasText: "hotel" }).first().waitFor();
    assert.ok((await page.locator(".gantt li").count()) >= 3);
    await page.locator(".gantt button", { hasText: "car" }).click();
    await page.locator("#step", { hasText: "no cars" }).waitFor();
    await shot(page, "run-undone");
    await page.getByRole("button", { name: "Retry from failed" }).click();
    await page.getByText("Retry of").waitFor();
    assert.ok(!page.url().endsWith(id));
    await page.locator("h1 + .state.running").waitFor();
  },

  async a_step_is_rejected({ open, server }) {
    const { id } = await run(server, "name: album\nsteps:\n  ask: {wait: {approval: true}}\n  publish: {needs: ask, payload: {}}\n");
    const page = await open({ path: `runs/${id}` });
    await page.getByRole("button", { name: "Reject" }).first().click();
    await page.getByRole("button", { name: "Yes" }).click();
    await page.locator(".step.failed", { hasText: "ask" }).waitFor();
    await page.locator(".step.skipped", { hasText: "publish" }).waitFor();
    await page.locator("h1 + .state.failed").waitFor();
  },

  async a_thousand_steps_stay_usable({ open, server, shot }) {
    const steps = Array.from({ length: 1000 }, (_, at) => `  s${at}: {payload: {}, tags: [nobody]${at >= 50 ? `, needs: s${at - 50}` : ""}}`);
    const { id } = await run(server, `name: wide\nsteps:\n${steps.join("\n")}\n`);
    const begun = Date.now();
    const page = await open({ path: `runs/${id}` });
    await page.locator(".step").first().waitFor({ timeout: 60_000 });
    const drawn = Date.now() - begun;
    // The map of it, and the keyboard and the mouse still work.
    await page.locator(".react-flow__minimap").waitFor();
    const frames = await page.evaluate(async () => {
      const pane = document.querySelector(".react-flow__pane");
      const box = pane.getBoundingClientRect();
      const at = { clientX: box.x + box.width / 2, clientY: box.y + box.height / 2, bubbles: true };
      const found = [];
      let last = performance.now();
      for (let turn = 0; turn < 60; turn++) {
        pane.dispatchEvent(new WheelEvent("wheel", { ...at, deltaY: turn < 30 ? -60 : 60 }));
        await new Promise(requestAnimationFrame);
        found.push(performance.now() - last);
        last = performance.now();
      }
      return found.sort((a, b) => a - b);
    });
    console.log(`      1,000 steps drawn after ${drawn} ms; zooming: p50 ${frames[30].toFixed(0)} ms, p95 ${frames[57].toFixed(0)} ms`);
    await page.locator(".step").first().click();
    await page.locator("#step").waitFor();
    await shot(page, "run-1000");
    assert.ok(frames[30] < 150, `${frames[30]} ms a frame`);
  },

  async a_map_of_ten_thousand_is_one_node({ open, server, shot }) {
    const source = "name: many\nsteps:\n  list: {payload: {}}\n  each: {needs: list, map: {over: steps.list.output.items}, tags: [nobody], payload: {at: '${{ index }}'}}\n  done: {needs: each, payload: {}}\n";
    const { id } = await run(server, source);
    const list = await server.claim();
    await server.report("complete", { lease: list.lease, result: { items: Array.from({ length: 10_000 }, (_, at) => at) } });
    const page = await open({ path: `runs/${id}` });
    await page.getByRole("button", { name: "Load all" }).click({ timeout: 60_000 });
    await page.locator(".step", { hasText: "each[…]" }).waitFor({ timeout: 60_000 });
    await page.locator(".step", { hasText: "0/10000 done" }).waitFor({ timeout: 60_000 });
    assert.ok((await page.locator(".step").count()) < 20);
    await shot(page, "run-10000");
  },

  /** One failed step among a thousand: the page opens on it. */
  async a_run_opens_on_its_failure({ open, server, shot }) {
    const lines = Array.from({ length: 1000 }, (_, at) => `  s${at}: {payload: {}, retry: {attempts: 1}, tags: [${at === 3 ? "bad" : "nobody"}]${at > 50 ? `, needs: s${at % 50}` : ""}}`);
    const { id } = await run(server, `name: wide\nsteps:\n${lines.join("\n")}\n`);
    const lease = await server.claim("w1", ["bad"]);
    await server.report("logs", { lease: lease.lease, data: "reading\n\u001b[31mno such file\u001b[0m\n" });
    await server.report("fail", { lease: lease.lease, message: "exit code 3", permanent: true });
    const page = await open({ path: `runs/${id}` });
    const failure = page.getByRole("region", { name: "What failed" });
    await failure.getByText("exit code 3").waitFor();
    await failure.locator("pre", { hasText: "reading\nno such file" }).waitFor();
    await failure.getByText("The run can be retried when it has ended.").waitFor();
    const inSight = (of) => of.evaluate((element) => {
      const box = element.getBoundingClientRect();
      const frame = element.closest(".graph, main").getBoundingClientRect();
      return box.width > 60 && box.left >= frame.left && box.right <= frame.right + 1 && box.top >= frame.top - 1 && box.top < frame.bottom;
    });
    const node = page.locator(".step.failed", { hasText: /^s3/ });
    await node.waitFor();
    await page.waitForFunction(() => document.querySelector(".step.chosen"));
    assert.ok(await inSight(node), "the graph shows it");
    await page.locator("#step", { hasText: "exit code 3" }).waitFor();
    // Seen as a whole it stands out, and one key shows it again.
    await page.getByRole("button", { name: "Fit View" }).click();
    await page.locator(".graph.far").waitFor();
    assert.notEqual(await node.evaluate((element) => getComputedStyle(element).boxShadow), "none");
    await page.getByRole("button", { name: "Show what failed" }).click();
    await page.locator(".graph:not(.far)").waitFor();
    assert.ok(await inSight(node));
    // The table: what failed comes first; search and state choose.
    const rows = page.locator(".steps tbody tr");
    assert.match(await rows.first().innerText(), /failed\s+s3/);
    await page.getByLabel("Search steps by name").fill("s77");
    await page.getByText("11 steps", { exact: true }).waitFor();
    await rows.getByRole("button", { name: "s777" }).click();
    await page.waitForURL(/[?]step=s777$/);
    await page.locator("#step", { hasText: "s777" }).waitFor();
    await page.locator(".react-flow__node .step.chosen", { hasText: "s777" }).waitFor();
    await page.locator("#main").evaluate((element) => (element.scrollTop = element.scrollHeight));
    assert.ok(await inSight(page.locator("#step")), "its panel stays in view");
    await page.getByLabel("Search steps by name").fill("");
    await page.getByLabel("State of steps").selectOption("failed");
    await page.getByText("1 step", { exact: true }).waitFor();
    await shot(page, "run-failed-1000");
    // A colleague opens the same step.
    const other = await open({ path: `runs/${id}?step=s42` });
    await other.locator("#step", { hasText: "s42" }).waitFor();
    const gone = await open({ path: `runs/${id}?step=none` });
    await gone.getByText('This run has no step "none".').waitFor();
    await server.post(`runs/${id}/cancel`);
    await other.getByRole("button", { name: "Retry from here" }).click();
    await other.getByText("Retry of").waitFor();
    assert.ok(!other.url().includes("step="), "another run begins with its own");
  },

  /** Steps are read from the last on, and what failed came first. */
  async a_failure_far_from_what_is_shown_is_found({ open, server }) {
    const source = "name: many\nsteps:\n  list: {payload: {}}\n  early: {payload: {}, retry: {attempts: 1}, tags: [bad]}\n  each: {needs: list, map: {over: steps.list.output.items}, tags: [nobody], payload: {}}\n";
    const { id } = await run(server, source);
    const list = await server.claim();
    await server.report("complete", { lease: list.lease, result: { items: Array.from({ length: 1500 }, (_, at) => at) } });
    const early = await server.claim("w2", ["bad"]);
    await server.report("fail", { lease: early.lease, message: "at once", permanent: true });
    const page = await open({ path: `runs/${id}` });
    await page.getByRole("region", { name: "What failed" }).getByText("at once").waitFor();
    await page.locator("#step", { hasText: "early" }).waitFor();
    await page.goto(`${server.url}/ui/runs/${id}?step=list`);
    await page.locator("#step", { hasText: "list" }).waitFor();
  },

  async steps_say_what_they_wait_for_and_how_long_they_ran({ open, server }) {
    const { id } = await run(server, "name: slow\nsteps:\n  work: {payload: {}}\n  nap: {needs: work, wait: {for: 1h}}\n");
    const lease = await server.claim();
    // A worker that claims and then completes, without a word between.
    await new Promise((done) => setTimeout(done, 1200));
    await server.report("complete", { lease: lease.lease });
    const page = await open({ path: `runs/${id}?step=nap` });
    await page.getByText("waits until its time has come").waitFor();
    assert.equal(await page.getByText("waits for approval").count(), 0);
    assert.equal(await page.getByRole("button", { name: "Approve" }).count(), 0);
    const bar = page.locator(".gantt li", { hasText: "work" });
    assert.match(await bar.innerText(), /[1-9]\.\d s/);
    await server.post(`runs/${id}/cancel`);
    await page.locator("h1 + .state.cancelled").waitFor();
    // Every bar lies within its line.
    const bars = await page.locator(".gantt .bar").evaluateAll((all) => all.map((one) => [one.getBoundingClientRect().right, one.firstChild.getBoundingClientRect().right, one.firstChild.getBoundingClientRect().width]));
    for (const [line, bar, width] of bars) assert.ok(bar <= line + 0.5 && width >= 3, `${bar} of ${line}, ${width} wide`);
  },
};
