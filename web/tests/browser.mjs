// The dashboard in a real browser, against the real program. Started by scripts/test:
//   node tests/browser.mjs PATH-TO-WINDLASS [NAME…]
// Stories that print figures of a quiet machine run only by their name.
// With SHOTS=1 screenshots of every page are left in tests/shots; of a page whose story failed there always is one. With DASHBOARD=out
// the pages are those that Vite built last, not those in the program.
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { proxy } from "./proxy.mjs";
import { stories as first } from "./stories.mjs";
import { stories as facts } from "./stories/facts.mjs";
import { stories as figures } from "./stories/figures.mjs";
import { stories as forms } from "./stories/forms.mjs";
import { stories as lists } from "./stories/lists.mjs";
import { stories as logs } from "./stories/logs.mjs";
import { stories as odd } from "./stories/odd.mjs";
import { stories as places } from "./stories/places.mjs";
import { stories as runs } from "./stories/runs.mjs";
import { stories as scroll } from "./stories/scroll.mjs";

const stories = { ...first, ...facts, ...forms, ...lists, ...logs, ...places, ...runs, ...odd, ...scroll, ...figures };

const [program, ...only] = process.argv.slice(2);
const shots = new URL("shots/", import.meta.url).pathname;
mkdirSync(shots, { recursive: true });

/** Where the pages are: at the server, or at a proxy that has newer ones. */
async function front(url, of) {
  if (!process.env.DASHBOARD) return url;
  of.proxy ??= await proxy({ target: url, out: new URL("../out/", import.meta.url) });
  return `http://127.0.0.1:${of.proxy.address().port}`;
}

/** Servers that were started and have not ended. */
const running = new Set();
process.once("SIGTERM", () => {
  for (const child of running) child.kill("SIGKILL");
  process.exit(143);
});

/** A server on a port of its own, or on the one it had before. */
export class Server {
  folder = mkdtempSync(join(tmpdir(), "windlass-browser-"));
  port = 0;

  async start(...args) {
    const listen = `127.0.0.1:${this.port}`;
    const data = join(this.folder, "data");
    // What is tested here is not the disk, which other tests keep busy.
    const fixed = ["--log", "error", "--listen", listen, "--data", data, "--unsafe-no-fsync"];
    this.child = spawn(program, ["serve", ...fixed, ...args], { stdio: ["ignore", "pipe", "inherit"] });
    const { child } = this;
    running.add(child);
    child.once("exit", () => running.delete(child));
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
    /** Past any proxy. */
    this.direct = this.url;
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
  async claim(worker = "w1", tags = [], wait_ms = 5000) {
    const token = await this.worker();
    await this.post("workers/register", { worker, tags, slots: 1 }, token);
    const { leases } = await this.post("leases/claim", { worker, tags, max: 1, wait_ms, lease_ms: 60000 }, token);
    return leases[0];
  }
  /** Claims and completes jobs until there are none. */
  async work(worker = "w1", result = undefined) {
    for (let lease = await this.claim(worker); lease; lease = await this.claim(worker, [], 500)) {
      await this.report("complete", { lease: lease.lease, result });
    }
  }
  report = async (what, body) => this.post(`leases/${what}`, body, await this.worker());
}

/** One browser window, signed in. Whatever goes wrong in the page fails the story. */
export async function open(browser, server, { token = server.token, url = server.url, path = "", clock = 0, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: "reduce", ...options });
  const page = await context.newPage();
  page.faults = [];
  // A machine whose clock is ahead by so much.
  if (clock) {
    await context.addInitScript((ahead) => {
      const Real = Date;
      globalThis.Date = class extends Real {
        constructor(...args) {
          super(...(args.length ? args : [Real.now() + ahead]));
        }
        static now = () => Real.now() + ahead;
      };
    }, clock);
  }
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

const screenshot = (page, name) => page.screenshot({ path: join(shots, `${name}.png`) });
/** Only if somebody wants to look at them: a picture takes about as long as the page took to draw. */
export const shot = async (page, name) => {
  if (process.env.SHOTS) await screenshot(page, name);
};

const browser = await chromium.launch({
  // Chromium without windows draws the same pages with two thirds of the processor time.
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium-headless-shell",
  // There is no graphics processor here, and drawing as if there were one takes longer than drawing.
  args: ["--no-sandbox", "--enable-precise-memory-info", "--disable-gpu"],
});
const failed = [];
/** Some do not mind each other; those that measure something run alone, after them. */
const AT_ONCE = Number(process.env.STORIES_AT_ONCE ?? 3);

async function tell(name, story) {
  const server = await new Server().start(...(story.options ?? []));
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
    failed.push(name);
    console.log(`FAIL  ${name}: ${error.stack ?? error}`);
    for (const [at, page] of pages.entries()) await screenshot(page, `failed-${name}-${at}`).catch(() => {});
  }
  for (const page of pages) await page.context().close();
  await server.stop();
  for (const { proxy } of [server, server.other ?? {}]) {
    proxy?.closeAllConnections();
    proxy?.close();
  }
  rmSync(server.folder, { recursive: true, force: true });
}

const wanted = Object.entries(stories).filter(([name, story]) => (only.length ? only.includes(name) : !story.figure));
for (const name of only) if (!stories[name]) throw new Error(`there is no story called ${name}`);
// The longest first, so that no one is left over at the end.
const LONG = ["every_page_with_a_demo", "a_thousand_steps_stay_usable", "a_map_of_ten_thousand_is_one_node"];
const left = wanted.filter(([, story]) => !story.alone).sort(([a], [b]) => Number(LONG.includes(b)) - Number(LONG.includes(a)));
const work = async () => {
  for (let next = left.shift(); next; next = left.shift()) await tell(...next);
};
await Promise.all(Array.from({ length: AT_ONCE }, work));
for (const [name, story] of wanted.filter(([, story]) => story.alone)) await tell(name, story);
// On a busy machine a story may miss a limit because of those beside it. It is told once more, alone; what is wrong fails again.
const again = failed.splice(0);
for (const name of again) await tell(name, stories[name]);
await browser.close();
process.exit(failed.length ? 1 : 0);
