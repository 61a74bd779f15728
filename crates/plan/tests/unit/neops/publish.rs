use serde_json::{Value, json};
use std::collections::BTreeMap;
use windlass_plan::neops::{
    compare::Level,
    document::Document,
    publish::{Held, PublishOutcome, PublishRequest, Verdict, advice, decide, renumbered, wanted},
    reference::Version,
};

fn document(description: &str, blocks: &[&str]) -> Value {
    let step = |(at, block): (usize, &&str)| json!({"type": "functionBlock", "label": format!("s{at}"), "functionBlock": block});
    json!({"type": "workflow", "label": "w", "name": "n", "package": "p", "seedEntity": "global", "description": description,
        "steps": blocks.iter().enumerate().map(step).collect::<Vec<_>>()})
}

fn version(text: &str) -> Version {
    Version::parse(text).unwrap()
}

/// Versions with their documents; `!` before a version: it was deleted.
fn world(there: &[(&str, Value)]) -> (Vec<Held>, BTreeMap<Version, Value>) {
    let parse = |text: &str| (version(text.trim_start_matches('!')), text.starts_with('!'));
    let held = there.iter().map(|(text, _)| parse(text)).map(|(version, deleted)| Held { version, deleted }).collect();
    let documents = there.iter().map(|(text, document)| {
        let number = parse(text).0;
        (number, renumbered(document.clone(), number))
    });
    (held, documents.collect())
}

fn publish(
    there: &[(&str, Value)],
    declared: &str,
    document: &Value,
    increment: bool,
    accept: Option<Level>,
) -> Verdict {
    let (held, documents) = world(there);
    let declared = version(declared);
    let wanted = wanted(&held, declared);
    let documents = documents.into_iter().filter(|(version, _)| wanted.contains(version)).collect();
    let document = &renumbered(document.clone(), declared);
    decide(&PublishRequest { document, version: declared, increment, accept }, &held, &documents)
}

fn said(verdict: &Verdict) -> String {
    let name = |level: Option<Level>| level.map_or("-", Level::as_str);
    let outcome = match verdict.outcome {
        PublishOutcome::Published { accepted } => format!("published({})", name(accepted)),
        PublishOutcome::AcceptMismatch { sent, expected } => {
            format!("mismatch({} {})", sent.as_str(), expected.as_str())
        }
        other => format!("{other:?}"),
    };
    let Verdict { version, suggested, bump, floor, .. } = verdict;
    format!("{outcome} {version} bump={} floor={} try={suggested}", name(*bump), name(*floor))
}

