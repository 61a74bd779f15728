// A small proxy for tests and for work on the dashboard: passes everything below a prefix on to a server, and can serve the
// dashboard's files from `out/` instead of those that are built into the program. `seen` is told of every request.
import { createServer, request } from "node:http";
import { existsSync, readFileSync } from "node:fs";

const types = { js: "text/javascript", css: "text/css", svg: "image/svg+xml", html: "text/html; charset=utf-8" };
const POLICY =
  "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'self'";

export function proxy({ target, prefix = "", out, port = 0, seen }) {
  const to = new URL(target);
  const server = createServer((asked, answer) => {
    if (!asked.url.startsWith(`${prefix}/`)) return answer.writeHead(404).end();
    const path = asked.url.slice(prefix.length);
    seen?.(path, asked);
    if (out && path.startsWith("/ui/")) return file(path, answer, out);
    const passed = request(
      { host: to.hostname, port: to.port, path, method: asked.method, headers: asked.headers },
      (found) => {
        answer.writeHead(found.statusCode, found.headers);
        found.pipe(answer);
      },
    );
    passed.on("error", () => answer.writeHead(502).end());
    answer.on("close", () => passed.destroy());
    asked.pipe(passed);
  });
  return new Promise((ready) => server.listen(port, "127.0.0.1", () => ready(server)));
}

function file(path, answer, out) {
  const name = path.split("?")[0].slice("/ui/".length);
  const at = new URL(name, out);
  if (name.startsWith("assets/") && existsSync(at)) {
    answer.writeHead(200, { "content-type": types[name.split(".").pop()], "content-security-policy": POLICY });
    return answer.end(readFileSync(at));
  }
  const deep = name.split("/").length - 1;
  const page = readFileSync(new URL("index.html", out), "utf8").replace("{{base}}", deep ? "../".repeat(deep) : "./");
  answer.writeHead(200, { "content-type": types.html, "content-security-policy": POLICY });
  answer.end(page);
}
