//! Made by `npm run build` in `web/`.

use super::File;

#[rustfmt::skip]
pub static FILES: &[File] = &[
    File { name: "audit-CDgfbcKh.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/audit-CDgfbcKh.js.gz") },
    File { name: "basics-Bk7-yRu4.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/basics-Bk7-yRu4.js.gz") },
    File { name: "chart-CnClLstN.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/chart-CnClLstN.js.gz") },
    File { name: "chart-CnsZ1jie.css", content: "text/css; charset=utf-8", bytes: include_bytes!("built/chart-CnsZ1jie.css.gz") },
    File { name: "definition-NdjxecuA.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/definition-NdjxecuA.js.gz") },
    File { name: "definitions-Kn-Ej0Ak.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/definitions-Kn-Ej0Ak.js.gz") },
    File { name: "events-CHadj-IK.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/events-CHadj-IK.js.gz") },
    File { name: "features-aSCt9LP2.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/features-aSCt9LP2.js.gz") },
    File { name: "graph-DjJhiw6O.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/graph-DjJhiw6O.js.gz") },
    File { name: "index-Ctrzj81Z.css", content: "text/css; charset=utf-8", bytes: include_bytes!("built/index-Ctrzj81Z.css.gz") },
    File { name: "index-CzIn1ECk.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/index-CzIn1ECk.js.gz") },
    File { name: "items-BG6tmMuS.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/items-BG6tmMuS.js.gz") },
    File { name: "job-lcDcqZ55.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/job-lcDcqZ55.js.gz") },
    File { name: "json-CERuJpxH.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/json-CERuJpxH.js.gz") },
    File { name: "live.worker-CewxQAfx.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/live.worker-CewxQAfx.js.gz") },
    File { name: "pages-edLM-F0g.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/pages-edLM-F0g.js.gz") },
    File { name: "run-COR6iTdL.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/run-COR6iTdL.js.gz") },
    File { name: "runs-CEISi45V.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/runs-CEISi45V.js.gz") },
    File { name: "schedules-DYpBlgz0.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/schedules-DYpBlgz0.js.gz") },
    File { name: "server-CGBCZyin.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/server-CGBCZyin.js.gz") },
    File { name: "style-DLioOiRN.css", content: "text/css; charset=utf-8", bytes: include_bytes!("built/style-DLioOiRN.css.gz") },
    File { name: "style-DQ6xyvmA.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/style-DQ6xyvmA.js.gz") },
    File { name: "text-DFueiscS.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/text-DFueiscS.js.gz") },
    File { name: "tokens-B4aataj6.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/tokens-B4aataj6.js.gz") },
    File { name: "useBaseQuery-BZUFwgwE.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/useBaseQuery-BZUFwgwE.js.gz") },
    File { name: "with-selector-K4lDhb4a.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/with-selector-K4lDhb4a.js.gz") },
    File { name: "workers-CFuPN9QE.js", content: "text/javascript; charset=utf-8", bytes: include_bytes!("built/workers-CFuPN9QE.js.gz") },
];
