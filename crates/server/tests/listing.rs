//! Lists: by id, page by page; and names that nobody thought of.

use crate::support::Server;
use serde_json::{Value, json};
use windlass_core::principal::Role;

fn ids(page: &Value) -> Vec<String> {
    page["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn jobs_are_found_by_the_beginning_of_their_id() {
    let server = Server::start().await;
    let given = [
        "0199a000-0000-7000-8000-000000000001",
        "0199a000-0000-7000-8000-000000000002",
        "0199a000-ffff-7fff-bfff-ffffffffffff",
        "0199a001-0000-7000-8000-000000000001",
        "ffffffff-ffff-7fff-bfff-ffffffffffff",
        "00000000-0000-7000-8000-000000000000",
    ];
    for id in given {
        server.post("/api/v1/jobs", json!({"id": id})).await.expect(201);
    }
    let find = async |query: &str| ids(&server.get(&format!("/api/v1/jobs?{query}")).await.expect(200));
    assert_eq!(find("id=0199a000").await, [given[2], given[1], given[0]]);
    assert_eq!(find("id=0199A000-0000").await, [given[1], given[0]]);
    assert_eq!(find("id=0199").await.len(), 4);
    assert_eq!(find(&format!("id={}", given[1])).await, [given[1]]);
    assert_eq!(find("id=ffff").await, [given[4]]);
    assert_eq!(find("id=0000").await, [given[5]]);
    assert_eq!(find("id=abcd").await, Vec::<String>::new());
    assert_eq!(find("id=0199a000&state=completed").await, Vec::<String>::new());
    let first = server.get("/api/v1/jobs?id=0199a000&limit=2").await.expect(200);
    assert_eq!(ids(&first), [given[2], given[1]]);
    let rest = server.get(&format!("/api/v1/jobs?id=0199a000&limit=2&cursor={}", given[1])).await.expect(200);
    assert_eq!((ids(&rest), &rest["next"]), (vec![given[0].to_owned()], &Value::Null));
    for bad in ["019", "zzzz", ""] {
        server.get(&format!("/api/v1/jobs?id={bad}")).await.expect(422);
    }
}

#[tokio::test]
async fn pages_show_every_job_once_while_more_come_in() {
    let server = Server::start().await;
    let mut all = Vec::new();
    for _ in 0..25 {
        let job = server.post("/api/v1/jobs", json!({})).await.expect(201);
        all.push(job["id"].as_str().unwrap().to_owned());
    }
    all.sort();
    all.reverse();
    let (mut seen, mut path) = (Vec::new(), "/api/v1/jobs?limit=10".to_owned());
    loop {
        let page = server.get(&path).await.expect(200);
        seen.extend(ids(&page));
        server.post("/api/v1/jobs", json!({})).await.expect(201);
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/api/v1/jobs?limit=10&cursor={next}");
    }
    assert_eq!(seen, all);
    for bad in ["limit=0", "limit=1001", "cursor=x", "state=odd", "facet=x"] {
        server.get(&format!("/api/v1/jobs?{bad}")).await.expect(422);
    }
    server.get("/api/v1/jobs?unknown=1").await.expect(400);
}

#[tokio::test]
async fn jobs_are_found_by_the_beginning_of_their_name_page_by_page() {
    let server = Server::start().await;
    let submit =
        async |body: Value| server.post("/api/v1/jobs", body).await.expect(201)["id"].as_str().unwrap().to_owned();
    let mut made = Vec::new();
    for name in ["nightly 1", "nightly.2", "weekly", "nightly.2", "Nightly", "nightly é"] {
        made.push(submit(json!({"name": name})).await);
    }
    submit(json!({})).await;
    let shown = server.get(&format!("/api/v1/jobs/{}", made[0])).await.expect(200);
    assert_eq!(shown["name"], "nightly 1");
    let expected = [&made[3], &made[1], &made[5], &made[0]];
    let (mut seen, mut path) = (Vec::new(), "/api/v1/jobs?name=nightly&limit=1".to_owned());
    loop {
        let page = server.get(&path).await.expect(200);
        seen.extend(ids(&page));
        let Some(next) = page["next"].as_str() else { break };
        let next: String = next.bytes().map(|byte| format!("%{byte:02X}")).collect();
        path = format!("/api/v1/jobs?name=nightly&limit=1&cursor={next}");
    }
    assert_eq!(seen.iter().collect::<Vec<_>>(), expected, "by name from Z to A, and the newest of one name first");
    let find = async |query: &str| ids(&server.get(&format!("/api/v1/jobs?{query}")).await.expect(200));
    assert_eq!(find("name=nightly.2").await, [made[3].clone(), made[1].clone()]);
    assert_eq!(find("name=nightly&state=completed").await, Vec::<String>::new());
    assert_eq!(find("name=Night&state=pending").await, [made[4].clone()]);
    let long = "x".repeat(201);
    for bad in ["name=", "name=a%07", "name=n&id=0199", "name=n&cursor=x", &format!("name={long}"), "facet=:nightly.2"]
    {
        server.get(&format!("/api/v1/jobs?{bad}")).await.expect(422);
    }
    for (name, why) in [(long.as_str(), "201 characters; at most 200"), ("", "empty"), ("a\u{7f}", "control character")]
    {
        let problem = server.post("/api/v1/jobs", json!({"name": name})).await.expect(422);
        assert_eq!(problem["field"], "name");
        assert!(problem["detail"].as_str().unwrap().contains(why), "{problem}");
    }
    submit(json!({"name": "é".repeat(200)})).await;
    let (first, again) = (json!({"name": "a", "idempotency_key": "k"}), json!({"name": "b", "idempotency_key": "k"}));
    submit(first).await;
    server.post("/api/v1/jobs", again).await.expect(422);
}

/// Draws texts of all kinds, most of them unpleasant.
fn odd_texts(count: usize) -> Vec<String> {
    let pieces = [
        "a", "Z", "0", " ", "\n", "\r", "\0", "\t", "\u{7f}", "\u{85}", "'", "\"", "\\", "/", "%", "_", ";", "--",
        "$1", "?", "<script>", "{{", "../", "é", "e\u{301}", "\u{202e}", "\u{200b}", "😀", "\u{feff}", "\u{fffd}",
        "data: x", ":", "@", ",",
    ];
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % below as u64) as usize
    };
    (0..count).map(|_| (0..1 + draw(6)).map(|_| pieces[draw(pieces.len())]).collect()).collect()
}

