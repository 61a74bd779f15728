use futures_util::FutureExt;
use windlass_server::dialects::joblib::sockets::results::Results;

#[tokio::test]
async fn readers_hear_of_their_result_alone_and_leave_nothing_behind() {
    let results = Results::default();
    let (mut mine, mut too) = (results.wait("p", "1"), results.wait("p", "1"));
    let mut other = results.wait("p", "2");
    results.tell("p", "1");
    mine.told().await;
    too.told().await;
    assert!(mine.told().now_or_never().is_none(), "once for each time");
    assert!(other.told().now_or_never().is_none());
    let mut later = results.wait("p", "1");
    assert!(later.told().now_or_never().is_none(), "what was told before is in the store");
    drop((mine, too));
    assert_eq!(results.awaited(), 2);
    drop((other, later));
    assert_eq!(results.awaited(), 0);
}
