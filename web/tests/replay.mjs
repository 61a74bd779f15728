// What one real page asks a server for, and when; and many such pages without a browser.
import { Agent, request } from "node:http";
import { proxy } from "./proxy.mjs";

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
/** A page that was just opened asks for more than one that stays open. */
const SETTLED_MS = 3000;

/** Opens a page and writes down its requests once it stands. */
export async function record({ open, server, path, seconds }) {
  const asked = [];
  const streams = [];
  let from = Infinity;
  const seen = (path, { headers, method }) => {
    if (method !== "GET" || !path.startsWith("/api/")) return;
    const one = { path, headers: { ...headers }, at: Date.now() - from };
    if (path.startsWith("/api/v1/pulse") || path.startsWith("/api/v1/events/stream")) streams.push(one);
    else if (one.at >= 0) asked.push(one);
  };
  const out = process.env.DASHBOARD && new URL("../out/", import.meta.url);
  const between = await proxy({ target: server.direct, out, seen });
  const page = await open({ url: `http://127.0.0.1:${between.address().port}`, path });
  await sleep(SETTLED_MS);
  from = Date.now();
  await sleep(seconds * 1000);
  await page.context().close();
  between.closeAllConnections();
  between.close();
  const counts = {};
  for (const { path } of asked) counts[path.split("?")[0]] = (counts[path.split("?")[0]] ?? 0) + 1;
  const summary = Object.entries(counts).map(([path, count]) => `${path} ${count}`).join(", ");
  return { asked, streams: streams.slice(-1), lasts: seconds * 1000, summary };
}

/** So many pages, each with a course that was recorded, begun somewhere in it. */
export class Replay {
  answered = 0;
  refused = 0;
  going = true;
  open = new Set();

  constructor(url, sessions, count) {
    this.url = new URL(url);
    this.work = Array.from({ length: count }, (_, at) => this.page(sessions[at % sessions.length], at / count));
  }

  get(agent, { path, headers }, stays = false) {
    return new Promise((done) => {
      const asked = request({ host: this.url.hostname, port: this.url.port, path, headers: { ...headers, connection: "keep-alive" }, agent }, (answer) => {
        if (answer.statusCode !== 200) this.refused++;
        answer.resume();
        answer.on("close", done);
      });
      asked.on("error", () => {
        if (this.going) this.refused++;
        done();
      });
      if (stays) {
        this.open.add(asked);
        asked.on("close", () => this.open.delete(asked));
      }
      asked.end();
    });
  }

  async page({ asked, streams, lasts }, part) {
    const agent = new Agent({ keepAlive: true, maxSockets: 6 });
    const held = streams.map((stream) => this.get(agent, stream, true));
    let begun = Date.now() - part * lasts;
    let next = asked.findIndex((one) => one.at >= part * lasts);
    while (this.going && asked.length) {
      if (next < 0 || next >= asked.length) {
        next = 0;
        begun += lasts;
      }
      const one = asked[next++];
      while (this.going && Date.now() < begun + one.at) await sleep(Math.min(200, begun + one.at - Date.now()));
      if (this.going) void this.get(agent, one).then(() => this.answered++);
    }
    await Promise.all(held);
    agent.destroy();
  }

  async stop() {
    this.going = false;
    for (const asked of this.open) asked.destroy();
    await Promise.all(this.work);
  }
}
