//! Made by `npm run build` in `web/`.

use super::File;

#[rustfmt::skip]
pub static FILES: &[File] = &[
    File { name: "audit-CSmgQgbH.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/audit-CSmgQgbH.js.gz") },
    File { name: "basics-D0Ne2LSX.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/basics-D0Ne2LSX.js.gz") },
    File { name: "chart-CnClLstN.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/chart-CnClLstN.js.gz") },
    File { name: "chart-CnsZ1jie.css", content: "text/css; charset=utf-8", bytes: include_bytes!("built/chart-CnsZ1jie.css.gz") },
    File { name: "definition-BxP5Q5Jy.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/definition-BxP5Q5Jy.js.gz") },
    File { name: "definitions-B4vODeNc.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/definitions-B4vODeNc.js.gz") },
    File { name: "events-B2gj-_eI.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/events-B2gj-_eI.js.gz") },
    File { name: "features-6ydrMolu.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/features-6ydrMolu.js.gz") },
    File { name: "graph-C8tqwmCH.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/graph-C8tqwmCH.js.gz") },
    File { name: "index-DNGuUHTy.css", content: "text/css; charset=utf-8", bytes: include_bytes!("built/index-DNGuUHTy.css.gz") },
    File { name: "index-o9KDRTW2.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/index-o9KDRTW2.js.gz") },
    File { name: "items-Dx0hGNFQ.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/items-Dx0hGNFQ.js.gz") },
    File { name: "job-J2M7r1bs.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/job-J2M7r1bs.js.gz") },
    File { name: "json-ChAcbh8I.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/json-ChAcbh8I.js.gz") },
    File { name: "live.worker-CewxQAfx.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/live.worker-CewxQAfx.js.gz") },
    File { name: "pages-Ba5oWvUW.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/pages-Ba5oWvUW.js.gz") },
    File { name: "run-RAMKDwNs.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/run-RAMKDwNs.js.gz") },
    File { name: "runs-C_sUNR2I.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/runs-C_sUNR2I.js.gz") },
    File { name: "schedules-D5bXwF_v.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/schedules-D5bXwF_v.js.gz") },
    File { name: "server-C1-vXB8B.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/server-C1-vXB8B.js.gz") },
    File { name: "style-CLru-nZ2.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/style-CLru-nZ2.js.gz") },
    File { name: "style-DLioOiRN.css", content: "text/css; charset=utf-8", bytes: include_bytes!("built/style-DLioOiRN.css.gz") },
    File { name: "text-DFueiscS.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/text-DFueiscS.js.gz") },
    File { name: "tokens-xNdaTceL.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/tokens-xNdaTceL.js.gz") },
    File { name: "useBaseQuery-CN9lQ_R2.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/useBaseQuery-CN9lQ_R2.js.gz") },
    File { name: "with-selector-K4lDhb4a.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/with-selector-K4lDhb4a.js.gz") },
    File { name: "workers-DPlxVVv6.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/workers-DPlxVVv6.js.gz") },
];
