use axum::response::IntoResponse;
use http::StatusCode;
use std::thread;
use tokio::sync::oneshot;
use windlass_server::behind::Behind;

#[tokio::test]
async fn what_is_read_is_worked_out_elsewhere_and_a_fault_in_it_is_an_error() {
    let behind = Behind::default();
    let answered =
        behind.run(Box::pin(async { thread::current().name().unwrap_or_default().to_owned().into_response() })).await;
    let body = axum::body::to_bytes(answered.into_body(), 100).await.unwrap();
    assert_eq!(body, "behind");
    let fault = behind.run(Box::pin(async { panic!("as a handler might") })).await;
    assert_eq!(fault.status(), StatusCode::INTERNAL_SERVER_ERROR);
}

#[tokio::test]
async fn what_nobody_waits_for_any_more_ends() {
    let behind = Behind::default();
    let (alive, ended) = oneshot::channel::<()>();
    let (begin, begun) = oneshot::channel();
    let work = async move {
        let _alive = alive;
        let _ = begin.send(());
        std::future::pending().await
    };
    tokio::select! {
        _ = behind.run(Box::pin(work)) => panic!("it never ends by itself"),
        begun = begun => begun.unwrap(),
    }
    assert!(ended.await.is_err());
}
