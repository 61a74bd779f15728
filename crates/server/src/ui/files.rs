//! Made by `npm run build` in `web/`.

use super::File;

#[rustfmt::skip]
pub static FILES: &[File] = &[
    File { name: "audit-DnYFpRD_.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/audit-DnYFpRD_.js.gz") },
    File { name: "basics-zk6zgpFw.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/basics-zk6zgpFw.js.gz") },
    File { name: "chart-CnClLstN.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/chart-CnClLstN.js.gz") },
    File { name: "chart-CnsZ1jie.css", content: "text/css; charset=utf-8", bytes: include_bytes!("built/chart-CnsZ1jie.css.gz") },
    File { name: "definition-BK2xQ3_D.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/definition-BK2xQ3_D.js.gz") },
    File { name: "definitions-CL02pVlD.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/definitions-CL02pVlD.js.gz") },
    File { name: "events-jJ4O2S0e.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/events-jJ4O2S0e.js.gz") },
    File { name: "features-BSpPigJb.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/features-BSpPigJb.js.gz") },
    File { name: "graph-CVKNZ-gb.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/graph-CVKNZ-gb.js.gz") },
    File { name: "index-CQ3gy7L_.css", content: "text/css; charset=utf-8", bytes: include_bytes!("built/index-CQ3gy7L_.css.gz") },
    File { name: "index-ujfqZh59.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/index-ujfqZh59.js.gz") },
    File { name: "items-BSYkFHlK.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/items-BSYkFHlK.js.gz") },
    File { name: "job-KUH9E5AI.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/job-KUH9E5AI.js.gz") },
    File { name: "json-CG-OFXYB.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/json-CG-OFXYB.js.gz") },
    File { name: "live.worker-CewxQAfx.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/live.worker-CewxQAfx.js.gz") },
    File { name: "pages-DvGn3oTm.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/pages-DvGn3oTm.js.gz") },
    File { name: "run-Dt0vhTQX.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/run-Dt0vhTQX.js.gz") },
    File { name: "runs-CWq8AJDM.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/runs-CWq8AJDM.js.gz") },
    File { name: "schedules-DH7GNjAT.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/schedules-DH7GNjAT.js.gz") },
    File { name: "server-Bvq1gKJa.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/server-Bvq1gKJa.js.gz") },
    File { name: "style-B5PydLKu.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/style-B5PydLKu.js.gz") },
    File { name: "style-DLioOiRN.css", content: "text/css; charset=utf-8", bytes: include_bytes!("built/style-DLioOiRN.css.gz") },
    File { name: "text-DFueiscS.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/text-DFueiscS.js.gz") },
    File { name: "tokens-BOmEdRHF.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/tokens-BOmEdRHF.js.gz") },
    File { name: "useBaseQuery-DEvwLeqV.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/useBaseQuery-DEvwLeqV.js.gz") },
    File { name: "with-selector-K4lDhb4a.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/with-selector-K4lDhb4a.js.gz") },
    File { name: "workers-BpB_inmr.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/workers-BpB_inmr.js.gz") },
];
