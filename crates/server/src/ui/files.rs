//! Made by `npm run build` in `web/`.

use super::File;

#[rustfmt::skip]
pub static FILES: &[File] = &[
    File { name: "ansi-DTx3VLqg.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/ansi-DTx3VLqg.js.gz") },
    File { name: "audit-afjGO7tg.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/audit-afjGO7tg.js.gz") },
    File { name: "basics-BLTgcNFa.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/basics-BLTgcNFa.js.gz") },
    File { name: "chart-CnClLstN.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/chart-CnClLstN.js.gz") },
    File { name: "chart-CnsZ1jie.css", content: "text/css; charset=utf-8", bytes: include_bytes!("built/chart-CnsZ1jie.css.gz") },
    File { name: "definition-CkWz5Oim.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/definition-CkWz5Oim.js.gz") },
    File { name: "definitions-BTNcZfr_.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/definitions-BTNcZfr_.js.gz") },
    File { name: "events-CEfOnx1S.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/events-CEfOnx1S.js.gz") },
    File { name: "features-C6nlsknE.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/features-C6nlsknE.js.gz") },
    File { name: "graph-Bh2Jl_7H.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/graph-Bh2Jl_7H.js.gz") },
    File { name: "icon-BxA8sy4O.svg", content: "image/svg+xml", bytes: include_bytes!("built/icon-BxA8sy4O.svg.gz") },
    File { name: "index-VD4VOm5T.css", content: "text/css; charset=utf-8", bytes: include_bytes!("built/index-VD4VOm5T.css.gz") },
    File { name: "index-yxwA7G8O.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/index-yxwA7G8O.js.gz") },
    File { name: "items-C1gGg39u.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/items-C1gGg39u.js.gz") },
    File { name: "job-w5PA0o_-.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/job-w5PA0o_-.js.gz") },
    File { name: "json-Dpm2USM7.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/json-Dpm2USM7.js.gz") },
    File { name: "live.worker-CewxQAfx.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/live.worker-CewxQAfx.js.gz") },
    File { name: "pages-CCYsRQ2c.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/pages-CCYsRQ2c.js.gz") },
    File { name: "run-BNsPLkfu.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/run-BNsPLkfu.js.gz") },
    File { name: "runs-EUaqXKyF.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/runs-EUaqXKyF.js.gz") },
    File { name: "schedules-rkTh3GJi.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/schedules-rkTh3GJi.js.gz") },
    File { name: "server-BGlYgQiv.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/server-BGlYgQiv.js.gz") },
    File { name: "stream-DOsjC5SF.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/stream-DOsjC5SF.js.gz") },
    File { name: "style-DLioOiRN.css", content: "text/css; charset=utf-8", bytes: include_bytes!("built/style-DLioOiRN.css.gz") },
    File { name: "style-FvusLpvl.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/style-FvusLpvl.js.gz") },
    File { name: "text-DFueiscS.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/text-DFueiscS.js.gz") },
    File { name: "tokens-CwrrCpSJ.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/tokens-CwrrCpSJ.js.gz") },
    File { name: "useBaseQuery-DI2bo2rN.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/useBaseQuery-DI2bo2rN.js.gz") },
    File { name: "useMatch-CUrawify.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/useMatch-CUrawify.js.gz") },
    File { name: "with-selector-K4lDhb4a.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/with-selector-K4lDhb4a.js.gz") },
    File { name: "workers-thic-lrA.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/workers-thic-lrA.js.gz") },
];
