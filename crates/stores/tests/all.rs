//! One program for all tests: linking many takes longer than running them.

mod embedded_support;
mod load;
#[path = "support/proxy.rs"]
mod proxy;
mod support;

mod agree;
mod counts;
mod crash_embedded;
mod crash_postgres;
mod embedded;
mod postgres_access;
mod postgres_clock;
mod postgres_cluster;
mod postgres_crash;
mod postgres_flights;
mod postgres_lanes;
mod postgres_links;
mod postgres_marks;
mod postgres_network;
mod postgres_new_ids;
mod postgres_notices;
mod postgres_open;
mod postgres_payloads;
mod postgres_plans;
mod postgres_pooler;
mod postgres_promises;
mod postgres_reads;
mod postgres_servers;
mod postgres_waits;
mod power_cut;
