//! Things that are made, for the pages of items: an assembly, its parts, and a part of which something has to be validated again.

use serde_json::json;
use windlass_sdk::Client;

/// Nothing where they are already there, as when the folder was used before.
pub async fn make(client: &Client) -> anyhow::Result<()> {
    if client.item("ARM-001").await.is_ok() {
        return Ok(());
    }
    for (part_number, item_type, description) in
        [("ARM-001", "assembly", "Robot arm"), ("LINK-002", "part", "Upper link"), ("BOLT-M5", "part", "Bolt M5 × 16")]
    {
        let item = json!({"part_number": part_number, "item_type": item_type, "description": description});
        client.create_item(&serde_json::from_value(item)?).await?;
    }
    for (parent, child, quantity) in [("ARM-001", "LINK-002", 2), ("LINK-002", "BOLT-M5", 4)] {
        let row = serde_json::from_value(json!({"quantity": quantity, "unit": "pcs"}))?;
        client.put_bom_row(parent, child, &row).await?;
    }
    let node = |(key, kind): (&str, &str)| json!({"key": key, "kind": kind, "properties_hash": "1", "state": "clean"});
    let nodes = [("outline", "sketch"), ("body", "pad"), ("bore", "pocket"), ("edges", "fillet"), ("paint", "colour")];
    let edge = |(source, target): (&str, &str)| json!({"source": source, "target": target});
    let edges = [("outline", "body"), ("body", "bore"), ("bore", "edges")];
    let graph = json!({"nodes": nodes.map(node), "edges": edges.map(edge)});
    client.put_graph("LINK-002", &serde_json::from_value(graph)?).await?;
    client.mark_dirty("LINK-002", "body").await?;
    Ok(())
}
