// Where one is: addresses that colleagues can open, titles of tabs, Back, and a server that goes away.
import assert from "node:assert/strict";
import { proxy } from "../proxy.mjs";

/** A proxy that can go away and come back at the same port. */
async function between(server) {
  const out = process.env.DASHBOARD && new URL("../../out/", import.meta.url);
  let now = await proxy({ target: server.direct, out });
  const { port } = now.address();
  const stop = () => {
    now.closeAllConnections();
    now.close();
  };
  return { url: `http://127.0.0.1:${port}`, stop, start: async () => (now = await proxy({ target: server.direct, out, port })) };
}

export const stories = {
  async an_address_names_its_namespace({ open, server }) {
    const { id } = await server.post("jobs?namespace=team-b", { name: "theirs" });
    const page = await open({ path: `n/team-b/jobs/${id}` });
    await page.getByRole("heading", { name: "theirs" }).waitFor();
    assert.equal(await page.locator("header select").first().inputValue(), "team-b");
    await page.getByRole("link", { name: "Workers", exact: true }).click();
    await page.waitForURL(`${server.url}/ui/n/team-b/workers`);
    await page.locator("header select").first().selectOption("default");
    await page.waitForURL(`${server.url}/ui/n/default/workers`);
    await page.goBack();
    await page.waitForURL(`${server.url}/ui/n/team-b/workers`);
    assert.equal(await page.locator("header select").first().inputValue(), "team-b");
    await page.goBack();
    await page.getByRole("heading", { name: "theirs" }).waitFor();
    // An old address is that of the namespace that was looked at last.
    await page.goto(`${server.url}/ui/jobs/${id}?x=1`);
    await page.getByRole("heading", { name: "theirs" }).waitFor();
    assert.ok(page.url().startsWith(`${server.url}/ui/n/team-b/jobs/${id}`), page.url());
    const { token } = await server.post("tokens", { principal: "mallory", role: "viewer", namespaces: ["team"] });
    const other = await open({ token, path: `n/team-b/jobs/${id}` });
    await other.getByText("This page is in the namespace team-b, which your session may not see. It may see: team.").waitFor();
  },

  async a_tab_says_what_it_shows({ open, server }) {
    const { id } = await server.post("jobs", { name: "render" });
    const page = await open({ path: `jobs/${id}` });
    await page.waitForFunction(() => document.title === "render (pending) · default · Windlass");
    await server.post(`jobs/${id}/cancel`);
    await page.waitForFunction(() => document.title === "render (cancelled) · default · Windlass");
    await page.getByRole("link", { name: "Jobs", exact: true }).click();
    await page.waitForFunction(() => document.title === "Jobs · default · Windlass");
    await page.getByRole("button", { name: "failed" }).click();
    await page.waitForFunction(() => document.title === "Jobs (failed) · default · Windlass");
    for (const [path, title] of [["", "Overview"], ["runs", "Runs"], ["workers", "Workers"], ["settings", "Settings"], ["events", "Events"]]) {
      await page.goto(`${server.url}/ui/${path}`);
      await page.waitForFunction((title) => document.title === `${title} · default · Windlass`, title);
    }
    const icon = await page.locator("link[rel=icon]").getAttribute("href");
    const answer = await fetch(new URL(icon, `${server.url}/ui/`));
    assert.equal(answer.status, 200);
    assert.match(answer.headers.get("content-type"), /svg/);
  },

  async back_shows_a_page_as_it_was_left({ open, server }) {
    await server.post("jobs/batch", { jobs: Array.from({ length: 300 }, (_, at) => ({ name: `job ${at}`, tags: ["nobody"] })) });
    const page = await open({ path: "jobs" });
    await page.locator(".scroll .tr a").first().waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("x");
    const chosen = await page.locator(".tr.current").getAttribute("data-id");
    await page.locator(".scroll").evaluate((element) => (element.scrollTop = 4000));
    // One that is in sight, so that clicking it does not scroll.
    await page.waitForFunction(() => [...document.querySelectorAll(".scroll .tr a")].some((link) => Math.abs(link.getBoundingClientRect().y - 450) < 21));
    const name = await page.evaluate(() => {
      const link = [...document.querySelectorAll(".scroll .tr a")].find((link) => Math.abs(link.getBoundingClientRect().y - 450) < 21);
      link.click();
      return link.textContent;
    });
    await page.getByRole("heading", { name, exact: true }).waitFor();
    await server.post("jobs", { name: "meanwhile" });
    await page.goBack();
    await page.locator(".scroll .tr a", { hasText: new RegExp(`^${name}$`) }).waitFor();
    assert.equal(await page.locator(".scroll").evaluate((element) => element.scrollTop), 4000);
    await page.getByText("1 chosen").waitFor();
    await page.locator(".scroll").evaluate((element) => (element.scrollTop = 0));
    await page.locator(`.tr.current[data-id="${chosen}"]`).waitFor();
    // Another visit begins anew.
    await page.getByRole("link", { name: "Workers", exact: true }).click();
    await page.getByRole("link", { name: "Jobs", exact: true }).click();
    await page.locator(".scroll .tr a", { hasText: "meanwhile" }).waitFor();
    assert.equal(await page.locator(".tr.current").count(), 0);
    assert.equal(await page.getByText("1 chosen").count(), 0);
    // Pages that are not lists are scrolled as a whole.
    for (let at = 0; at < 40; at++) await server.put(`definitions/d${at}`, { payload_schema: { type: "object" } });
    await page.getByRole("link", { name: "Definitions", exact: true }).click();
    await page.getByRole("link", { name: "d9", exact: true }).waitFor();
    await page.locator("#main").evaluate((element) => (element.scrollTop = 600));
    await page.getByRole("link", { name: "d30", exact: true }).click();
    await page.getByRole("heading", { name: "d30" }).waitFor();
    assert.equal(await page.locator("#main").evaluate((element) => element.scrollTop), 0);
    await page.goBack();
    await page.waitForFunction(() => document.getElementById("main").scrollTop === 600);
  },

  /** Once the browser had time, every page opens although the server is away; each says so and comes back by itself. */
  async every_page_opens_while_the_server_is_away({ open, server }) {
    const way = await between(server);
    const page = await open({ url: way.url, path: "" });
    await page.locator(".live.live").waitFor();
    const parts = ["runs", "run", "job", "workers", "definitions", "definition", "items", "schedules", "events", "tokens", "server", "audit", "chart", "graph", "features"];
    const isLoaded = (parts) => {
      const names = performance.getEntriesByType("resource").map((one) => one.name);
      return parts.every((part) => names.some((name) => name.includes(`/assets/${part}-`)));
    };
    await page.waitForFunction(isLoaded, parts, { timeout: 60_000 });
    way.stop();
    await page.locator(".live.down").waitFor();
    for (const name of ["Runs", "Workers", "Definitions", "Schedules", "Items", "Events", "Tokens", "Audit", "Settings", "Dialects"]) {
      await page.getByRole("link", { name, exact: true }).click();
      await page.getByRole("heading", { name, exact: true }).waitFor();
    }
    await page.getByText("This page tries again by itself.").first().waitFor();
    await way.start();
    await page.locator(".live.live").waitFor();
    await page.getByRole("link", { name: "Settings", exact: true }).click();
    await page.locator("td", { hasText: "listen" }).first().waitFor();
    assert.equal(await page.getByText("This page tries again by itself.").count(), 0);
    way.stop();
  },

  /** One whose code never came: the page stays, and opens when the server is back. */
  async a_page_whose_code_was_not_loaded_opens_when_the_server_is_back({ open, server }) {
    const way = await between(server);
    const page = await open({ url: way.url, path: "jobs", token: null });
    await page.route(/assets\/(schedules|pages)-.*\.js/, (route) => route.abort());
    await page.getByLabel("Token").fill(server.token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.locator(".live.live").waitFor();
    way.stop();
    await page.locator(".live.down").waitFor();
    await page.getByRole("link", { name: "Schedules", exact: true }).click();
    await page.getByText("This page could not be loaded, because the server cannot be reached.").waitFor();
    await page.getByRole("navigation", { name: "Pages" }).waitFor();
    await page.unroute(/assets\/(schedules|pages)-.*\.js/);
    await way.start();
    await page.getByRole("heading", { name: "Schedules" }).waitFor({ timeout: 30_000 });
    assert.ok(page.url().endsWith("/ui/n/default/schedules"), page.url());
    way.stop();
  },
};
