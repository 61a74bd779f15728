//! All but `secrets`, which listens to everything its process logs, in one program: linking many takes longer than running them.

#[path = "support/socket.rs"]
mod socket;
#[path = "support/socketio.rs"]
mod socketio;
mod support;

mod artifacts;
mod budgets;
mod config;
mod definitions;
mod dialects;
mod edge;
mod examples;
mod golden;
mod in_flight;
mod items;
mod joblib;
mod joblib_sockets;
mod large_input;
mod listing;
mod metrics;
mod native;
mod neops;
mod neops_cron;
mod neops_definitions;
mod neops_entities;
mod neops_runs;
#[cfg(feature = "schema")]
mod openapi;
mod overview;
mod quotas;
mod rights;
mod roles;
mod schedules;
mod session;
mod silo;
mod stream_rights;
mod streams;
mod tls;
mod tokens;
mod traces;
mod unit;
mod upgrades;
mod watched;
mod why;
mod workflow_folder;
mod workflow_graph;
mod workflows;
