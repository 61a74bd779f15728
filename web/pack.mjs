// Puts what Vite built into the server's sources: every file compressed, and a list of them. With --check it only compares, and
// fails if what is stored is not what the sources give. Compressed files are compared by what they hold, because their bytes depend
// on the version of zlib.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync, existsSync } from "node:fs";
import { gunzipSync, gzipSync } from "node:zlib";

const out = new URL("out/", import.meta.url);
const ui = new URL("../crates/server/src/ui/", import.meta.url);
const built = new URL("built/", ui);
const types = { js: "text/javascript; charset=utf-8", css: "text/css; charset=utf-8", svg: "image/svg+xml" };

const names = readdirSync(new URL("assets/", out)).sort();
const typeOf = (name) => types[name.split(".").pop()] ?? "application/octet-stream";
const list = `//! Made by \`npm run build\` in \`web/\`.

use super::File;

#[rustfmt::skip]
pub static FILES: &[File] = &[
${names.map((name) => `    File { name: "${name}", content: "${typeOf(name)}", bytes: include_bytes!("built/${name}.gz") },`).join("\n")}
];
`;
const page = readFileSync(new URL("index.html", out), "utf8");

const faults = [];
if (process.argv.includes("--check")) {
  const same = (file, text) => existsSync(file) && readFileSync(file, "utf8") === text;
  if (!same(new URL("files.rs", ui), list)) faults.push("files.rs");
  if (!same(new URL("index.html", built), page)) faults.push("built/index.html");
  for (const name of names) {
    const file = new URL(`${name}.gz`, built);
    const fresh = readFileSync(new URL(`assets/${name}`, out));
    if (!existsSync(file) || !gunzipSync(readFileSync(file)).equals(fresh)) faults.push(`built/${name}.gz`);
  }
  if (faults.length) {
    console.error(`The stored dashboard is not what web/ gives; run \`npm run build\` in web/: ${faults.join(", ")}`);
    process.exit(1);
  }
} else {
  rmSync(built, { recursive: true, force: true });
  mkdirSync(built, { recursive: true });
  writeFileSync(new URL("files.rs", ui), list);
  writeFileSync(new URL("index.html", built), page);
  for (const name of names) {
    writeFileSync(new URL(`${name}.gz`, built), gzipSync(readFileSync(new URL(`assets/${name}`, out)), { level: 9 }));
  }
}
