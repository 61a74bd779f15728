use futures_util::FutureExt;
use std::sync::Arc;
use windlass_server::read_permits::{AT_WORK, ReadPermits};

#[tokio::test]
async fn whoever_reads_much_waits_for_himself_and_nobody_else_does() {
    let permits = Arc::new(ReadPermits::default());
    let (ann, ben): (Arc<str>, Arc<str>) = ("ann".into(), "ben".into());
    let mut at_work = Vec::new();
    for _ in 0..AT_WORK {
        at_work.push(permits.enter(&ann).await);
    }
    assert!(permits.enter(&ann).now_or_never().is_none(), "ann has all her permits");
    assert!(permits.enter(&ben).now_or_never().is_some());
    at_work[0].leave();
    let next = permits.enter(&ann).now_or_never();
    assert!(next.is_some(), "whoever only waits for something takes no inner");
    assert!(permits.enter(&ann).now_or_never().is_none());
    drop((at_work, next));
    // Lines are kept by name.
    assert_eq!([&ann, &ben].map(Arc::strong_count), [1, 1], "nothing is kept of those who left");
}
