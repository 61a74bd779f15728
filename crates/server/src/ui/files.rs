//! Made by `npm run build` in `web/`.

use super::File;

#[rustfmt::skip]
pub static FILES: &[File] = &[
    File { name: "audit-B_a03Bk4.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/audit-B_a03Bk4.js.gz") },
    File { name: "basics-BgtDr0Td.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/basics-BgtDr0Td.js.gz") },
    File { name: "chart-CnClLstN.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/chart-CnClLstN.js.gz") },
    File { name: "chart-CnsZ1jie.css", content: "text/css; charset=utf-8", bytes: include_bytes!("built/chart-CnsZ1jie.css.gz") },
    File { name: "definition-mrCiAL1_.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/definition-mrCiAL1_.js.gz") },
    File { name: "definitions-CCMJhytM.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/definitions-CCMJhytM.js.gz") },
    File { name: "events-CtWUEKQD.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/events-CtWUEKQD.js.gz") },
    File { name: "features-COeCLtbc.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/features-COeCLtbc.js.gz") },
    File { name: "graph-BfOL2al8.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/graph-BfOL2al8.js.gz") },
    File { name: "index-CGyB5-a7.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/index-CGyB5-a7.js.gz") },
    File { name: "index-CQ3gy7L_.css", content: "text/css; charset=utf-8", bytes: include_bytes!("built/index-CQ3gy7L_.css.gz") },
    File { name: "items-Mck8WwFd.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/items-Mck8WwFd.js.gz") },
    File { name: "job-Cm_m9wyj.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/job-Cm_m9wyj.js.gz") },
    File { name: "json-Ds5_HrgF.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/json-Ds5_HrgF.js.gz") },
    File { name: "live.worker-CewxQAfx.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/live.worker-CewxQAfx.js.gz") },
    File { name: "pages-DCAmdYfG.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/pages-DCAmdYfG.js.gz") },
    File { name: "run-t4WTQUEw.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/run-t4WTQUEw.js.gz") },
    File { name: "runs-D2CD6wkF.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/runs-D2CD6wkF.js.gz") },
    File { name: "schedules-D2atGmYm.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/schedules-D2atGmYm.js.gz") },
    File { name: "server-B5IFLHOY.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/server-B5IFLHOY.js.gz") },
    File { name: "style-DLioOiRN.css", content: "text/css; charset=utf-8", bytes: include_bytes!("built/style-DLioOiRN.css.gz") },
    File { name: "style-ofP7bhcj.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/style-ofP7bhcj.js.gz") },
    File { name: "text-DFueiscS.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/text-DFueiscS.js.gz") },
    File { name: "tokens-1BCwfBxv.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/tokens-1BCwfBxv.js.gz") },
    File { name: "useBaseQuery-BzAvkU6h.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/useBaseQuery-BzAvkU6h.js.gz") },
    File { name: "with-selector-K4lDhb4a.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/with-selector-K4lDhb4a.js.gz") },
    File { name: "workers-DR7kg5r2.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/workers-DR7kg5r2.js.gz") },
];
