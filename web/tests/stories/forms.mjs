// A form sends what it displays, or nothing.
import assert from "node:assert/strict";

const SCHEMA = {
  type: "object",
  required: ["replicas", "tier"],
  properties: {
    dry_run: { type: "boolean", default: true },
    replicas: { type: "integer", default: 3 },
    tier: { enum: ["small", "large"], default: "small" },
    note: { type: "string", default: "by hand" },
    loud: { type: "boolean" },
    weights: { type: "array", items: { type: "number" } },
    big: { type: "integer" },
    limits: { type: "object", properties: { memory: { type: "integer", default: 512 } } },
  },
};
const submit = (page) => page.getByRole("button", { name: "Submit", exact: true }).click();

/** What the server got. */
async function sent(page, server) {
  await page.getByRole("heading", { name: "Why it is not running" }).waitFor();
  return (await server.get(`jobs/${page.url().split("/").pop()}`)).payload;
}

export const stories = {
  async displayed_defaults_are_sent({ open, server }) {
    await server.put("definitions/deploy", { payload_schema: SCHEMA });
    const page = await open({ path: "definitions/deploy" });
    assert.equal(await page.getByLabel("dry_run").isChecked(), true);
    assert.equal(await page.getByLabel("replicas").inputValue(), "3");
    await submit(page);
    assert.deepEqual(await sent(page, server), { dry_run: true, replicas: 3, tier: "small", note: "by hand", limits: { memory: 512 } });
  },

  async what_is_cleared_is_not_sent_and_what_is_typed_is({ open, server }) {
    await server.put("definitions/deploy", { payload_schema: SCHEMA });
    const page = await open({ path: "definitions/deploy" });
    await page.getByLabel("dry_run").uncheck();
    await page.getByLabel("note").fill("");
    await page.getByLabel("loud").selectOption("true");
    await page.getByLabel("memory").fill("");
    await page.getByLabel("weights").pressSequentially("1\n2.5");
    assert.equal(await page.getByLabel("weights").inputValue(), "1\n2.5");
    await page.getByLabel("big").fill("12345678901234567890");
    // The answer as text: JavaScript does not hold the number.
    const answer = page.waitForRequest((request) => request.method() === "POST" && request.url().includes("/api/v1/jobs?"));
    await submit(page);
    const body = (await answer).postData();
    assert.match(body, /"big":12345678901234567890[,}]/);
    const payload = await sent(page, server);
    assert.deepEqual({ ...payload, big: 0 }, { dry_run: false, replicas: 3, tier: "small", loud: true, weights: [1, 2.5], big: 0 });
  },

  async what_cannot_be_read_is_not_sent({ open, server }) {
    await server.put("definitions/deploy", { payload_schema: SCHEMA });
    await server.put("definitions/any", { payload_schema: { type: "object" }, payload: { valid: "before" } });
    const page = await open({ path: "definitions/deploy" });
    await page.getByLabel("replicas").fill("three");
    await page.getByLabel("weights").fill("1\nx");
    await submit(page);
    await page.getByText('"three" is not a number').waitFor();
    await page.getByText('Line 2: "x" is not a number').waitFor();
    await page.getByLabel("replicas").fill("");
    await page.getByLabel("weights").fill("");
    await submit(page);
    await page.locator(".field", { hasText: "replicas" }).getByText("This is required.").waitFor();
    assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-invalid")), "true");
    await page.goto(`${server.url}/ui/definitions/any`);
    await page.getByLabel("Payload as JSON").fill('{"valid": "after"');
    await submit(page);
    await page.getByText("This is not JSON").waitFor();
    await page.getByLabel("Payload as JSON").fill("");
    await submit(page);
    await page.getByText("There is nothing here.").waitFor();
    assert.deepEqual((await server.get("jobs")).items, [], "nothing was submitted");
    await page.getByLabel("Payload as JSON").fill('{"valid": "after"}');
    await submit(page);
    assert.deepEqual(await sent(page, server), { valid: "after" });
  },

  async a_payload_that_a_form_cannot_show_is_edited_as_json({ open, server }) {
    await server.put("definitions/deploy", { payload_schema: SCHEMA, payload: { replicas: 1, tier: "small", hidden: true } });
    const page = await open({ path: "definitions/deploy" });
    assert.match(await page.getByLabel("Payload as JSON").inputValue(), /"hidden": true/);
    assert.ok(await page.getByRole("button", { name: "Edit as a form" }).isDisabled());
    await page.getByLabel("Payload as JSON").fill('{"replicas": 2, "tier": "large"}');
    await page.getByRole("button", { name: "Edit as a form" }).click();
    assert.equal(await page.getByLabel("replicas").inputValue(), "2");
    await submit(page);
    assert.deepEqual(await sent(page, server), { replicas: 2, tier: "large" });
  },

  async a_schedule_that_is_paused_keeps_large_numbers({ open, server }) {
    const headers = { authorization: `Bearer ${server.token}`, "content-type": "application/json" };
    const body = '{"every_ms": 3600000, "job": {"name": "n", "payload": {"big": 12345678901234567890}}}';
    await fetch(`${server.url}/api/v1/schedules/often`, { method: "PUT", headers, body });
    const page = await open({ path: "schedules/often" });
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByText("It is paused.").waitFor();
    const text = await (await fetch(`${server.url}/api/v1/schedules/often`, { headers })).text();
    assert.match(text, /"big":12345678901234567890[,}]/);
  },
};
