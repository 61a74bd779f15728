// A list of many thousand jobs stays smooth: of a hundred thousand in `scripts/test --long`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

const JOBS = Number(process.env.WINDLASS_SCROLL_JOBS ?? 20_000);
/** Of the list that it is compared with. */
const FEW = 1000;
const ROUNDS = 2;
const FRAMES = 100;
/** Of a hundred frames on a quiet machine, 95 take no longer. */
const FRAME_MS = 20;
/** So many more may be late than of a blank page: a machine's own hiccups hit a page that works more often than one that does not. */
const LATE = 0.1;
/** Where less of the processors is idle beside a blank page, others are at work, and times on the clock say nothing. */
const QUIET = 0.6;
/** So much more may the page itself work in a frame than where there are a thousand jobs, by the processor's own clock. */
const WORK_RATIO = 1.4;

/** Scrolls further with each frame, if there is anything to scroll, from the end to the beginning, and says how long each took. */
const frames = (page) =>
  page.evaluate(async (count) => {
    const scroll = document.querySelector(".scroll");
    const found = [];
    if (scroll) scroll.scrollTop = 0;
    for (let at = 0; at < 5; at++) await new Promise(requestAnimationFrame);
    let last = performance.now();
    for (let at = 0; at < count; at++) {
      if (scroll) scroll.scrollTop = (scroll.scrollTop + 700) % (scroll.scrollHeight - scroll.clientHeight);
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

async function readAll(page, jobs) {
  return page.evaluate(async (jobs) => {
    const scroll = document.querySelector(".scroll");
    const until = performance.now() + 180_000;
    const count = () => Number(document.querySelector("[role=table]").getAttribute("aria-rowcount"));
    while (count() < jobs && performance.now() < until) {
      scroll.scrollTop = scroll.scrollHeight;
      await new Promise(requestAnimationFrame);
    }
    return count();
  }, jobs);
}

/** A list with all its jobs read, and what its page works while it is scrolled, in milliseconds a frame. */
async function list(open, path, jobs) {
  const begun = Date.now();
  const page = await open({ path });
  await page.locator(".scroll .tr a").first().waitFor();
  const listed = Date.now() - begun;
  assert.equal(await readAll(page, jobs), jobs);
  const spent = await meter(page);
  const [work, times] = [{}, []];
  const scroll = async () => {
    await page.bringToFront();
    const before = await spent();
    times.push(...(await frames(page)));
    const after = await spent();
    for (const kind of ["Task", "Script", "Layout", "RecalcStyle"]) {
      work[kind] = (work[kind] ?? 0) + (after[`${kind}Duration`] - before[`${kind}Duration`]) / (ROUNDS * (FRAMES + 5));
    }
  };
  const told = () => Object.entries(work).map(([kind, ms]) => `${kind.toLowerCase()} ${ms.toFixed(1)}`).join(", ");
  return { page, listed, scroll, work, times, told };
}

export const stories = {
  async many_thousand_jobs_scroll({ open, browser, server, shot }) {
    const submit = async (name) => server.post("jobs/batch", { jobs: Array.from({ length: FEW }, (_, at) => ({ name: `${name} ${at}`, tags: ["nobody"] })) });
    await submit("few");
    for (let at = 1; at < JOBS / FEW; at++) await submit("many");
    const many = await list(open, "jobs", JOBS);
    const few = await list(open, "jobs?q=few", FEW);
    const blank = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage();
    const times = [];
    const idle = idleMeter();
    const rest = { idle: 0, all: 0 };
    // In turns, so that what slows the machine down slows all.
    for (let round = 0; round < ROUNDS; round++) {
      await blank.bringToFront();
      idle();
      times.push(...(await frames(blank)));
      const beside = idle();
      rest.idle += beside.idle;
      rest.all += beside.all;
      await many.scroll();
      await few.scroll();
    }
    const [found, none] = [summary(many.times), summary(times)];
    const heap = (await many.page.evaluate(() => performance.memory?.usedJSHeapSize)) / 1e6;
    console.log(`      list after ${many.listed} ms; heap ${heap.toFixed(0)} MB; a frame costs the page, in ms of processor time: ${many.told()}`);
    console.log(`      with ${FEW} jobs: ${few.told()}`);
    console.log(`      frames of the list: ${found.text}; of a blank page: ${none.text}`);
    await shot(many.page, "jobs-many");
    await blank.context().close();
    assert.ok(many.work.Task < few.work.Task * WORK_RATIO, `a frame costs ${many.work.Task} ms, with ${FEW} jobs ${few.work.Task}`);
    const quiet = rest.idle / rest.all;
    if (quiet < QUIET) console.log(`      others use this machine (${(quiet * 100).toFixed(0)} % idle beside a blank page): only the processor time counts`);
    else assert.ok(found.late <= none.late + LATE, `${found.late} of the frames are late, of a blank page ${none.late}`);
  },
};
stories.many_thousand_jobs_scroll.alone = true;
