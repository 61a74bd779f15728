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
};
