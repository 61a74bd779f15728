use windlass_sdk::{
    Client, Error,
    worker::{Failure, JobContext, Worker},
};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let client = Client::builder("http://127.0.0.1:3000").token("…").build()?;
    let shutdown = tokio_util::sync::CancellationToken::new();
    let worker = Worker::builder(client).name("resizer-1").tags(["images"]).slots(4);
    let resize = |job: JobContext| async move {
        job.log("resizing\n").await;
        Ok::<_, Failure>(serde_json::json!({"width": 100}))
    };
    worker.run(resize, shutdown).await.map(drop)
}
