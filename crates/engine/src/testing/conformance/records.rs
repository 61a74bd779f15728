//! Records, as they are listed.

use super::{
    super::{Bench, Fresh},
    build::{accept, default, ns},
};
use crate::store::{RecordQuery, Store};
use std::sync::Arc;
use windlass_core::{
    Command, Facet, Namespace, RecordKey,
    commands::records::{Expect, PutRecord},
};

fn put(namespace: &Namespace, kind: &str, key: &str, parent: Option<&str>, facets: Vec<Facet>) -> Command {
    let key = RecordKey { namespace: namespace.clone(), kind: kind.into(), key: key.into() };
    let value = format!("{{\"key\":{:?}}}", key.key).into();
    let parent = parent.map(Into::into);
    PutRecord { key, expect: Expect::Nothing, parent, value, facets, expires_at: None }.into()
}

fn all_of(kind: &str) -> RecordQuery {
    RecordQuery { namespace: default(), kind: kind.into(), parent: None, facet: None, after: None, limit: 1_000 }
}

async fn keys(store: &dyn Store, query: &RecordQuery) -> Vec<Arc<str>> {
    let found = store.records(query).await.expect("the store answers");
    let count = store.count_records(query).await.expect("the store answers");
    // A count goes on over pages.
    assert!(count == found.len() || found.len() == query.limit && count > query.limit, "{count} of {query:?}");
    found.into_iter().map(|record| record.key.key).collect()
}

/// By key, byte by byte: not by what some language holds to be the alphabet.
pub async fn order_and_pages(fresh: Fresh) {
    let mut bench = Bench::new(fresh);
    let mut names = vec!["b", "B", "a", "a-b", "a b", "aa", "é", "z", "Z", "10", "9", "~", "ß", "a\u{301}", "😀", "_"];
    let commands = names.iter().map(|name| put(&default(), "item", name, None, Vec::new())).collect();
    accept(&mut bench, commands).await;
    let others =
        vec![put(&ns("other"), "item", "x", None, Vec::new()), put(&default(), "items", "y", None, Vec::new())];
    accept(&mut bench, others).await;
    names.sort();
    assert_eq!(keys(&*bench.store, &all_of("item")).await, names.iter().map(|&n| n.into()).collect::<Vec<Arc<str>>>());
    for limit in [1, 3, 16, 17] {
        let (mut query, mut found) = (RecordQuery { limit, ..all_of("item") }, Vec::new());
        loop {
            let page = keys(&*bench.store, &query).await;
            assert!(page.len() <= limit);
            let Some(last) = page.last() else { break };
            query.after = Some(last.clone());
            found.extend(page);
        }
        assert_eq!(found, names.iter().map(|&name| name.into()).collect::<Vec<Arc<str>>>(), "with pages of {limit}");
    }
    let after = RecordQuery { after: Some("a z".into()), ..all_of("item") };
    assert_eq!(keys(&*bench.store, &after).await[0], "a-b".into(), "after a key that is not there");
    assert!(keys(&*bench.store, &all_of("ghost")).await.is_empty());
    for name in names {
        let key = RecordKey { namespace: default(), kind: "item".into(), key: name.into() };
        let found = bench.store.record(&key).await.expect("the store answers").expect("it is there");
        assert_eq!((found.key, found.version), (key, 1));
    }
    for (namespace, kind, key) in [(default(), "item", "y"), (ns("other"), "item", "a"), (default(), "it", "a")] {
        let key = RecordKey { namespace, kind: kind.into(), key: key.into() };
        assert_eq!(bench.store.record(&key).await.expect("the store answers"), None);
    }
}

/// By parent, by facet and by both; what was replaced is found by what it is now.
pub async fn filters(fresh: Fresh) {
    let mut bench = Bench::new(fresh);
    let facet = |value: &str| vec![Facet::new("room", value), Facet::new("user", "u")];
    let commands = vec![
        put(&default(), "item", "1", Some("p"), facet("a")),
        put(&default(), "item", "2", Some("p"), facet("b")),
        put(&default(), "item", "3", Some("q"), facet("a")),
        put(&default(), "item", "4", None, facet("a")),
        put(&default(), "item", "5", Some("p"), Vec::new()),
        put(&default(), "other", "6", Some("p"), facet("a")),
        put(&ns("other"), "item", "7", Some("p"), facet("a")),
    ];
    accept(&mut bench, commands).await;
    let find = async |bench: &Bench, parent: Option<&str>, facet: Option<(&str, &str)>, after: Option<&str>| {
        let query = RecordQuery {
            parent: parent.map(Into::into),
            facet: facet.map(|(name, value)| Facet::new(name, value)),
            after: after.map(Into::into),
            ..all_of("item")
        };
        keys(&*bench.store, &query).await.join(",")
    };
    assert_eq!(find(&bench, Some("p"), None, None).await, "1,2,5");
    assert_eq!(find(&bench, Some("p"), None, Some("1")).await, "2,5");
    assert_eq!(find(&bench, None, Some(("room", "a")), None).await, "1,3,4");
    assert_eq!(find(&bench, None, Some(("room", "a")), Some("1")).await, "3,4");
    assert_eq!(find(&bench, Some("p"), Some(("room", "a")), None).await, "1");
    assert_eq!(find(&bench, Some("p"), Some(("user", "u")), None).await, "1,2");
    assert_eq!(find(&bench, None, Some(("user", "a")), None).await, "");
    let moved = |key: &str, parent: Option<&str>, facets| {
        let Command::PutRecord(put) = put(&default(), "item", key, parent, facets) else { unreachable!("it is one") };
        Command::PutRecord(PutRecord { expect: Expect::Anything, ..put })
    };
    accept(&mut bench, vec![moved("1", Some("q"), facet("b")), moved("3", None, Vec::new())]).await;
    assert_eq!(find(&bench, Some("p"), None, None).await, "2,5");
    assert_eq!(find(&bench, Some("q"), None, None).await, "1");
    assert_eq!(find(&bench, None, Some(("room", "a")), None).await, "4");
    assert_eq!(find(&bench, None, Some(("room", "b")), None).await, "1,2");
    let record = bench.store.records(&all_of("item")).await.expect("the store answers").remove(0);
    assert_eq!((record.version, &*record.value), (2, "{\"key\":\"1\"}"));
    assert_eq!(record.facets, facet("b"));
}
