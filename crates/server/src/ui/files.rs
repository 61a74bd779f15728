//! Made by `npm run build` in `web/`.

use super::File;

#[rustfmt::skip]
pub static FILES: &[File] = &[
    File { name: "ansi-DTx3VLqg.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/ansi-DTx3VLqg.js.gz") },
    File { name: "audit-BHrm0Rqm.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/audit-BHrm0Rqm.js.gz") },
    File { name: "basics-BLTgcNFa.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/basics-BLTgcNFa.js.gz") },
    File { name: "chart-CnClLstN.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/chart-CnClLstN.js.gz") },
    File { name: "chart-CnsZ1jie.css", content: "text/css; charset=utf-8", bytes: include_bytes!("built/chart-CnsZ1jie.css.gz") },
    File { name: "definition-Cs5mNGif.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/definition-Cs5mNGif.js.gz") },
    File { name: "definitions-3DdJwCT8.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/definitions-3DdJwCT8.js.gz") },
    File { name: "events-BbZ5xRTd.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/events-BbZ5xRTd.js.gz") },
    File { name: "features-D19z6Rwu.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/features-D19z6Rwu.js.gz") },
    File { name: "graph-lSl9CjHb.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/graph-lSl9CjHb.js.gz") },
    File { name: "icon-BxA8sy4O.svg", content: "image/svg+xml", bytes: include_bytes!("built/icon-BxA8sy4O.svg.gz") },
    File { name: "index-DWFlamOK.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/index-DWFlamOK.js.gz") },
    File { name: "index-VD4VOm5T.css", content: "text/css; charset=utf-8", bytes: include_bytes!("built/index-VD4VOm5T.css.gz") },
    File { name: "items-BYPVKgjV.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/items-BYPVKgjV.js.gz") },
    File { name: "job-D-CLfjMQ.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/job-D-CLfjMQ.js.gz") },
    File { name: "json-Dpm2USM7.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/json-Dpm2USM7.js.gz") },
    File { name: "live.worker-CewxQAfx.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/live.worker-CewxQAfx.js.gz") },
    File { name: "pages-CCYsRQ2c.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/pages-CCYsRQ2c.js.gz") },
    File { name: "run-taO5Ihbw.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/run-taO5Ihbw.js.gz") },
    File { name: "runs-BNJfyBzc.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/runs-BNJfyBzc.js.gz") },
    File { name: "schedules-DqD89B7E.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/schedules-DqD89B7E.js.gz") },
    File { name: "server-CofZOv_Q.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/server-CofZOv_Q.js.gz") },
    File { name: "stream-DOsjC5SF.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/stream-DOsjC5SF.js.gz") },
    File { name: "style-DLioOiRN.css", content: "text/css; charset=utf-8", bytes: include_bytes!("built/style-DLioOiRN.css.gz") },
    File { name: "style-DUVpQ_mj.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/style-DUVpQ_mj.js.gz") },
    File { name: "text-DFueiscS.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/text-DFueiscS.js.gz") },
    File { name: "tokens-CF7j9SZM.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/tokens-CF7j9SZM.js.gz") },
    File { name: "useBaseQuery-DI2bo2rN.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/useBaseQuery-DI2bo2rN.js.gz") },
    File { name: "useMatch-CUrawify.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/useMatch-CUrawify.js.gz") },
    File { name: "with-selector-K4lDhb4a.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/with-selector-K4lDhb4a.js.gz") },
    File { name: "workers-JPyUCKtH.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/workers-JPyUCKtH.js.gz") },
];
