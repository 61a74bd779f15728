// Figures, which mean something on a quiet machine only. Run by name:
//   scripts/dashboard PROGRAM memory_after_180000_events fifty_pages_beside_none
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const EVENTS = 180_000;
/** Seconds of each part of the comparison. */
const SECONDS = Number(process.env.FIGURE_SECONDS ?? 15);
const PAGES = 50;
const RATE = 500;

/** What a page holds after everything that can go is gone. */
async function heap(page) {
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  await session.detach();
  return usedSize / 1e6;
}

/** The processor time of a program so far, in milliseconds. */
function processorMs(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** Jobs go through, so many a second, until told to stop. */
class Load {
  done = 0;
  going = true;

  constructor(server, token) {
    this.server = server;
    this.token = token;
    this.work = Promise.all([this.submit(), ...Array.from({ length: 4 }, (_, at) => this.run(`w${at}`))]);
  }

  async submit() {
    const jobs = Array.from({ length: RATE / 10 }, (_, at) => ({ name: `job ${at}`, payload: { at } }));
    let next = Date.now();
    while (this.going) {
      await this.server.post("jobs/batch", { jobs });
      next += 100;
      await sleep(Math.max(0, next - Date.now()));
    }
  }

  async run(worker) {
    const post = (path, body) => this.server.post(path, body, this.token);
    while (this.going) {
      const { leases } = await post("leases/claim", { worker, max: 25, wait_ms: 1000, lease_ms: 60_000 });
      for (const { lease } of leases) {
        await post("leases/complete", { lease });
        this.done++;
      }
    }
  }

  stop() {
    this.going = false;
    return this.work;
  }
}

async function costs(server, load) {
  const [from, done, begun] = [processorMs(server.child.pid), load.done, Date.now()];
  await sleep(SECONDS * 1000);
  const seconds = (Date.now() - begun) / 1000;
  const jobs = load.done - done;
  return { aJob: (processorMs(server.child.pid) - from) / jobs, rate: jobs / seconds };
}

export const stories = {
  /** Whatever happens on the server, an open page holds no more. */
  async memory_after_180000_events({ open, server }) {
    const pages = {};
    for (const path of ["", "jobs", "events", "workers"]) pages[path || "overview"] = await open({ path });
    const jobs = Array.from({ length: 1000 }, (_, at) => ({ name: `job ${at}`, tags: ["nobody"] }));
    const found = {};
    for (let at = 0; at <= EVENTS / 2000; at++) {
      if (at === 10 || at === EVENTS / 2000) {
        await sleep(3000);
        for (const [name, page] of Object.entries(pages)) (found[name] ??= []).push(await heap(page));
      }
      if (at < EVENTS / 2000) await server.post("jobs/batch", { jobs });
    }
    for (const [name, [before, after]] of Object.entries(found)) {
      console.log(`      ${name}: ${before.toFixed(1)} MB after 20,000 events, ${after.toFixed(1)} MB after ${EVENTS.toLocaleString("en")}`);
    }
    for (const [name, [before, after]] of Object.entries(found)) assert.ok(after < before + 5, `${name} grew from ${before} to ${after} MB`);
  },

  /** The server's processor time for a job, with fifty pages open beside none, in turns. */
  async fifty_pages_beside_none({ browser, open, server }) {
    const token = await server.worker();
    await server.put("definitions/send", {});
    const load = new Load(server, token);
    await sleep(2000);
    const first = await open({ path: "" });
    const cookies = await first.context().storageState();
    await first.context().close();
    const { items } = await server.get("jobs?limit=1");
    const paths = ["", "jobs", "", "jobs?state=running", "workers", "", "jobs", "definitions/send", `jobs/${items[0].id}`, "runs"];
    const ratios = [];
    for (let turn = 0; turn < 3; turn++) {
      const none = await costs(server, load);
      const contexts = [];
      for (let at = 0; at < PAGES; at++) {
        const context = await browser.newContext({ storageState: cookies, viewport: { width: 1000, height: 700 } });
        const page = await context.newPage();
        await page.goto(`${server.url}/ui/${paths[at % paths.length]}`);
        contexts.push(context);
      }
      await sleep(3000);
      const fifty = await costs(server, load);
      for (const context of contexts) await context.close();
      await sleep(1000);
      const ratio = fifty.aJob / none.aJob;
      ratios.push(ratio);
      console.log(`      none: ${none.aJob.toFixed(2)} ms a job at ${none.rate.toFixed(0)} jobs/s; ${PAGES} pages: ${fifty.aJob.toFixed(2)} ms at ${fifty.rate.toFixed(0)} jobs/s; ${ratio.toFixed(2)} times`);
    }
    await load.stop();
    console.log(`      median ${ratios.sort((a, b) => a - b)[1].toFixed(2)}`);
  },
};
for (const story of Object.values(stories)) Object.assign(story, { alone: true, figure: true });
