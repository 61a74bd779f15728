// Every call of workflow-graph's TypeScript client and of its web page, made the way they make them: plain fetch, no header of
// their own, ids escaped, errors shown with their text. Its package is in no public registry, so this stands in for it.
//   node workflow_graph.mjs http://127.0.0.1:3000/~TOKEN
import assert from "node:assert/strict";

const base = process.argv[2];
const url = (...parts) => base + "/api/workflows" + parts.map((part) => "/" + encodeURIComponent(part)).join("");

async function call(what, address, options) {
  const answer = await fetch(address, options);
  if (!answer.ok) throw Object.assign(new Error(`${what}: ${answer.status} ${await answer.text()}`), { status: answer.status });
  return answer;
}
const read = async (what, address) => (await call(what, address)).json();
const post = (what, address) => call(what, address, { method: "POST" });

// As EventSource does: events named `log`, one line of data each.
async function* stream(address) {
  const stop = new AbortController();
  const answer = await fetch(address, { headers: { accept: "text/event-stream" }, signal: stop.signal });
  assert.equal(answer.headers.get("content-type"), "text/event-stream");
  let text = "";
  try {
    for await (const piece of answer.body.pipeThrough(new TextDecoderStream())) {
      text += piece;
      for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
        const lines = text.slice(0, end).split("\n");
        if (lines.includes("event: log")) yield JSON.parse(lines.find((line) => line.startsWith("data: ")).slice(6));
      }
    }
  } finally {
    stop.abort();
  }
}

// createWorkflow: with the members its Job type has, and no others.
const job = (id, command, depends_on = []) => ({ id, name: id, status: "queued", command, depends_on });
const body = JSON.stringify({ name: "demo", trigger: "on: push", jobs: [job("a b", "echo one; sleep 1; echo two"), job("after", "true", ["a b"])] });
const created = await (await call("create", url(), { method: "POST", headers: { "Content-Type": "application/json" }, body })).json();
assert.equal(created.jobs.length, 2);
assert.deepEqual(Object.keys(created.jobs[0]).length, 15);

// listWorkflows, and the page's use of element 0.
const all = await read("list", url());
assert.ok(all.some((workflow) => workflow.id === created.id));

// runWorkflow ignores the body, which has to be empty.
const run = await post("run", url(created.id, "run"));
assert.deepEqual([run.status, await run.text()], [202, ""]);

// streamLogs while it runs; then getStatus every second until every job is in a final state.
const lines = [];
for await (const chunk of stream(url(created.id, "jobs", "a b", "logs") + "/stream")) {
  lines.push(chunk.data);
  if (lines.length === 2) break;
}
assert.deepEqual(lines, ["one\n", "two\n"]);
let shown;
for (let turn = 0; turn < 30; turn++) {
  shown = await read("status", url(created.id, "status"));
  if (shown.jobs.every((job) => ["success", "failure", "skipped", "cancelled"].includes(job.status))) break;
  await new Promise((resolve) => setTimeout(resolve, 1000));
}
for (const job of shown.jobs) {
  assert.equal(job.status, "success");
  assert.ok(Number.isInteger(job.duration_secs) && job.started_at > 1e12, JSON.stringify(job));
}

// getJobLogs, as the page joins them; listWorkers.
const chunks = await read("logs", url(created.id, "jobs", "a b", "logs"));
assert.equal(chunks.map((chunk) => chunk.data).join(""), "one\ntwo\n");
assert.deepEqual(Object.keys(chunks[0]), ["workflow_id", "job_id", "sequence", "data", "timestamp_ms", "stream"]);
const workers = await read("workers", base + "/api/workers");
assert.ok(workers.length > 0 && workers.every((worker) => ["idle", "busy", "offline"].includes(worker.status)));

// cancelWorkflow of one that runs; errors carry status and text; the page's sample button.
await post("run", url(created.id, "run"));
assert.equal((await post("cancel", url(created.id, "cancel"))).status, 202);
const cancelled = await read("status", url(created.id, "status"));
assert.deepEqual(cancelled.jobs.map((job) => job.status), ["cancelled", "cancelled"]);
await assert.rejects(read("status", url("none", "status")), { status: 404 });
const bad = JSON.stringify({ name: "x", trigger: "", jobs: [job("a", "true", ["z"])] });
const refused = call("create", url(), { method: "POST", headers: { "Content-Type": "application/json" }, body: bad });
await assert.rejects(refused, (error) => error.status === 422 && error.message.includes("which does not exist"));
const sample = await (await post("sample", url("sample"))).json();
assert.deepEqual([sample.id, sample.jobs.length], ["ci-1", 8]);
console.log("all calls answered as expected");
