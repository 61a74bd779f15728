// Figures, which mean something on a quiet machine only. Run by name:
//   scripts/dashboard PROGRAM memory_after_180000_events fifty_pages_beside_none
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { record, Replay } from "../replay.mjs";

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const EVENTS = 180_000;
/** Seconds of each part of the comparison. */
const SECONDS = Number(process.env.FIGURE_SECONDS ?? 15);
const PAGES = 50;
const ROUNDS = Number(process.env.FIGURE_ROUNDS ?? 5);
/** Seconds for which a page is watched before its requests are repeated. */
const WATCHED = Number(process.env.FIGURE_WATCHED ?? 60);
/** Real pages at a time, so that the machine keeps up with them and they ask as often as they would. */
const WATCHED_AT_ONCE = 3;
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

  /**
   * The server's processor time for a job, with fifty pages open beside none, in turns. Fifty real ones would need more of this
   * machine than the server: what a few real ones ask, and when, is written down and repeated for fifty.
   */
  async fifty_pages_beside_none({ open, server }) {
    server.url = server.direct;
    const token = await server.worker();
    await server.put("definitions/send", {});
    const source = "name: album\nsteps:\n  ask: {wait: {approval: true}}\n  publish: {needs: ask, payload: {}}\n";
    const run = await server.post("runs", { source });
    const { id } = await server.post("jobs", { name: "nobody takes it", tags: ["nobody"] });
    const load = new Load(server, token);
    await sleep(2000);
    const paths = ["", "jobs", `jobs/${id}`, `runs/${run.id}`, "runs", "workers", "definitions/send", "jobs?state=running"];
    const sessions = [];
    const left = [...paths];
    const watch = async () => {
      for (let path = left.shift(); path !== undefined; path = left.shift()) {
        const session = await record({ open, server, path, seconds: WATCHED });
        console.log(`      ${path || "overview"}: ${session.asked.length} requests and ${session.streams.length} streams in ${WATCHED} s: ${session.summary}`);
        sessions.push(session);
      }
    };
    await Promise.all(Array.from({ length: WATCHED_AT_ONCE }, watch));
    const ratios = [];
    const sums = { none: 0, fifty: 0 };
    for (let round = 0; round < ROUNDS; round++) {
      const none = await costs(server, load);
      const replay = new Replay(server.direct, sessions, PAGES);
      await sleep(3000);
      const asked = replay.answered;
      const fifty = await costs(server, load);
      const rate = (replay.answered - asked) / SECONDS;
      await replay.stop();
      await sleep(1000);
      assert.equal(replay.refused, 0, "every request is answered");
      ratios.push(fifty.aJob / none.aJob);
      sums.none += none.aJob;
      sums.fifty += fifty.aJob;
      console.log(`      none: ${none.aJob.toFixed(2)} ms a job at ${none.rate.toFixed(0)} jobs/s; ${PAGES} pages: ${fifty.aJob.toFixed(2)} ms at ${fifty.rate.toFixed(0)} jobs/s, ${rate.toFixed(0)} requests/s; ${ratios.at(-1).toFixed(2)} times`);
    }
    await load.stop();
    const median = ratios.toSorted((a, b) => a - b)[Math.floor(ROUNDS / 2)];
    console.log(`      median ${median.toFixed(2)}, all rounds together ${(sums.fifty / sums.none).toFixed(2)}`);
    assert.ok(median <= 1.2, `${median} times`);
  },
};
for (const story of Object.values(stories)) Object.assign(story, { alone: true, figure: true });
