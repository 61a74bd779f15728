use super::graph::node;
use std::sync::Arc;
use windlass_core::{Refusal, Timestamp};
use windlass_product::rules::features::{
    EdgeKind, NodeKind, Seen,
    graph::{CrossEdge, Direction, Edge, Graph},
    sync,
    world::World,
};

/// Nodes by key, edges by key, sources elsewhere as `part/key`.
fn graph(world: &World, keys: &[&str], edges: &[(&str, &str)], cross: &[(&str, &str)]) -> Arc<Graph> {
    let nodes: Vec<sync::NewNode> = keys
        .iter()
        .map(|key| sync::NewNode {
            key: (*key).into(),
            kind: NodeKind::new("pad").ok(),
            properties_hash: Some(Some("1".into())),
            ..sync::NewNode::default()
        })
        .collect();
    let near = edges.iter().map(|(source, target)| sync::NewEdge {
        part: None,
        source: (*source).into(),
        target: (*target).into(),
        kind: EdgeKind::DependsOn,
    });
    let far = cross.iter().map(|(place, target)| {
        let (part, source) = place.split_once('/').unwrap();
        sync::NewEdge {
            part: Some(part.into()),
            source: source.into(),
            target: (*target).into(),
            kind: EdgeKind::DependsOn,
        }
    });
    let edges: Vec<_> = near.chain(far).collect();
    let outside = |part: &str, key: &str| world.seen(part, key);
    Arc::new(sync::replace(None, &nodes, &edges, sync::Writer::User, &outside, Timestamp(1)).unwrap().0)
}

fn states(world: &World, part: &str) -> Vec<&'static str> {
    world.get(part).unwrap().nodes().map(|node| node.state.name()).collect()
}

fn three() -> World {
    let mut world = World::default();
    let part = graph(&world, &["pad", "sketch"], &[("sketch", "pad")], &[]);
    world.put(&"part".into(), part);
    let sub = graph(&world, &["face", "other"], &[], &[("part/pad", "face")]);
    world.put(&"sub".into(), sub);
    let top = graph(&world, &["mate", "ghost"], &[], &[("sub/face", "mate"), ("nowhere/x", "ghost")]);
    world.put(&"top".into(), top);
    world
}

#[test]
fn a_change_goes_through_items_and_back_and_touches_nothing_beside_its_way() {
    let mut world = three();
    let part: Arc<str> = "part".into();
    let change = |world: &mut World, hash: &str| {
        let mut graph = (**world.get("part").unwrap()).clone();
        let new = sync::NewNode {
            key: "sketch".into(),
            properties_hash: Some(Some(hash.into())),
            ..sync::NewNode::default()
        };
        let report = sync::update(&mut graph, &[new], &|_, _| Seen::missing(), Timestamp(2)).unwrap();
        world.put(&part, Arc::new(graph));
        world.spread(&part, &report.visible, Timestamp(2))
    };
    let spread = change(&mut world, "2");
    assert_eq!(states(&world, "part"), ["dirty", "dirty"]);
    assert_eq!((states(&world, "sub"), states(&world, "top")), (vec!["dirty", "clean"], vec!["clean", "dirty"]));
    let dirty: Vec<String> = spread.dirty.iter().map(|(part, key)| format!("{part}/{key}")).collect();
    assert_eq!(dirty, ["sub/face", "top/mate"]);
    assert_eq!(world.get("sub").unwrap().node(1).updated_at, Timestamp(1));
    let spread = change(&mut world, "1");
    assert!(spread.dirty.is_empty() && spread.changed.len() == 2);
    assert_eq!((states(&world, "sub"), states(&world, "top")), (vec!["clean"; 2], vec!["clean"; 2]));
    let spread = change(&mut world, "1");
    assert!(spread.visited.is_empty(), "nothing changed, nobody was asked");
}

#[test]
fn a_cone_crosses_items_both_ways() {
    let world = three();
    let cone = |part: &str, key: &str, direction| -> Vec<String> {
        let part: Arc<str> = part.into();
        let at = world.get(&part).unwrap().find(key).unwrap();
        let found = world.cone(&part, at, direction, None).into_iter();
        found.map(|((part, at), depth)| format!("{part}/{} {depth}", world.get(&part).unwrap().node(at).key)).collect()
    };
    let forward = ["part/sketch 0", "part/pad 1", "sub/face 2", "top/mate 3"];
    assert_eq!(cone("part", "sketch", Direction::Forward), forward);
    let backward = ["top/mate 0", "sub/face 1", "part/pad 2", "part/sketch 3"];
    assert_eq!(cone("top", "mate", Direction::Backward), backward);
}

#[test]
fn a_cycle_by_way_of_other_items_is_refused() {
    let world = three();
    let part: Arc<str> = "part".into();
    let cross = |source: &str, target| CrossEdge {
        part: "top".into(),
        source: source.into(),
        target,
        kind: EdgeKind::DependsOn,
    };
    let nodes = || vec![node("pad"), node("sketch")];
    let edge = Edge { source: 1, target: 0, kind: EdgeKind::DependsOn };
    let closed = Graph::new(nodes(), vec![edge], vec![cross("mate", 1)]).unwrap();
    let Err(Refusal::Cycle { path }) = world.check_cycle(&part, &closed) else { panic!("a cycle") };
    assert_eq!(path, ["part/pad", "part/sketch", "part/pad"]);
    let aside = Graph::new(nodes(), vec![edge], vec![cross("ghost", 1)]).unwrap();
    assert!(world.check_cycle(&part, &aside).is_ok(), "items may depend on each other where nodes do not");
}
