//! Recorded exchanges of each dialect: what its clients send, and what they are answered.
//!
//! A file in `golden/` is a conversation. `>>>` begins a request: method, path, and whose token goes with it; then its body. `<<<`
//! begins the answer: status and content type; then its body, JSON in a fixed order. Ids and secrets differ from run to run: they
//! stand as `<id 1>`, `<token 2>` where they first appear, and later requests name them so. `>>> WAIT 5` lets seconds go by.
//!
//! Run with `WINDLASS_REWRITE=1` to write the answers anew, and read the difference before you commit it.

use crate::support::{Answer, Server, token};
use http::{Method, Request, header};
use serde_json::Value;
use std::{fmt::Write, fs, path::Path};
use windlass_core::{Millis, Timestamp, principal::Role};
use windlass_server::{Options, config::values::Values, dialects::silo::settings::silo_jobs};

/// Fields whose values are drawn anew each time.
const DRAWN: [&str; 7] = ["lease_id", "request_id", "token", "token_prefix", "access_token", "secret", "code"];
const NOON: Timestamp = Timestamp(1_794_744_000_000);

#[tokio::test]
async fn the_recorded_exchanges_of_every_dialect_are_answered_as_recorded() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let told: Vec<String> = files.iter().map(|file| file.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    for dialect in windlass_server::dialects::ALL {
        assert!(told.contains(&dialect.name()), "no exchange of {} is recorded", dialect.name());
    }
    for file in files {
        compare(&file).await;
    }
}

async fn compare(file: &Path) {
    let recorded = fs::read_to_string(file).unwrap();
    let now = replay(&recorded).await;
    if std::env::var_os("WINDLASS_REWRITE").is_some() {
        fs::write(file, now).unwrap();
        return;
    }
    let differ = recorded.lines().zip(now.lines()).enumerate().find(|(_, (recorded, now))| recorded != now);
    if let Some((at, (recorded, now))) = differ {
        panic!("{}:{}: recorded {recorded:?}, now {now:?}", file.display(), at + 1);
    }
    assert_eq!(recorded.lines().count(), now.lines().count(), "{}", file.display());
}

/// The conversation again, with the answers of today.
async fn replay(recorded: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("export.yaml"), include_str!("../../../examples/silo/part-export-step.yaml")).unwrap();
    let values = Values::default().with(silo_jobs, folder.path().to_str().unwrap());
    let server = Server::at(NOON, Options { values, ..Options::default() }).await;
    let (mut names, mut now) = (Names::default(), String::new());
    for part in recorded.split_inclusive('\n').collect::<Vec<_>>().chunk_by(|_, next| !next.starts_with(">>> ")) {
        let (asked, rest): (Vec<&str>, Vec<&str>) = split(part);
        asked.iter().for_each(|line| now.push_str(line));
        let Some(head) = asked.first().and_then(|line| line.strip_prefix(">>> ")) else { continue };
        if let Some(seconds) = head.strip_prefix("WAIT ") {
            server.pass(Millis::from_secs(seconds.trim().parse().unwrap())).await;
        } else {
            let (head, body) = (names.reveal(head), names.reveal(&asked[1..].concat()));
            assert!(!head.contains('<'), "{head} names what nobody was told yet:\n{now}");
            let answer = server.call(request(&head, &body)).await;
            now.push_str(&show(answer, &mut names));
        }
        now.push_str(&remarks(&rest));
    }
    now
}

/// The request, and what was recorded after it: nothing yet, if it is new.
fn split<'a>(part: &[&'a str]) -> (Vec<&'a str>, Vec<&'a str>) {
    let is_end = |line: &&str| line.starts_with("<<< ") || line.trim().is_empty();
    let is_request = part.first().is_some_and(|line| line.starts_with(">>> "));
    let end = part.iter().position(is_end).filter(|_| is_request).unwrap_or(part.len());
    (part[..end].to_vec(), part[end..].to_vec())
}

/// The empty line and the remarks before the next request.
fn remarks(rest: &[&str]) -> String {
    let from = rest.iter().position(|line| line.trim().is_empty()).unwrap_or(rest.len());
    rest[from..].concat()
}

fn request(head: &str, body: &str) -> Request<axum::body::Body> {
    let mut words = head.split_whitespace();
    let (method, path) = (words.next().unwrap().parse::<Method>().unwrap(), words.next().unwrap());
    let mut request = Request::builder().method(method).uri(path).header(header::HOST, "127.0.0.1:3000");
    let bearer = match words.next() {
        None => None,
        Some("admin") => Some(token(Role::Admin)),
        Some("editor") => Some(token(Role::Editor)),
        Some("viewer") => Some(token(Role::Viewer)),
        Some("worker") => Some(token(Role::Worker)),
        Some(own) => Some(own.to_owned()),
    };
    if let Some(bearer) = bearer {
        request = request.header(header::AUTHORIZATION, format!("Bearer {bearer}"));
    }
    if !body.is_empty() {
        request = request.header(header::CONTENT_TYPE, "application/json");
    }
    request.body(body.trim_end().to_owned().into()).unwrap()
}

fn show(answer: Answer, names: &mut Names) -> String {
    let kind = answer.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("");
    let mut shown = format!("<<< {} {kind}", answer.status.as_u16()).trim_end().to_owned() + "\n";
    for name in ["location", "retry-after", "allow", "preference-applied"] {
        if let Some(value) = answer.headers.get(name) {
            writeln!(shown, "{name}: {}", names.hide_ids(value.to_str().unwrap())).unwrap();
        }
    }
    if !answer.body.is_empty() {
        let body = match serde_json::from_slice::<Value>(&answer.body) {
            Ok(mut body) => {
                names.hide("", &mut body);
                serde_json::to_string_pretty(&body).unwrap()
            }
            Err(_) => names.hide_ids(&String::from_utf8_lossy(&answer.body)),
        };
        shown.push_str(&(body + "\n"));
    }
    shown
}

/// What differs from run to run, by the name that stands for it.
#[derive(Default)]
struct Names(Vec<(String, String)>);

impl Names {
    fn name(&mut self, kind: &str, value: &str) -> String {
        if let Some((_, name)) = self.0.iter().find(|(known, _)| known == value) {
            return name.clone();
        }
        let same = self.0.iter().filter(|(_, name)| name.starts_with(&format!("<{kind} "))).count();
        let name = format!("<{kind} {}>", same + 1);
        self.0.push((value.to_owned(), name.clone()));
        name
    }

    fn reveal(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (value, name)| text.replace(name, value))
    }

    fn hide(&mut self, field: &str, value: &mut Value) {
        match value {
            Value::String(text) if DRAWN.contains(&field) && !text.is_empty() => *text = self.name(field, text),
            Value::String(text) => *text = self.hide_ids(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.hide(field, item)),
            Value::Object(fields) => {
                let known: Vec<(String, Value)> = std::mem::take(fields).into_iter().collect();
                for (name, mut value) in known {
                    self.hide(&name, &mut value);
                    fields.insert(self.hide_ids(&name), value);
                }
            }
            _ => {}
        }
    }

    fn hide_ids(&mut self, text: &str) -> String {
        let (mut shown, mut rest) = (String::new(), text);
        while let Some(first) = rest.chars().next() {
            match rest.get(..36).filter(|word| is_id(word)) {
                Some(id) => {
                    shown.push_str(&self.name("id", id));
                    rest = &rest[36..];
                }
                None => {
                    shown.push(first);
                    rest = &rest[first.len_utf8()..];
                }
            }
        }
        shown
    }
}

fn is_id(word: &str) -> bool {
    word.bytes().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    })
}
