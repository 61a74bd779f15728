//! One program for all tests: linking many takes longer than running them.

mod bad_neighbour;
mod cascade;
mod clock_jumps;
mod crashes;
mod crowds;
mod deploy;
mod disk_full;
mod floods;
mod joblib;
mod neops;
mod neops_cascade;
mod neops_crowd;
mod neops_kills;
mod neops_runs;
mod printed;
mod silo;
mod silo_crowd;
mod silo_runner;
mod stops;
mod workflow_cli;
mod workflow_graph;
mod workflow_graph_clients;
mod workflow_graph_kills;
mod workflow_kills;
