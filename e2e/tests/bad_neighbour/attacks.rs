//! What the bad tenant does: each is one call, repeated by several callers until the attack is over.

use super::{Caller, PIECE, PIECE_EVERY};
use serde_json::{Value, json};
use std::{io::Write, net::TcpStream, thread, time::Duration};
use uuid::Uuid;
use windlass_e2e::Plain;

pub type Blow = fn(&Caller, &mut Option<Plain>, usize) -> Option<(u16, Value)>;

/// Two callers for each but the bodies and the waiters, who are many by themselves.
pub const BLOWS: [(&str, usize, Blow); COUNT] = [
    ("templates", 2, templates),
    ("schemas", 2, schemas),
    ("expressions", 2, expressions),
    ("large workflows", 2, large_workflow),
    ("bodies", 60, half_a_body),
    ("lanes", 2, lanes),
    ("files", 2, files),
    ("waiters", 300, waiter),
    ("growing expressions", 2, growing_expression),
    ("chains", 2, chain),
    ("megabytes", 2, megabyte),
    ("sessions", 2, session),
    ("definitions", 2, definition),
    ("devices", 2, device),
];
pub const COUNT: usize = 14;

fn run(place: &Caller, line: &mut Option<Plain>, steps: Value, input: Value) -> Option<(u16, Value)> {
    let body = json!({"definition": {"steps": steps}, "input": input}).to_string();
    place.call(line, "POST", "runs", &body)
}

fn templates(place: &Caller, line: &mut Option<Plain>, _: usize) -> Option<(u16, Value)> {
    let payload = "${{input}}".repeat(8_000);
    run(place, line, json!({"boom": {"payload": {"text": payload}}}), json!("x".repeat(1 << 20)))
}

fn schemas(place: &Caller, line: &mut Option<Plain>, at: usize) -> Option<(u16, Value)> {
    let schema = match at % 2 {
        0 => json!({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [
            {"type": "object", "properties": {"n": {"$ref": "#/$defs/a"}}, "required": ["x"]},
            {"type": "object", "properties": {"n": {"$ref": "#/$defs/a"}}, "required": ["y"]}]}}}),
        _ => {
            json!({"allOf": (0..100).map(|n| json!({"pattern": format!("(\\pL{{30}}){{6}}[k]{n}")})).collect::<Vec<_>>()})
        }
    };
    let name = format!("bad{}", at % 2);
    place.call(line, "PUT", &format!("definitions/{name}"), &json!({"payload_schema": schema}).to_string())?;
    let nested = (0..20).fold(json!({}), |inner, _| json!({"n": inner}));
    place.call(line, "POST", "jobs", &json!({"definition": name, "payload": nested}).to_string())
}

fn expressions(place: &Caller, line: &mut Option<Plain>, _: usize) -> Option<(u16, Value)> {
    let items: Vec<String> = (0..300).map(|n| "é".repeat(n)).collect();
    let condition = "input.all(x, x.matches('(\\\\pL{30}){6}[k]') || true)";
    run(place, line, json!({"slow": {"if": condition, "payload": {}}}), json!(items))
}

fn large_workflow(place: &Caller, line: &mut Option<Plain>, _: usize) -> Option<(u16, Value)> {
    let mut source = String::from("steps:\n");
    for n in 0..9_000 {
        source.push_str(&format!("  s{n}:\n    run: echo {}\n", "x".repeat(340)));
    }
    place.call(line, "PUT", "workflows/large?dry_run=true", &source)
}

/// Ten megabytes are promised, and nearly as many come.
fn half_a_body(place: &Caller, _: &mut Option<Plain>, _: usize) -> Option<(u16, Value)> {
    let mut stream = TcpStream::connect(&place.address).ok()?;
    stream.set_write_timeout(Some(Duration::from_secs(1))).ok()?;
    let (address, token, length) = (&place.address, &place.token, 10 << 20);
    write!(
        stream,
        "POST {} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nContent-Length: {length}\r\n\r\n",
        place.path("jobs/batch")
    )
    .ok()?;
    let piece = vec![b' '; PIECE];
    for _ in 1..length / PIECE {
        stream.write_all(&piece).ok()?;
        thread::sleep(PIECE_EVERY); // The body trickles.
    }
    thread::sleep(Duration::from_millis(500)); // And never ends.
    Some((0, Value::Null))
}

fn lanes(place: &Caller, line: &mut Option<Plain>, at: usize) -> Option<(u16, Value)> {
    let jobs: Vec<Value> =
        (0..1_000).map(|n| json!({"tags": [format!("l{at}-{n}")], "pending_timeout_ms": 2_000})).collect();
    place.call(line, "POST", "jobs/batch", &json!({"jobs": jobs}).to_string())
}

fn files(place: &Caller, line: &mut Option<Plain>, at: usize) -> Option<(u16, Value)> {
    place.call(line, "POST", &format!("artifacts?name=f{at}"), &"f".repeat(2 << 20))
}

