use tokio::sync::mpsc;
use windlass_worker::silo::{lines::Said, report::crowded};

#[tokio::test]
async fn a_crowd_of_lines_becomes_one_entry_and_order_stays() {
    let (sender, mut receiver) = mpsc::channel(1_000);
    let log = |level, text: String| Said::Log(level, text);
    for number in 0..950 {
        sender.try_send(log("info", number.to_string())).unwrap();
    }
    sender.try_send(log("warn", "w".into())).unwrap();
    let first = receiver.recv().await.unwrap();
    let (joined, held) = crowded(first, &mut receiver);
    let Said::Log("info", text) = joined else { panic!("{joined:?}") };
    assert_eq!((text.lines().count(), text.lines().last()), (950, Some("949")));
    assert_eq!(held, Some(log("warn", "w".into())));
    sender.try_send(log("info", "a".into())).unwrap();
    sender.try_send(log("info", "b".into())).unwrap();
    let first = receiver.recv().await.unwrap();
    assert_eq!(crowded(first, &mut receiver), (log("info", "a".into()), None), "few stay as they are");
}
