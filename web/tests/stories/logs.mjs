// Logs as programs write them: coloured, with progress bars, and with errors in many words.
import assert from "node:assert/strict";

const E = "\u001b";
/** The same table is in `crates/server/tests/unit/native/log_line.rs`. */
const LEVELS = [
  ["2026-01-01 ERROR disk full", "error"],
  ["Error: no such file", "error"],
  ["error: expected one argument", "error"],
  ["src/a.rs:3: error[E0308]: mismatched types", "error"],
  ["Traceback (most recent call last):", "error"],
  ["ValueError: invalid literal", "error"],
  ["KeyboardError", "error"],
  ["java.lang.NullPointerException: x", "error"],
  ["thread 'main' panicked at src/main.rs:1", "error"],
  ['{"level":"error","message":"x"}', "error"],
  ['{"severity": "error"}', "error"],
  ["level=error msg=x", "error"],
  ["npm ERR! code 1", "error"],
  ["WARN and then an ERROR", "error"],
  ["warning: unused variable", "warn"],
  ["WARN low disk", "warn"],
  ["DEBUG x=1", "debug"],
  ["0 errors", ""],
  ["no error was found", ""],
  ["Error handling is enabled", ""],
  ["TERROR", ""],
  ["the level error of it", ""],
];

async function job(server, ...parts) {
  const { id } = await server.post("jobs", { name: "talks" });
  const lease = await server.claim();
  for (const data of parts) await server.report("logs", { lease: lease.lease, data });
  return { id, lease: lease.lease };
}
const lines = (page) => page.locator(".line code").allTextContents();

export const stories = {
  async errors_are_found_in_coloured_logs({ open, server }) {
    const coloured = LEVELS.map(([line]) => `${E}[31m${line.replace(" ", `${E}[0m `)}${E}[39m`);
    const { id } = await job(server, `${coloured.join("\n")}\n`);
    const page = await open({ path: `jobs/${id}` });
    await page.locator(".line", { hasText: "disk full" }).waitFor();
    for (const [level, word] of [["error", "errors"], ["warn", "warnings"], ["debug", "debug"]]) {
      await page.getByLabel("Level").selectOption({ label: word });
      const expected = LEVELS.filter(([, of]) => of === level).map(([line]) => line);
      await page.getByText(new RegExp(`^${expected.length} lines?`)).waitFor();
      assert.deepEqual(await lines(page), expected);
    }
    await page.getByLabel("Level").selectOption("");
    // A search does not see the colours either.
    await page.getByLabel("Search the log").fill("ERROR disk");
    await page.getByText("1 line", { exact: true }).waitFor();
  },

  async errors_of_a_long_log_are_found_by_the_server({ open, server }) {
    const part = (from) => Array.from({ length: 1000 }, (_, at) => (from + at === 7 ? `${E}[1mError:${E}[0m early` : `line ${from + at}`)).join("\n") + "\n";
    const { id } = await job(server, ...Array.from({ length: 60 }, (_, at) => part(at * 1000)));
    const page = await open({ path: `jobs/${id}` });
    await page.getByText(/older ones are found by searching or by level/).waitFor({ timeout: 60_000 });
    await page.getByLabel("Level").selectOption({ label: "errors" });
    await page.locator(".line", { hasText: "Error: early" }).waitFor();
    await page.getByText("1 line of 60,000 searched on the server").waitFor();
  },

  /** Styles in the text of the page are against its policy, and each is an error on the console: they fail the story. */
  async colours_of_all_kinds_and_progress_bars_are_shown({ open, server, shot }) {
    const text = [
      `${E}[1mbold${E}[22m ${E}[3mitalic${E}[23m ${E}[4munder${E}[24m`,
      `${E}[38;5;208morange${E}[0m ${E}[38;5;9mbright${E}[0m ${E}[38;5;244mgray${E}[0m`,
      `${E}[38;2;10;20;30mdark${E}[0m ${E}[48;2;250;250;0mon yellow${E}[0m ${E}[7minverse${E}[0m`,
    ].join("\n");
    const many = Array.from({ length: 100 }, (_, at) => `${E}[1;38;5;${at + 16}mline ${at}${E}[0m`).join("\n");
    const { id, lease } = await job(server, `${many}\n${text}\n`, "10%\r20%", "\r30%", "\r", "40%");
    const page = await open({ path: `jobs/${id}` });
    await page.locator(".ansi-bold", { hasText: /^bold$/ }).waitFor();
    const css = (text, name) => page.locator(".line span", { hasText: new RegExp(`^${text}$`) }).evaluate((element, name) => getComputedStyle(element)[name], name);
    assert.equal(await css("bold", "fontWeight"), "700");
    assert.equal(await css("orange", "color"), "rgb(255, 135, 0)");
    assert.equal(await css("gray", "color"), "rgb(128, 128, 128)");
    assert.equal(await css("on yellow", "backgroundColor"), "rgb(250, 250, 0)");
    assert.notEqual(await css("dark", "color"), "rgb(10, 20, 30)", "it could not be read on the dark log");
    await page.locator(".ansi-bright-red-fg", { hasText: "bright" }).waitFor();
    assert.equal((await lines(page)).at(-1), "40%");
    await server.report("logs", { lease, data: "\r100%\ndone\r\n" });
    await page.locator(".line", { hasText: "done" }).waitFor();
    assert.deepEqual((await lines(page)).slice(-2), ["100%", "done"]);
    await shot(page, "log-colours");
  },

  async times_of_a_log_are_local({ open, server }) {
    const { id, lease } = await job(server);
    await server.report("logs", { lease, chunks: undefined, data: "now\n" });
    const page = await open({ path: `jobs/${id}`, timezoneId: "Asia/Tokyo" });
    await page.getByLabel("Local times").waitFor();
    const time = page.locator(".line time").first();
    const at = new Date(await time.getAttribute("datetime"));
    assert.equal(await time.textContent(), `${at.toLocaleTimeString("en-GB", { timeZone: "Asia/Tokyo" })}.${String(at.getMilliseconds()).padStart(3, "0")}`);
  },
};
