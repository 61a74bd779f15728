//! What stores and exports hold from before items were a crate of their own: `stored.jsonl` is from an export of that time.

use crate::support::{ANN, engine, products};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::sync::Arc;
use windlass_core::{
    Command, Facet, RecordKey,
    commands::all::All,
    commands::records::{Expect, PutRecord},
};
use windlass_product::{
    Nothing, Products, bom,
    change::{self, Sent},
    edits, files,
    graph::ItemGraph,
    graphs,
    items::{self, NewItem, Wanted},
    projects, records,
    records::Kind,
    revisions,
    rules::features::{
        Node, Validation,
        graph::{CrossEdge, Direction, Edge},
        sync::{NewNode, Writer},
    },
};

fn stored() -> Vec<Value> {
    include_str!("stored.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn text(value: &Value) -> Arc<str> {
    value.as_str().unwrap().into()
}

async fn restored() -> Products {
    let products = products(&engine().await, "silo", Arc::new(Nothing));
    let put = |line: &Value| -> Command {
        PutRecord {
            key: RecordKey {
                namespace: products.namespace().clone(),
                kind: text(&line["kind"]),
                key: text(&line["key"]),
            },
            expect: Expect::Nothing,
            parent: line.get("parent").map(text),
            value: text(&line["value"]),
            facets: line
                .get("facets")
                .map_or(Vec::new(), |all| serde_json::from_value::<Vec<Facet>>(all.clone()).unwrap()),
            expires_at: None,
        }
        .into()
    };
    let commands = stored().iter().map(put).collect();
    products.engine().run(All { commands }).await.unwrap();
    products
}

/// Reads all of a kind, and writes them as they were.
fn check<T: Serialize + DeserializeOwned>(kind: Kind<T>, all: &[Value]) {
    let of_kind: Vec<&Value> = all.iter().filter(|line| line["kind"] == kind.0).collect();
    assert!(!of_kind.is_empty(), "{} is not among them", kind.0);
    of_kind.iter().for_each(|line| same::<T>(line));
}

fn same<T: Serialize + DeserializeOwned>(line: &Value) {
    let value = line["value"].as_str().unwrap();
    assert_eq!(serde_json::to_string(&serde_json::from_str::<T>(value).unwrap()).unwrap(), value);
}

#[test]
fn records_of_earlier_versions_are_read_and_written_as_they_were() {
    let all = stored();
    check(records::ITEM, &all);
    check(records::ITEM_AGE, &all);
    check(records::REVISION, &all);
    check(records::PROJECT, &all);
    check(records::MEMBER, &all);
    check(records::COUNTER, &all);
    check(records::BOM, &all);
    check(records::BOM_EPOCH, &all);
    check(edits::SESSION, &all);
    check(graphs::LIVE, &all);
    check(files::FILE, &all);
    check(graphs::GRAPH, &all);
    let mut pieces = [0; 3];
    for line in all.iter().filter(|line| line["kind"] == graphs::GRAPH_PART.0) {
        let at = match line["key"].as_str().unwrap().rsplit('/').next().unwrap().as_bytes()[0] {
            b'n' => {
                same::<Vec<Node>>(line);
                0
            }
            b'e' => {
                same::<Vec<Edge>>(line);
                1
            }
            _ => {
                same::<Vec<CrossEdge>>(line);
                2
            }
        };
        pieces[at] += 1;
    }
    assert!(pieces.iter().all(|count| *count > 0), "{pieces:?}");
}

async fn states(products: &Products, part: &str) -> Vec<(String, Validation)> {
    let asked = ItemGraph::find(products, part, None).await.unwrap();
    asked.graph.nodes().map(|node| (format!("{} {}", node.key, node.kind.name()), node.state)).collect()
}

#[tokio::test]
async fn items_and_graphs_of_earlier_versions_go_on_where_they_were() {
    let products = restored().await;
    let car = items::find(&products, "CAR").await.unwrap().value;
    assert_eq!((car.current_revision, &*car.description, &*car.projects), (2, "A car", &["P1".to_owned()][..]));
    let (newest, _) = items::page(&products, &Wanted::default(), None, 10).await.unwrap();
    assert_eq!(newest.iter().map(|item| &*item.part_number).collect::<Vec<_>>(), ["F01-0001", "CAR"]);
    let history = revisions::page(&products, &car, u32::MAX, 10).await.unwrap();
    assert_eq!(history.iter().map(|revision| &*revision.comment).collect::<Vec<_>>(), ["second", ""]);
    assert_eq!(projects::members(&products, "P1").await.unwrap().len(), 1);
    assert_eq!(bom::below(&products, "CAR", 9).await.unwrap().flat("CAR").unwrap(), [("F01-0001".to_owned(), 4.0)]);
    assert_eq!(files::all(&products, &car, 2).await.unwrap()[0].name, "a/b.txt");
    let next = NewItem { category: Some("F01".into()), ..NewItem::default() };
    assert_eq!(items::create(&products, &ANN.into(), &next).await.unwrap().part_number, "F01-0002");

    use Validation::{Clean, Dirty};
    let part = |state| vec![("pad pad".to_owned(), state), ("sketch sketch".to_owned(), state)];
    let mate = |state| vec![("mate constraint".to_owned(), state)];
    assert_eq!((states(&products, "F01-0001").await, states(&products, "CAR").await), (part(Dirty), mate(Dirty)));
    let asked = ItemGraph::find(&products, "F01-0001", None).await.unwrap();
    let cone = asked.cone(&products, "sketch", Direction::Forward, None).await.unwrap();
    assert_eq!((cone.near.len(), &*cone.far[0].key), (2, "mate"));
    // Undone: the digests are those that were stored, so everything is clean again, in the other item too.
    let node = NewNode { key: "sketch".into(), properties_hash: Some(Some("1".into())), ..NewNode::default() };
    let undo = Sent { revision: None, nodes: vec![node], edges: Vec::new(), partial: true };
    change::write(&products, "F01-0001", &undo, Writer::User, None).await.unwrap();
    assert_eq!((states(&products, "F01-0001").await, states(&products, "CAR").await), (part(Clean), mate(Clean)));
}
