// The dashboard in a real browser, against the real program. Started by scripts/test:
//   node tests/browser.mjs PATH-TO-WINDLASS [NAME…]
// Screenshots of every page are left in tests/shots. With DASHBOARD=out the pages are those that Vite built last, not those in the
// program.
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { proxy } from "./proxy.mjs";
import { stories } from "./stories.mjs";

const [program, ...only] = process.argv.slice(2);
const shots = new URL("shots/", import.meta.url).pathname;
mkdirSync(shots, { recursive: true });

/** Where the pages are: at the server, or at a proxy that has newer ones. */
async function front(url, of) {
  if (!process.env.DASHBOARD) return url;
  of.proxy ??= await proxy({ target: url, out: new URL("../out/", import.meta.url) });
  return `http://127.0.0.1:${of.proxy.address().port}`;
}

/** A server on a port of its own, or on the one it had before. */
export class Server {
  folder = mkdtempSync(join(tmpdir(), "windlass-browser-"));
  port = 0;

  async start(...args) {
    const listen = `127.0.0.1:${this.port}`;
    const data = join(this.folder, "data");
    this.child = spawn(program, ["serve", "--log", "warn", "--listen", listen, "--data", data, ...args], { stdio: ["ignore", "pipe", "inherit"] });
    const url = await new Promise((ready, failed) => {
      let text = "";
      this.child.stdout.on("data", (data) => {
        text += data;
        const found = /is ready on (\S+)/.exec(text);
        if (found) ready(found[1]);
      });
      this.child.on("exit", () => failed(new Error(`the server ended: ${text}`)));
    });
    this.url = url.replace(/\/$/, "");
    this.url = await front(this.url, this);
    this.port = Number(new URL(url).port);
    this.token = readFileSync(join(data, "admin.token"), "utf8").trim();
    return this;
  }

  stop() {
    return new Promise((done) => {
      this.child.once("exit", done);
      this.child.kill("SIGTERM");
    });
  }

  async call(method, path, body, token = this.token) {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const answer = await fetch(`${this.url}/api/v1/${path}`, { method, headers, body: body && JSON.stringify(body) });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return text ? JSON.parse(text) : undefined;
  }
  get = (path) => this.call("GET", path);
  post = (path, body = {}, token = undefined) => this.call("POST", path, body, token);
  put = (path, body) => this.call("PUT", path, body);

  async worker() {
    this.workerToken ??= (await this.post("tokens", { principal: "browser-worker", role: "worker" })).token;
    return this.workerToken;
  }

  /** Claims one job as a worker. */
  async claim(worker = "w1", tags = []) {
    const token = await this.worker();
    await this.post("workers/register", { worker, tags, slots: 1 }, token);
    const { leases } = await this.post("leases/claim", { worker, tags, max: 1, wait_ms: 5000, lease_ms: 60000 }, token);
    return leases[0];
  }
  report = async (what, body) => this.post(`leases/${what}`, body, await this.worker());
}

/** One browser window, signed in. Whatever goes wrong in the page fails the story. */
export async function open(browser, server, { token = server.token, url = server.url, path = "", ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: "reduce", ...options });
  const page = await context.newPage();
  page.faults = [];
  page.on("pageerror", (error) => page.faults.push(error.message));
  page.on("console", (message) => {
    const text = message.text();
    if (message.type() === "error" && !/Failed to load resource|ERR_/.test(text)) page.faults.push(text);
  });
  page.on("dialog", (dialog) => {
    page.faults.push(`a dialog was opened: ${dialog.message()}`);
    void dialog.dismiss();
  });
  await page.goto(`${url}/ui/${path}`);
  if (token) {
    await page.getByLabel("Token").fill(token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("navigation", { name: "Pages" }).waitFor({ state: "attached" });
  }
  return page;
}

export const shot = (page, name) => page.screenshot({ path: join(shots, `${name}.png`) });

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--enable-precise-memory-info"],
});
let failed = 0;
for (const [name, story] of Object.entries(stories)) {
  if (only.length && !only.includes(name)) continue;
  const server = await new Server().start();
  const begun = Date.now();
  const pages = [];
  const kit = {
    browser,
    server,
    program,
    open: async (options) => {
      const page = await open(browser, options?.server ?? server, options);
      pages.push(page);
      return page;
    },
    shot,
    front: (url) => front(url, (server.other ??= {})),
    folder: server.folder,
  };
  try {
    await story(kit);
    const faults = pages.flatMap((page) => page.faults);
    if (faults.length) throw new Error(`the page complained:\n  ${faults.join("\n  ")}`);
    console.log(`ok    ${name} (${Date.now() - begun} ms)`);
  } catch (error) {
    failed++;
    console.log(`FAIL  ${name}: ${error.stack ?? error}`);
    for (const [at, page] of pages.entries()) await shot(page, `failed-${name}-${at}`).catch(() => {});
  }
  for (const page of pages) await page.context().close();
  await server.stop();
  for (const { proxy } of [server, server.other ?? {}]) {
    proxy?.closeAllConnections();
    proxy?.close();
  }
  rmSync(server.folder, { recursive: true, force: true });
}
await browser.close();
process.exit(failed ? 1 : 0);