/// Somebody who waits for a run that waits for an event, again and again.
fn waiter(place: &Caller, line: &mut Option<Plain>, at: usize) -> Option<(u16, Value)> {
    let run = match at.is_multiple_of(1_000_000) {
        true => run(place, line, json!({"idle": {"wait": {"event": "never"}}}), Value::Null)?.1,
        false => place.call(line, "GET", "runs?state=running&limit=1", "")?.1["items"][0].take(),
    };
    place.call(line, "GET", &format!("runs/{}/wait?wait_ms=1000", run["id"].as_str()?), "")
}

/// Functions of neops' expressions that would make a gigabyte of a few hundred kilobytes.
const GROWING: [&str; 3] = [
    "{{ parameters.q|to_string([@])|to_string([@])|to_string([@])|to_string([@])|to_string([@])|to_string([@])|to_string([@])|to_string([@])|to_string([@])|to_string([@])|to_string([@])|to_string([@])|to_string([@])|to_string([@])|to_string([@]) }}",
    "{{ length(join(parameters.g, parameters.q)) }}",
    "{{ parameters.q[1::2147483647] }}",
];

/// The block of the workflows for `growing_expression`.
pub fn register(worker: &mut Plain) {
    let block = json!({"package": "fb", "name": "look", "majorVersion": 1, "minorVersion": 0, "patchVersion": 0,
        "description": "", "fbType": "check", "runOn": "global", "isPure": true,
        "parameterJsonSchema": {"type": "object"}, "resultDataJsonSchema": {"type": "object"}});
    let (status, answer) = worker.call("POST", "/function-blocks/register", &block);
    assert_eq!(status, 201, "{answer}");
}

/// The workflows themselves, published by an operator.
pub fn publish(people: &mut Plain) {
    for (at, expression) in GROWING.into_iter().enumerate() {
        let step = json!({"type": "functionBlock", "label": "a", "functionBlock": "fb/look:1", "parameters": {"t": expression}});
        let workflow = json!({"type": "workflow", "label": "w", "name": format!("grow{at}"), "package": "wf", "majorVersion": 1,
            "minorVersion": 0, "patchVersion": 0, "seedEntity": "global", "steps": [step]});
        let (status, answer) = people.call("POST", "/workflow-definition/publish", &json!({ "workflow": workflow }));
        assert_eq!(status, 201, "{answer}");
    }
}

fn growing_expression(place: &Caller, line: &mut Option<Plain>, at: usize) -> Option<(u16, Value)> {
    let parameters = json!({"q": vec!["x"; 50_000], "g": "g".repeat(200_000)});
    let workflow = format!("wf/grow{}:1", at % GROWING.len());
    let body = json!({"workflow": workflow, "executeOnParameters": {"ids": []}, "parameters": parameters});
    place.send(line, "POST", "/workflow-execution", &body.to_string())
}

/// Two thousand jobs, each after the one before, and the first is cancelled.
fn chain(place: &Caller, line: &mut Option<Plain>, _: usize) -> Option<(u16, Value)> {
    let ids: Vec<Uuid> = (0..2_000).map(|_| Uuid::now_v7()).collect();
    let job = |at: usize| match at {
        0 => json!({"id": ids[0], "tags": ["nobody"]}),
        _ => json!({"id": ids[at], "after": [ids[at - 1]]}),
    };
    for piece in 0..2 {
        let jobs: Vec<Value> = (piece * 1_000..(piece + 1) * 1_000).map(job).collect();
        place.call(line, "POST", "jobs/batch", &json!({ "jobs": jobs }).to_string())?;
    }
    place.call(line, "POST", &format!("jobs/{}/cancel", ids[0]), "")
}

/// Jobs that nobody takes, until the namespace stores as much as it may.
fn megabyte(place: &Caller, line: &mut Option<Plain>, _: usize) -> Option<(u16, Value)> {
    place.call(line, "POST", "jobs", &json!({"tags": ["nobody"], "payload": "m".repeat(1_000_000)}).to_string())
}

/// A code to sign in with, and every other time a session from it.
fn session(place: &Caller, line: &mut Option<Plain>, at: usize) -> Option<(u16, Value)> {
    let made = place.send(line, "POST", "/api/v1/session/codes", "")?;
    match made.1["code"].as_str() {
        Some(code) if at.is_multiple_of(2) => {
            place.send(line, "POST", "/api/v1/session", &json!({ "code": code }).to_string())
        }
        _ => Some(made),
    }
}

/// A definition, and a job of it that ends at once.
fn definition(place: &Caller, line: &mut Option<Plain>, at: usize) -> Option<(u16, Value)> {
    let name = format!("d{at}");
    place.call(line, "PUT", &format!("definitions/{name}"), "{}")?;
    let (_, made) = place.call(line, "POST", "jobs", &json!({"definition": name, "tags": ["nobody"]}).to_string())?;
    place.call(line, "POST", &format!("jobs/{}/cancel", made["id"].as_str()?), "")
}

/// A device that begins to log in and never comes back.
fn device(place: &Caller, line: &mut Option<Plain>, _: usize) -> Option<(u16, Value)> {
    place.send(line, "POST", "/auth/cli-login", "")
}
