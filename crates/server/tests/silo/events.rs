//! The event stream.

use super::*;
use std::time::Duration;

pub struct Reader {
    response: reqwest::Response,
    text: String,
}

type Heard = (Option<u64>, String, Value);

impl Reader {
    pub async fn open(silo: &Silo, last: Option<&str>) -> Self {
        let mut request = silo.request(&token(Role::Viewer), "GET", "/api/events");
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        for (name, value) in
            [("content-type", "text/event-stream"), ("cache-control", "no-cache"), ("x-accel-buffering", "no")]
        {
            assert_eq!(response.headers()[name], value);
        }
        let mut reader = Self { response, text: String::new() };
        let first = reader.block().await;
        assert!(first.starts_with("retry: 3000\n:"), "{first}");
        reader
    }

    async fn block(&mut self) -> String {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                return block;
            }
            let piece = tokio::time::timeout(Duration::from_secs(20), self.response.chunk()).await.expect("in time");
            self.text += core::str::from_utf8(&piece.unwrap().expect("not over yet")).unwrap();
        }
    }

    pub async fn next(&mut self) -> Heard {
        let block = self.block().await;
        let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name).map(str::to_owned));
        let data = serde_json::from_str(&field("data: ").unwrap()).unwrap();
        (field("id: ").map(|id| id.parse().unwrap()), field("event: ").unwrap(), data)
    }

    /// Everything up to the n-th event of this name.
    pub async fn until(&mut self, name: &str, mut count: usize) -> Vec<Heard> {
        let mut heard = Vec::new();
        while count > 0 {
            heard.push(self.next().await);
            count -= usize::from(heard.last().unwrap().1 == name);
        }
        heard
    }
}

#[tokio::test]
async fn every_event_says_what_it_must_and_a_reader_that_comes_back_misses_none() {
    let silo = Silo::start(&[("d.yaml", &manual("d", "  max_retries: 1\n"))]).await;
    let mut reader = Reader::open(&silo, None).await;
    silo.item("P-1", "part").await;
    let runner = silo.runner("r", &["z", "a"]).await;
    silo.call(&runner, "POST", "/api/runner/heartbeat", Value::Null).await.expect(200);
    let job = silo.job("d", "P-1").await;
    silo.claim(&runner).await.unwrap();
    silo.report(&runner, &job, "progress", json!({"progress": 5, "message": "a"})).await.expect(200);
    let failed = silo.report(&runner, &job, "fail", json!({"error": "no"})).await.expect(200);
    let retry = text(&failed["retry_job_id"]);
    silo.claim(&runner).await.unwrap();
    silo.report(&runner, &retry, "complete", json!({"result": [1, 2]})).await.expect(200);
    let last = silo.job("d", "P-1").await;
    silo.post(&format!("/api/jobs/{last}/cancel"), json!({})).await.expect(200);
    let heard = reader.until("job.cancelled", 1).await;
    let find = |name: &str, at: usize| {
        &heard.iter().filter(|(_, heard, _)| heard == name).nth(at).unwrap_or_else(|| panic!("{name}: {heard:?}")).2
    };
    assert_eq!(find("item.created", 0)["part_number"], "P-1");
    assert_eq!(
        (&find("runner.online", 0)["name"], &find("runner.online", 0)["tags"]),
        (&json!("r"), &json!(["z", "a"]))
    );
    let made = find("job.created", 0);
    assert_eq!((&made["id"], &made["definition_name"], &made["status"]), (&json!(job), &json!("d"), &json!("pending")));
    assert!(made["item_id"].is_string() && made["priority"] == 100);
    assert_eq!(find("job.claimed", 0)["runner_name"], "r");
    assert_eq!(find("job.progress", 0), &json!({"id": job, "progress": 5, "progress_message": "a"}));
    assert_eq!(find("job.failed", 0), &json!({"id": job, "error_message": "no"}));
    assert_eq!(find("job.created", 1)["id"], json!(retry), "a retry is told after the failure");
    assert_eq!(find("job.completed", 0)["result_summary"], "[1,2]");
    assert!(find("job.completed", 0)["duration_seconds"].is_number());
    assert_eq!(find("job.cancelled", 0), &json!({"id": last, "cancelled_by": token(Role::Editor)}));

    let names = |heard: &[Heard]| heard.iter().map(|(id, name, _)| (*id, name.clone())).collect::<Vec<_>>();
    let middle = heard[3].0.unwrap();
    let mut again = Reader::open(&silo, Some(&middle.to_string())).await;
    assert_eq!(names(&again.until("job.cancelled", 1).await), names(&heard[4..]), "each once, in order");
    let mut from_now = Reader::open(&silo, Some("soon")).await;
    silo.item("P-2", "part").await;
    assert_eq!(from_now.next().await.2["part_number"], "P-2");
    let mut lost = Reader::open(&silo, Some("99999999")).await;
    let (id, name, data) = lost.next().await;
    assert_eq!((id, name.as_str(), &data["requested"]), (None, "stream.gap", &json!(99999999)));
    assert_eq!(silo.get("/ready").await["status"], "ready");
    assert!(silo.get("/ready").await["sse_clients"].as_u64().unwrap() >= 3);
}

#[tokio::test]
async fn a_quiet_stream_gives_signs_of_life() {
    let settings = Values::default().with(windlass_server::dialects::silo::settings::silo_heartbeat, "50ms");
    let silo = Silo::with(&[], settings).await;
    let mut reader = Reader::open(&silo, None).await;
    let (id, name, data) = reader.next().await;
    assert_eq!((id, name.as_str(), data), (None, "heartbeat", json!({})));
}