#[tokio::test]
async fn any_text_comes_back_as_it_was_or_is_refused() {
    let server = Server::start().await;
    let (mut taken, mut refused) = (0, 0);
    for text in odd_texts(400) {
        let job =
            json!({"tags": [text], "facets": {text.clone(): text}, "payload": {"t": text}, "retry": {"attempts": 1}});
        let answer = server.post("/api/v1/jobs", job).await;
        if answer.status == 422 {
            assert!(text.chars().any(char::is_control), "{text:?} was refused");
            refused += 1;
            continue;
        }
        taken += 1;
        let id = answer.expect(201)["id"].as_str().unwrap().to_owned();
        let claimed = server.work("/api/v1/leases/claim", json!({"worker": text, "tags": [text]})).await.expect(200);
        let report = json!({"lease": claimed["leases"][0]["lease"], "message": text});
        server.work("/api/v1/leases/fail", report).await.expect(200);
        let shown = server.get(&format!("/api/v1/jobs/{id}")).await.expect(200);
        assert_eq!(shown["tags"], json!([text]));
        assert_eq!(shown["facets"], json!({text.clone(): text}));
        assert_eq!(
            (&shown["payload"]["t"], &shown["error"]["message"], &shown["worker"]),
            (&json!(text), &json!(text), &json!(text))
        );
        if !text.contains(':') {
            let facet: String = format!("{text}:{text}").bytes().map(|byte| format!("%{byte:02X}")).collect();
            let found = server.get(&format!("/api/v1/jobs?facet={facet}&limit=1000")).await.expect(200);
            assert!(ids(&found).contains(&id), "{text:?} is not found by its facet");
        }
    }
    assert!(taken > 100 && refused > 100, "{taken} and {refused}");
}

#[tokio::test]
async fn a_page_of_large_rows_ends_early_and_its_answer_takes_room_until_it_is_read() {
    use axum::body::Body;
    use http::Method;
    let bodies = windlass_server::room::Limits { total: 1 << 30, share: 8 << 20 };
    let server = Server::with(windlass_server::Options { bodies, ..Default::default() }).await;
    for at in 0..30 {
        let schedule = json!({"every_ms": 60_000, "paused": true, "job": {"payload": "x".repeat(400_000)}});
        server.put(&format!("/api/v1/schedules/s{at:02}"), schedule).await.expect(200);
    }
    let (mut seen, mut pages, mut cursor) = (Vec::new(), 0, String::new());
    loop {
        let page = server.get(&format!("/api/v1/schedules?limit=1000{cursor}")).await.expect(200);
        pages += 1;
        seen.extend(page["items"].as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap().to_owned()));
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    let all: Vec<String> = (0..30).map(|at| format!("s{at:02}")).collect();
    assert!(seen == all && pages > 1, "{pages} pages: {seen:?}");
    let open = async || {
        let request = Server::request(Role::Viewer, Method::GET, "/api/v1/schedules?limit=1000");
        server.open(request.body(Body::empty()).unwrap()).await
    };
    let mut unread = Vec::new();
    let refused = loop {
        let answer = open().await;
        if answer.status() != 200 {
            break answer.status();
        }
        unread.push(answer);
        assert!(unread.len() < 20, "answers that nobody reads have no bound");
    };
    assert_eq!(refused, 429);
    drop(unread);
    assert_eq!(server.app.rooms.taken(), 0);
    assert_eq!(open().await.status(), 200);
}
