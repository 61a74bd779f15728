//! Changes as the engine sees them: ordinary commands, written as a whole, in one namespace.

use crate::support::{ANN, Makes, engine, part, products};
use std::sync::Arc;
use windlass_core::{
    Namespace, What,
    commands::{
        claim::{Claim, Offer, Unknown},
        complete::Complete,
        holder::Holder,
        holds::Holds,
        submit::{NewJob, Submit},
    },
};
use windlass_engine::{Engine, ids, store::JobQuery};
use windlass_product::{
    Error, Nothing, Products, Shared,
    bom::{self, Mode, NewRow},
    change::{self, Sent},
    graph::ItemGraph,
    items::{self, Wanted},
    revisions::{self, NewRevision},
    rules::features::{
        NodeKind, Validation,
        sync::{NewNode, Writer},
    },
};

async fn jobs(engine: &Engine) -> usize {
    engine.store().jobs(&JobQuery { limit: 100, ..JobQuery::default() }).await.unwrap().len()
}

fn graph(kind: &str, hash: &str) -> Sent {
    let node = NewNode {
        key: "n".into(),
        kind: Some(NodeKind::new(kind).unwrap()),
        properties_hash: Some(Some(hash.into())),
        ..NewNode::default()
    };
    Sent { revision: None, nodes: vec![node], edges: Vec::new(), partial: false }
}

async fn seen(products: &Products, name: &str) -> Option<(String, Validation)> {
    let asked = ItemGraph::live(products, name).await.unwrap()?;
    let node = asked.graph.node(asked.key("n").unwrap());
    Some((node.kind.name().to_owned(), node.state))
}

#[tokio::test]
async fn a_change_and_the_jobs_it_sets_off_are_written_together_or_not_at_all() {
    let engine = engine().await;
    let new = NewRevision::default();
    let fires = products(&engine, "shop", Makes::fresh(2));
    part(&fires, "A").await;
    let done = revisions::create(&fires, &ANN.into(), "A", &new).await.unwrap();
    assert_eq!((done.revision.number, done.fired.len(), jobs(&engine).await), (2, 2, 2));
    let quiet = NewRevision { quiet: true, ..NewRevision::default() };
    assert_eq!(revisions::create(&fires, &ANN.into(), "A", &quiet).await.unwrap().fired.len(), 0);
    // A job that is there already is refused, and with it everything else.
    let refused = products(&engine, "shop", Makes::again(done.fired[0].job));
    let Err(Error::Engine(error)) = revisions::create(&refused, &ANN.into(), "A", &new).await else {
        panic!("refused")
    };
    assert!(error.to_string().contains("exists already"), "{error}");
    let item = items::find(&refused, "A").await.unwrap().value;
    assert_eq!((item.current_revision, jobs(&engine).await), (3, 2));
    assert!(revisions::find(&refused, &item, 4).await.is_err());
}

#[tokio::test]
async fn a_graph_lands_only_while_the_lease_it_is_written_under_is_valid() {
    let engine = engine().await;
    let shop = products(&engine, "shop", Arc::new(Nothing));
    part(&shop, "A").await;
    let namespace = shop.namespace().clone();
    engine.run(Submit { namespace: namespace.clone(), job: NewJob::new(ids::job_id()) }).await.unwrap();
    let claim = Claim {
        namespace: namespace.clone(),
        worker: windlass_core::WorkerId::new("w").unwrap(),
        offer: Offer::Tags(windlass_core::Tags::default()),
        secrets: ids::secrets(1),
        lease: None,
        unknown: Unknown::Create(Default::default()),
        principal: None,
        request_id: None,
    };
    let leased = engine.claim(claim, std::time::Duration::ZERO).await.unwrap();
    let holder = Holder::lease(&namespace, leased[0].lease);
    let holds = || Some(Holds { holder: holder.clone() });
    change::write(&shop, "A", &graph("pad", "1"), Writer::Runner, holds()).await.unwrap();
    engine.run(Complete { holder: holder.clone(), result: Default::default() }).await.unwrap();
    let late = change::write(&shop, "A", &graph("pad", "2"), Writer::Runner, holds()).await;
    assert!(late.is_err());
    let asked = ItemGraph::find(&shop, "A", None).await.unwrap();
    assert_eq!(asked.graph.node(0).properties_hash.as_deref(), Some("1"));
}

#[tokio::test]
async fn namespaces_have_items_graphs_and_events_of_their_own() {
    let engine = engine().await;
    let shared: Arc<Shared> = Arc::default();
    let in_namespace =
        |name| Products::new(engine.clone(), Namespace::new(name).unwrap(), shared.clone(), Arc::new(Nothing));
    let (left, right) = (in_namespace("left"), in_namespace("right"));
    for products in [&left, &right] {
        part(products, "A").await;
        part(products, "B").await;
    }
    // The same part and revision, other graphs: neither the store nor the copies in memory mix them up.
    change::write(&left, "A", &graph("weld", "1"), Writer::User, None).await.unwrap();
    assert_eq!(seen(&right, "A").await, None);
    change::write(&right, "A", &graph("pad", "1"), Writer::User, None).await.unwrap();
    change::mark_dirty(&right, "A", "n").await.unwrap();
    assert_eq!(seen(&left, "A").await, Some(("weld".into(), Validation::Clean)));
    assert_eq!(seen(&right, "A").await, Some(("pad".into(), Validation::Dirty)));
    // What would be a cycle is one only where the other row is.
    bom::write(&left, "A", "B", &NewRow::default(), Mode::Add).await.unwrap();
    bom::write(&right, "B", "A", &NewRow::default(), Mode::Add).await.unwrap();
    assert!(bom::write(&left, "B", "A", &NewRow::default(), Mode::Add).await.is_err());
    assert!(items::delete(&left, "B").await.is_err(), "it is in A");
    items::delete(&right, "B").await.unwrap();
    let of = async |products: &Products| items::page(products, &Wanted::default(), None, 10).await.unwrap().0.len();
    assert_eq!((of(&left).await, of(&right).await), (2, 1));
    let page = engine.store().events_after(0, 1_000).await.unwrap();
    let told = |name: &str, wanted: &str| {
        let namespace = Namespace::new(name).unwrap();
        let topic = |what: &What| matches!(what, What::Told { topic, .. } if **topic == *wanted);
        page.events.iter().filter(|(_, event)| event.namespace == namespace && topic(&event.what)).count()
    };
    assert_eq!((told("left", "item.created"), told("left", "item.deleted")), (2, 0));
    assert_eq!((told("right", "item.created"), told("right", "item.deleted")), (2, 1));
}
