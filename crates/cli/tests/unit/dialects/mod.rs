mod silo;
mod workflow_graph;
