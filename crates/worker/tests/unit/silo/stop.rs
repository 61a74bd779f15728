use std::time::Duration;
use tokio::time::Instant;
use windlass_worker::silo::stop::{Orders, Stop, Why};

#[tokio::test]
async fn the_first_reason_counts_and_only_a_shutdown_leaves_something_to_say() {
    let orders = Orders::default();
    let far = Instant::now() + Duration::from_secs(3_600);
    let stop = Stop::new(&orders, far);
    assert_eq!(stop.why(), None);
    orders.shutdown.cancel();
    assert_eq!(stop.needed().await, Why::ShuttingDown);
    assert!(!stop.quiet.is_cancelled(), "it is reported");
    stop.because(Why::Lost, "");
    assert_eq!((stop.why(), stop.quiet.is_cancelled()), (Some(Why::ShuttingDown), true));
    let expired = Stop::new(&Orders::default(), Instant::now());
    assert_eq!(expired.needed().await, Why::Expired);
    assert!(expired.quiet.is_cancelled());
}
