// Lists of jobs: nothing moves away from under the keyboard or the pointer, and nothing is done to many without being asked.
import assert from "node:assert/strict";

const names = (page) => page.locator(".scroll .tr a").allTextContents();
const submit = async (server, ...all) => {
  for (const name of all) await server.post("jobs", { name, tags: ["nobody"] });
};

export const stories = {
  async keys_act_on_the_job_that_is_highlighted({ open, server }) {
    await submit(server, "one", "two", "three");
    const page = await open({ path: "jobs" });
    await page.locator(".scroll .tr", { hasText: "one" }).waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    await page.locator(".tr.current", { hasText: "two" }).waitFor();
    await submit(server, "four", "five");
    await page.getByRole("button", { name: "2 new" }).click();
    await page.locator(".scroll .tr", { hasText: "five" }).waitFor();
    await page.locator(".tr.current", { hasText: "two" }).waitFor();
    await page.keyboard.press("x");
    assert.ok(await page.getByLabel("Choose two").isChecked());
    assert.equal(await page.locator(".scroll .tr input:checked").count(), 1);
    await page.keyboard.press("j");
    await page.locator(".tr.current", { hasText: "one" }).waitFor();
  },

  async rows_stay_while_the_pointer_is_on_them({ open, server }) {
    await submit(server, "one", "two");
    const page = await open({ path: "jobs" });
    const row = page.locator(".scroll .tr", { hasText: "one" });
    await row.waitFor();
    const before = await row.boundingBox();
    await page.mouse.move(before.x + 200, before.y + 10);
    await page.mouse.move(before.x + 205, before.y + 12);
    await submit(server, "three");
    await page.getByRole("button", { name: "1 new" }).waitFor();
    assert.equal((await row.boundingBox()).y, before.y);
    assert.deepEqual(await names(page), ["two", "one"]);
    await page.mouse.move(before.x + 200, 20);
    await page.locator(".scroll .tr", { hasText: "three" }).waitFor();
    assert.deepEqual((await names(page)).toSorted(), ["one", "three", "two"]);
    assert.equal(await page.locator(".new-rows").count(), 0);
  },

  async many_are_cancelled_and_retried_only_when_confirmed({ open, server }) {
    await submit(server, "one", "two", "three");
    const page = await open({ path: "jobs" });
    await page.getByLabel("Choose one").check();
    await page.getByLabel("Choose two").check();
    await page.getByRole("button", { name: "Cancel 2" }).click();
    await page.getByText("Cancel 2 jobs?").waitFor();
    await page.getByRole("button", { name: "No", exact: true }).click();
    const states = async () => (await server.get("jobs")).items.map((job) => job.state);
    assert.deepEqual(await states(), ["pending", "pending", "pending"]);
    await page.getByRole("button", { name: "Cancel 2" }).click();
    await page.getByRole("button", { name: "Yes" }).click();
    await page.getByText("2 of 2: cancel done.").waitFor();
    await page.getByLabel("Choose one").check();
    await page.getByRole("button", { name: "Retry 1" }).click();
    await page.getByText("Run 1 job again?").waitFor();
    assert.equal((await states()).length, 3);
    await page.getByRole("button", { name: "Yes" }).click();
    await page.getByText("1 of 1: retry done.").waitFor();
    assert.equal((await states()).length, 4);
  },

  async a_step_is_retried_with_its_run({ open, server }) {
    const { id } = await server.post("runs", { source: "name: trip\nsteps:\n  hotel: {payload: {}, retry: {attempts: 1}}\n  car: {needs: hotel, payload: {}}\n" });
    const lease = await server.claim();
    await server.report("fail", { lease: lease.lease, message: "no rooms", permanent: true });
    await assert.rejects(server.post(`jobs/${lease.job}/retry`), /it is the step \\"hotel\\" of the run/);
    const page = await open({ path: "jobs" });
    await page.getByLabel("Choose hotel").check();
    assert.ok(await page.getByRole("button", { name: "Retry 0" }).isDisabled());
    await page.getByRole("button", { name: "Retry 1 run" }).click();
    await page.getByText("1 chosen job is a step").waitFor();
    await page.getByRole("button", { name: "Yes" }).click();
    await page.getByText("1 of 1: retry done.").waitFor();
    const runs = (await server.get("runs")).items;
    assert.deepEqual(runs.map((run) => run.retry_of ?? null), [id, null]);
    await page.goto(`${server.url}/ui/jobs/${lease.job}`);
    await page.getByRole("button", { name: "Retry its run" }).click();
    await page.getByText("The job is the step hotel of a run.").waitFor();
    await page.getByRole("button", { name: "Yes" }).click();
    await page.getByText("Retry of").waitFor();
    assert.equal((await server.get("runs")).items.length, 3);
  },

  async jobs_are_found_by_what_the_list_shows({ open, server }) {
    await submit(server, "feed", "cafe", "other");
    const page = await open({ path: "jobs?q=feed" });
    await page.locator(".scroll .tr", { hasText: "feed" }).waitFor();
    assert.deepEqual(await names(page), ["feed"]);
    await page.getByLabel("Search jobs").fill("");
    await page.locator(".scroll .tr", { hasText: "other" }).waitFor();
    const row = page.locator(".scroll .tr", { hasText: "other" });
    const shown = (await row.locator(".mono").textContent()).trim();
    await page.getByLabel("Search jobs").fill(shown);
    await page.getByText("Jobs whose id is or begins with").waitFor();
    await page.locator(".scroll .tr", { hasText: "cafe" }).waitFor({ state: "detached" });
    assert.deepEqual(await names(page), ["other"]);
    const { items } = await server.get("jobs?name=cafe");
    await page.getByLabel("Search jobs").fill(items[0].id);
    await page.locator(".scroll .tr", { hasText: "cafe" }).waitFor();
    assert.deepEqual(await names(page), ["cafe"]);
  },

  async an_empty_list_says_why({ open, server }) {
    await server.post("runs", { source: "name: trip\nsteps:\n  hotel: {payload: {}, tags: [nobody]}\n" });
    const page = await open({ path: "runs?state=failed" });
    await page.getByText("No run fits this filter.").waitFor();
    await page.goto(`${server.url}/ui/schedules`);
    await page.getByText("windlass schedules set").waitFor();
    await page.goto(`${server.url}/ui/jobs?state=failed`);
    await page.getByText("No job fits this filter.").waitFor();
    assert.equal(await page.getByText("windlass submit").count(), 0);
  },

  async events_stay_while_they_are_paused({ open, server }) {
    const page = await open({ path: "events" });
    await page.locator(".live.live").waitFor();
    await page.getByText("Nothing has happened").waitFor();
    const rows = page.locator("tbody tr");
    // The stream begins a moment after the page is there.
    for (let at = 0; (await rows.count()) === 0; at++) {
      await submit(server, `one ${at}`);
      await page.waitForTimeout(500);
    }
    await page.getByRole("button", { name: "Pause" }).click();
    const before = await rows.count();
    await submit(server, "two");
    await page.getByText(/, [12] of them since it was paused/).waitFor();
    assert.equal(await rows.count(), before);
    await page.getByRole("button", { name: "Go on" }).click();
    await page.waitForFunction((count) => document.querySelectorAll("tbody tr").length > count, before);
  },
};
