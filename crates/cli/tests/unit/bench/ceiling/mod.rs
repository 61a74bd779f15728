use windlass_cli::bench::{
    ceiling::{Round, RoundFigures, figure, server},
    http::{load::Load, pickup, subject::Subject},
};

fn turn(rate: f64) -> RoundFigures {
    RoundFigures { submit_per_s: rate, drain_per_s: rate, submit_us: 1.0, drain_us: 1.0, pickup_p50_ms: 1.0 }
}

#[test]
fn ratios_are_taken_within_a_round() {
    let round = |(windlass, ceiling, peer)| Round {
        windlass: turn(windlass),
        ceiling: turn(ceiling),
        beanstalkd: Some(turn(peer)),
    };
    let rounds = [(10.0, 20.0, 5.0), (100.0, 400.0, 100.0), (30.0, 40.0, 60.0)].map(round);
    let figure = figure("submit", |turn| turn.submit_per_s, &rounds);
    assert_eq!((figure.ratio, figure.ratio_min, figure.ratio_max), (0.5, 0.25, 0.75));
    let peer = figure.beanstalkd.unwrap();
    assert_eq!((peer.median, peer.ratio), (60.0, 1.0));
}

#[tokio::test]
async fn the_ceiling_does_the_same_work_as_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let data = folder.path().to_owned();
    tokio::spawn(async move { server::serve(listener, &data).await });
    let subjects = Subject::all(&[url], &["none".to_owned()], None).await.unwrap();
    for (batch, next) in [(1, false), (10, false), (1, true)] {
        let load = Load { subject: &subjects[0], connections: 4, batch, next };
        assert_eq!(load.submit(40).await.unwrap().jobs, 40);
        // Fails if a job is missing or comes twice.
        assert_eq!(load.drain(40).await.unwrap().jobs, 40);
    }
    assert_eq!(pickup::measure(&subjects[0], 2).await.unwrap().len(), 2, "claims wait for jobs");
}
