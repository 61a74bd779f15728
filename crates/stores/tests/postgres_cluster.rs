//! The throwaway clusters that the other PostgreSQL tests stand on.
use windlass_stores::testing::Cluster;

#[test]
fn a_cluster_survives_an_immediate_stop_and_goes_away_at_last() {
    let cluster = Cluster::start();
    cluster.create_database("kept");
    cluster.sql("kept", "CREATE TABLE t AS SELECT 42 AS n");
    cluster.stop_immediate();
    cluster.start_again();
    assert_eq!(cluster.sql("kept", "SELECT n FROM t"), "42");
    assert_eq!(cluster.sql("kept", "SHOW fsync"), "on");
    let port = cluster.port();
    drop(cluster);
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
}
