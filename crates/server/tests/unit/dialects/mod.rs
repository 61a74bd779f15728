mod joblib;
mod neops;
mod silo;
mod workflow_graph;