#[test]
fn every_row_of_publishing() {
    use Level::{Minor, Patch};
    let (a, words) = (document("a", &["b/x:1"]), document("other words", &["b/x:1"]));
    let (more, other) = (document("a", &["b/x:1", "b/y:1"]), document("a", &["b/x:2"]));
    let one = [("1.0.0", a.clone())];
    let dead = [("!1.0.0", a.clone())];
    let lines = [("1.0.0", a.clone()), ("1.0.4", a.clone()), ("!1.3.0", a.clone()), ("2.0.0", a.clone())];
    /// What is published, as what, the document, with increment, what is accepted, and what comes of it.
    type Row<'a> = (&'a [(&'a str, Value)], &'a str, &'a Value, bool, Option<Level>, &'a str);
    let table: Vec<Row> = vec![
        (&[], "1.0.0", &a, false, None, "published(-) 1.0.0 bump=- floor=- try=1.0.0"),
        (&one, "1.0.0", &a, false, None, "Unchanged 1.0.0 bump=- floor=- try=1.0.0"),
        (&dead, "1.0.0", &a, false, None, "Revived 1.0.0 bump=- floor=- try=1.0.0"),
        (&one, "1.0.0", &words, false, None, "Taken 1.0.0 bump=- floor=- try=1.0.1"),
        (&dead, "1.0.0", &words, false, None, "Deleted 1.0.0 bump=- floor=- try=1.0.1"),
        (&one, "1.0.0", &more, false, None, "Taken 1.0.0 bump=- floor=- try=1.1.0"),
        (&one, "1.0.0", &other, false, None, "Taken 1.0.0 bump=- floor=- try=2.0.0"),
        (&one, "1.0.1", &words, false, None, "published(-) 1.0.1 bump=patch floor=patch try=1.0.1"),
        (&one, "1.0.1", &a, false, None, "published(-) 1.0.1 bump=patch floor=- try=1.0.1"),
        (&one, "1.0.1", &more, false, None, "BelowFloor 1.0.1 bump=patch floor=minor try=1.1.0"),
        (&one, "1.1.0", &more, false, None, "published(-) 1.1.0 bump=minor floor=minor try=1.1.0"),
        (&one, "1.1.0", &other, false, None, "BelowFloor 1.1.0 bump=minor floor=major try=2.0.0"),
        (&one, "2.0.0", &other, false, None, "published(-) 2.0.0 bump=- floor=- try=2.0.0"),
        (&one, "0.9.0", &other, false, None, "published(-) 0.9.0 bump=- floor=- try=0.9.0"),
        (&one, "1.0.1", &more, false, Some(Patch), "published(patch) 1.0.1 bump=patch floor=minor try=1.0.1"),
        (&one, "1.0.1", &words, false, Some(Patch), "published(-) 1.0.1 bump=patch floor=patch try=1.0.1"),
        (&one, "1.0.1", &more, false, Some(Minor), "mismatch(minor patch) 1.0.1 bump=patch floor=minor try=1.1.0"),
        (&one, "1.0.0", &words, true, None, "published(-) 1.0.1 bump=patch floor=patch try=1.0.1"),
        (&one, "1.0.0", &more, true, None, "published(-) 1.1.0 bump=minor floor=minor try=1.1.0"),
        (&one, "1.0.0", &a, true, None, "Unchanged 1.0.0 bump=- floor=- try=1.0.0"),
        (&one, "1.0.0", &other, true, None, "MajorRequiresExplicit 1.1.0 bump=minor floor=major try=2.0.0"),
        (&one, "1.0.0", &other, true, Some(Minor), "published(minor) 1.1.0 bump=minor floor=major try=1.1.0"),
        // Deleted versions keep their numbers, and are displaced by nobody.
        (&lines, "1.0.0", &words, true, None, "published(-) 1.0.5 bump=patch floor=patch try=1.0.5"),
        (&lines, "1.0.0", &more, false, None, "Taken 1.0.0 bump=- floor=- try=1.4.0"),
        (&lines, "1.5.0", &other, false, None, "BelowFloor 1.5.0 bump=minor floor=major try=3.0.0"),
    ];
    for (there, declared, document, increment, accept, expected) in table {
        let verdict = publish(there, declared, document, increment, accept);
        assert_eq!(said(&verdict), expected, "{declared} {increment} {accept:?}");
    }
    let backport = publish(&lines, "1.5.0", &other, false, None);
    assert_eq!(backport.alternative, Some(version("1.4.0")), "the older line can be gone on with");
    assert_eq!(publish(&one, "1.1.0", &other, false, None).alternative, None);
}

#[test]
fn conflicts_say_what_differs_from_the_published_document() {
    let verdict = publish(&[("1.0.0", document("a", &["b/x:1"]))], "1.0.0", &document("b", &["b/x:2"]), false, None);
    let codes: Vec<&str> = verdict.findings.iter().map(|finding| finding.code).collect();
    assert_eq!(codes, ["fieldChanged", "targetChanged"]);
}

#[test]
fn what_is_not_acted_on_is_said_with_its_place() {
    let mut value = renumbered(document("a", &["b/x:1"]), version("1.0.0"));
    value["delay"] = json!(5);
    value["steps"][0]["continueOnError"] = json!(true);
    let inner = json!({"type": "workflowReference", "label": "r", "workflow": "p/q:1", "strategy": "embed"});
    value["steps"]
        .as_array_mut()
        .unwrap()
        .push(json!({"type": "workflow", "label": "in", "name": "in", "steps": [inner]}));
    let found = advice(&Document::read(&value).unwrap());
    let paths: Vec<&str> = found.iter().map(|finding| finding.path.as_str()).collect();
    assert_eq!(paths, ["/delay", "/steps/0/continueOnError", "/steps/1/steps/0"]);
    assert!(found.iter().all(|finding| finding.level == Level::Advisory));
}
