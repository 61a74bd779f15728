//! Commands that tell how it stands and how it went, as the dashboard does.

use crate::support::Server;
use windlass_api::lease::{AppendLog, Claim, Complete, Fail};

/// Two jobs of a definition, one of which fails.
fn work(server: &Server) {
    let file = server.home.path().join("send.yaml");
    std::fs::write(&file, "name: send\ndescription: Sends.\n").unwrap();
    server.windlass(&["definitions", "apply", file.to_str().unwrap()]).ok();
    for well in [true, false] {
        server.windlass(&["submit", "-d", "send"]).ok();
        server.work(async |client| {
            let claim = Claim { worker: "w".into(), wait_ms: Some(5_000), ..Claim::default() };
            let lease = client.claim(&claim).await.unwrap().leases.remove(0).lease;
            let data = "one\ntwo Needle\nthree\n".to_owned();
            let log = AppendLog { lease: lease.clone(), data, stream: None, time_ms: None, chunks: vec![] };
            client.append_log(&log).await.unwrap();
            match well {
                true => drop(client.complete(&Complete { lease, ..Complete::default() }).await.unwrap()),
                false => drop(client.fail(&Fail { lease, permanent: true, ..Fail::default() }).await.unwrap()),
            }
        });
    }
}

#[test]
fn everything_that_pages_show_is_on_the_command_line() {
    let server = Server::start();
    work(&server);
    let found = server.windlass(&["logs", "last", "--grep", "needle"]).ok();
    assert_eq!(found.trim(), "2  two Needle");
    assert_eq!(server.windlass(&["logs", "last", "--grep", "nothing"]).code, 1);
    server.windlass(&["definitions", "figures", "send"]).says(&["1 completed, 1 failed", "50.0 %", "failed"]);
    server.windlass(&["workers", "figures", "w"]).says(&["1 of 2 attempts failed", "All workers"]);
    let history = server.json(&["history"]);
    let sum = |of: &str| history.as_array().unwrap().iter().filter_map(|point| point[of].as_u64()).sum::<u64>();
    assert_eq!((sum("submitted"), sum("completed"), sum("failed")), (2, 1, 1));
    server.windlass(&["history", "--month"]).says(&["SUBMITTED", "RUN P95"]);
    server.windlass(&["history", "-d", "send"]).says(&["COMPLETED"]);
    server.windlass(&["namespaces"]).says(&["default"]);
    server.windlass(&["dialects"]).says(&["native", "silo", "admin"]);
    // This one was given none.
    server.windlass(&["settings"]).says(&["No settings"]);
    server.windlass(&["schedules", "set", "often", "--every", "1s", "--shell", "true"]).ok();
    let made = || server.json(&["schedules", "show", "often"])["recent"].as_array().map_or(0, Vec::len);
    let begun = std::time::Instant::now();
    while made() == 0 {
        assert!(begun.elapsed().as_secs() < 20, "nothing was made");
    }
    server.windlass(&["schedules", "show", "often"]).says(&["Made", "pending"]);
}
