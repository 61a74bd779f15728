// How bad what a line of a log tells is, by its words. The server has the same rules for the lines it searches
// (crates/server/src/native/log_line.rs); the table of cases in the tests of both is the same.

export type Level = "" | "error" | "warn" | "debug";

const ESCAPES = /\u001b(?:\[[^@-~]*(?:[@-~]|$)|\][^\u0007\u001b]*(?:\u0007|\u001b\\|$)?|[()#%].?|[^[\]()#%]|$)/gs;

/** The text without escape sequences: colours, titles, links and all others. */
export const plain = (line: string) => (line.includes("\u001b") ? line.replace(ESCAPES, "") : line);

const KEY = String.raw`(?:level|lvl|severity)[ "]*[:=][ "]*`;
const LEVELS: [Level, RegExp][] = [
  [
    "error",
    new RegExp(
      String.raw`\b(?:ERROR|ERR|FATAL|CRITICAL|PANIC|SEVERE|Traceback|panicked)\b|\b\w*(?:Error|Exception|\berror)(?=[:[])|\w(?:Error|Exception)$|${KEY}(?:error|fatal|critical|panic)\b`,
    ),
  ],
  ["warn", new RegExp(String.raw`\b(?:WARN|WARNING|Warning)\b|\bwarning(?=[:[])|${KEY}(?:warn|warning)\b`)],
  ["debug", new RegExp(String.raw`\b(?:DEBUG|TRACE)\b|${KEY}(?:debug|trace)\b`)],
];

/** Of a text without escape sequences. */
export const levelOf = (text: string): Level => LEVELS.find(([, words]) => words.test(text))?.[0] ?? "";
