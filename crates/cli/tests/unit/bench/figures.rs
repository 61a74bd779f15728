use std::time::Duration;
use windlass_cli::bench::figures::Latency;

#[test]
fn percentiles_are_of_the_sorted_samples() {
    let mut samples: Vec<Duration> = (1..=100).rev().map(Duration::from_millis).collect();
    let latency = Latency::of(&mut samples);
    assert_eq!((latency.p50_ms.round(), latency.p99_ms.round()), (51.0, 100.0));
    assert_eq!(Latency::of(&mut []).p50_ms, 0.0);
}
