use http::StatusCode;
use http_body_util::BodyExt;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use windlass_server::dialects::workflow_graph::{
    array::{Array, PART_BYTES, PARTS_WAITING, answer},
    body::HttpError,
};

#[tokio::test]
async fn a_list_is_made_no_faster_than_it_is_read() {
    const ALL: usize = 50;
    let made = Arc::new(AtomicUsize::new(0));
    let counted = made.clone();
    let answer = answer(move |mut list| async move {
        for _ in 0..ALL {
            counted.fetch_add(1, Ordering::SeqCst);
            list.push(&"x".repeat(PART_BYTES)).await?;
        }
        list.end().await
    });
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(made.load(Ordering::SeqCst), PARTS_WAITING + 1, "one more waits for its place");
    let text = answer.into_body().collect().await.unwrap().to_bytes();
    let read: Vec<String> = serde_json::from_slice(&text).unwrap();
    assert_eq!(read.len(), ALL);
}

#[tokio::test]
async fn a_list_that_cannot_be_made_ends_the_connection() {
    let failing = |mut list: Array| async move {
        list.push(&1).await?;
        Err(HttpError::bare(StatusCode::SERVICE_UNAVAILABLE))
    };
    assert!(answer(failing).into_body().collect().await.is_err());
}
