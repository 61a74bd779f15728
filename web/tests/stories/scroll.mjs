// A list of many thousand jobs stays smooth: of a hundred thousand in `scripts/test --long`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

const JOBS = Number(process.env.WINDLASS_SCROLL_JOBS ?? 20_000);
const ROUNDS = 4;
const FRAMES = 100;
/** Of a hundred frames on a quiet machine, 95 take no longer. */
const FRAME_MS = 20;
/** So many more may be late than of a blank page: a machine's own hiccups hit a page that works more often than one that does not. */
const LATE = 0.1;
/** Where less of the processors is idle beside a blank page, others are at work, and times on the clock say nothing. */
const QUIET = 0.6;
/** What the page itself may work in a frame, on average, by the processor's own clock, which others on this machine do not touch. */
const WORK_MS = 12;

/** Scrolls further with each frame, if there is anything to scroll, and says how long each took. */
const frames = (page) =>
  page.evaluate(async (count) => {
    const scroll = document.querySelector(".scroll");
    const found = [];
    if (scroll) scroll.scrollTop = 0;
    for (let at = 0; at < 5; at++) await new Promise(requestAnimationFrame);
    let last = performance.now();
    for (let at = 0; at < count; at++) {
      if (scroll) scroll.scrollTop += 700;
      await new Promise(requestAnimationFrame);
      const now = performance.now();
      found.push(now - last);
      last = now;
    }
    return found;
  }, FRAMES);

/** Milliseconds that the page's thread has worked, by kind of work. */
async function meter(page) {
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  return async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    return Object.fromEntries(metrics.map((one) => [one.name, one.value * 1000]));
  };
}

/** The share of all processors' time that was idle since the last call. */
function idleMeter() {
  const read = () => readFileSync("/proc/stat", "utf8").split("\n")[0].split(/\s+/).slice(1, 9).map(Number);
  let last = read();
  return () => {
    const next = read();
    const spent = next.map((ticks, at) => ticks - last[at]);
    last = next;
    return { idle: spent[3] + spent[4], all: spent.reduce((sum, ticks) => sum + ticks, 0) };
  };
}

function summary(found) {
  const sorted = found.toSorted((a, b) => a - b);
  const late = found.filter((ms) => ms > FRAME_MS).length / found.length;
  const at = (part) => sorted[Math.floor(part * found.length)].toFixed(1);
  return { late, text: `p50 ${at(0.5)} ms, p95 ${at(0.95)} ms, ${(late * 100).toFixed(1)} % over ${FRAME_MS} ms` };
}

async function readAll(page) {
  return page.evaluate(async (jobs) => {
    const scroll = document.querySelector(".scroll");
    const until = performance.now() + 180_000;
    const count = () => Number(document.querySelector("[role=table]").getAttribute("aria-rowcount"));
    while (count() < jobs && performance.now() < until) {
      scroll.scrollTop = scroll.scrollHeight;
      await new Promise(requestAnimationFrame);
    }
    return count();
  }, JOBS);
}

export const stories = {
  async many_thousand_jobs_scroll({ open, browser, server, shot }) {
    const jobs = Array.from({ length: 1000 }, (_, at) => ({ name: `job ${at}`, tags: ["nobody"] }));
    for (let at = 0; at < JOBS / 1000; at++) await server.post("jobs/batch", { jobs });
    const begun = Date.now();
    const page = await open({ path: "jobs" });
    await page.locator(".scroll .tr a").first().waitFor();
    const listed = Date.now() - begun;
    assert.equal(await readAll(page), JOBS);
    const blank = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage();
    const spent = await meter(page);
    const work = {};
    const found = { list: [], blank: [] };
    const idle = idleMeter();
    const rest = { idle: 0, all: 0 };
    // In turns, so that what slows the machine down slows both.
    for (let round = 0; round < ROUNDS; round++) {
      await blank.bringToFront();
      idle();
      found.blank.push(...(await frames(blank)));
      const beside = idle();
      rest.idle += beside.idle;
      rest.all += beside.all;
      await page.bringToFront();
      const before = await spent();
      found.list.push(...(await frames(page)));
      const after = await spent();
      for (const kind of ["Task", "Script", "Layout", "RecalcStyle"]) {
        work[kind] = (work[kind] ?? 0) + (after[`${kind}Duration`] - before[`${kind}Duration`]) / (ROUNDS * (FRAMES + 5));
      }
    }
    const [list, none] = [summary(found.list), summary(found.blank)];
    const heap = (await page.evaluate(() => performance.memory?.usedJSHeapSize)) / 1e6;
    const parts = Object.entries(work).map(([kind, ms]) => `${kind.toLowerCase()} ${ms.toFixed(1)}`);
    console.log(`      list after ${listed} ms; heap ${heap.toFixed(0)} MB; a frame costs the page, in ms of processor time: ${parts.join(", ")}`);
    console.log(`      frames of the list: ${list.text}; of a blank page: ${none.text}`);
    await shot(page, "jobs-many");
    await blank.context().close();
    assert.ok(work.Task < WORK_MS, `a frame costs ${work.Task} ms`);
    const quiet = rest.idle / rest.all;
    if (quiet < QUIET) console.log(`      others use this machine (${(quiet * 100).toFixed(0)} % idle beside a blank page): only the processor time counts`);
    else assert.ok(list.late <= none.late + LATE, `${list.late} of the frames are late, of a blank page ${none.late}`);
  },
};
stories.many_thousand_jobs_scroll.alone = true;
