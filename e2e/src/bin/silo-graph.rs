//! Times the feature graph over HTTP: how long large graphs take to write, and how long questions about many of them take.
//! One JSON object a line. `silo-graph ADDRESS [ITEMS] [NODES]`, an admin's token in SILO_ADMIN_TOKEN.
#![forbid(unsafe_code)]

use serde_json::{Value, json};
use std::time::Instant;
use windlass_e2e::Plain;

const ROUNDS: usize = 20;

/// Chains of 100 nodes side by side; the end of each of the first ten feeds the begin of the same chain of the next item.
fn graph(item: usize, nodes: usize, hash: &str) -> Value {
    let key = |at: usize| format!("n{at:05}");
    let chains = nodes / 100;
    let list: Vec<Value> = (0..nodes)
        .map(|at| {
            let own = if at == 0 { hash } else { "h" };
            json!({"node_key": key(at), "node_type": "pad", "properties_hash": own, "metadata": {"label": key(at)}})
        })
        .collect();
    let edges: Vec<Value> =
        (chains..nodes).map(|at| json!({"source_key": key(at - chains), "target_key": key(at)})).collect();
    let cross: Vec<Value> = (0..chains.min(10))
        .filter(|_| item > 0)
        .map(|at| {
            json!({"source_part_number": format!("I{:03}", item - 1), "source_key": key(nodes - chains + at),
                "target_key": key(at), "edge_type": "constrains"})
        })
        .collect();
    json!({"nodes": list, "edges": edges, "cross_edges": cross})
}

fn millis(begun: Instant) -> f64 {
    (begun.elapsed().as_secs_f64() * 1e5).round() / 100.0
}

/// The least, the middle and the most of several.
fn spread(mut times: Vec<f64>) -> Value {
    times.sort_by(f64::total_cmp);
    json!({"least_ms": times[0], "median_ms": times[times.len() / 2], "most_ms": times[times.len() - 1]})
}

struct Bench(Plain);

impl Bench {
    fn call(&mut self, method: &str, path: &str, body: &Value) -> Value {
        let (status, answer) = self.0.call(method, path, body);
        assert!(status < 300, "{method} {path}: {status} {answer}");
        answer
    }

    fn timed(&mut self, what: &str, method: &str, path: &str, mut body: impl FnMut(usize) -> Value) {
        let mut size = 0;
        let times = (0..ROUNDS).map(|round| {
            let body = body(round);
            let begun = Instant::now();
            let answer = self.call(method, path, &body);
            size = answer["nodes"].as_array().map_or(0, Vec::len)
                + answer["cross_nodes"].as_array().map_or(0, Vec::len)
                + answer["dirty"].as_array().map_or(0, Vec::len)
                + answer["cross_dirty"].as_array().map_or(0, Vec::len);
            millis(begun)
        });
        let times = spread(times.collect());
        println!("{}", json!({"figure": what, "result": times, "nodes_told": size}));
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let address = args.next().expect("silo-graph ADDRESS [ITEMS] [NODES]");
    let number = |text: Option<String>, usual| text.map_or(usual, |text| text.parse().expect("a number"));
    let (items, nodes): (usize, usize) = (number(args.next(), 12), number(args.next(), 10_000));
    let token = std::env::var("SILO_ADMIN_TOKEN").expect("SILO_ADMIN_TOKEN");
    let mut bench = Bench(Plain::connect(&address, &token));
    let mut first = Vec::new();
    for item in 0..items {
        bench.call("POST", "/api/items", &json!({"part_number": format!("I{item:03}")}));
        let (path, body) = (format!("/api/items/I{item:03}/dag"), graph(item, nodes, "h"));
        let begun = Instant::now();
        bench.call("PUT", &path, &body);
        first.push(millis(begun));
    }
    println!("{}", json!({"figure": format!("first write of {nodes} nodes"), "result": spread(first)}));
    println!("{}", json!({"nodes": items * nodes, "items": items}));
    let last = format!("/api/items/I{:03}/dag", items - 1);
    bench.timed("the same written again", "PUT", &last, |_| graph(items - 1, nodes, "h"));
    bench.timed("forward cone through all items", "GET", "/api/items/I000/dag/forward-cone/n00000", |_| Value::Null);
    let end = format!("{last}/backward-cone/n{:05}", nodes - nodes / 100);
    bench.timed("backward cone through all items", "GET", &end, |_| Value::Null);
    bench.timed("forward cone within an item", "GET", &format!("{last}/forward-cone/n00050"), |_| Value::Null);
    let part = |round: usize| json!({"partial": true, "nodes": [{"node_key": "n00000", "properties_hash": format!("r{}", round % 2)}]});
    bench.timed("a change that reaches all items", "PUT", "/api/items/I000/dag", part);
    bench.timed("a change that reaches 100 nodes of one item", "PUT", &last, |round| {
        json!({"partial": true, "nodes": [{"node_key": "n00050", "properties_hash": format!("r{}", round % 2)}]})
    });
    bench.timed("the not clean nodes", "GET", &format!("{last}/dirty"), |_| Value::Null);
}
