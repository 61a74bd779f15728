//! One program for all tests: linking many takes longer than running them.

mod embedded_support;
mod load;
#[path = "support/proxy.rs"]
mod proxy;
mod support;

mod agree;
mod crash_embedded;
mod crash_postgres;
mod embedded;
#[cfg(feature = "testing")]
mod postgres_cluster;
#[cfg(feature = "testing")]
mod postgres_crash;
#[cfg(feature = "testing")]
mod postgres_lanes;
#[cfg(feature = "testing")]
mod postgres_marks;
#[cfg(feature = "testing")]
mod postgres_network;
#[cfg(feature = "testing")]
mod postgres_new_ids;
#[cfg(feature = "testing")]
mod postgres_open;
#[cfg(feature = "testing")]
mod postgres_plans;
#[cfg(feature = "testing")]
mod postgres_pooler;
#[cfg(feature = "testing")]
mod postgres_promises;
#[cfg(feature = "testing")]
mod postgres_servers;
#[cfg(feature = "testing")]
mod postgres_waits;
mod power_cut;
