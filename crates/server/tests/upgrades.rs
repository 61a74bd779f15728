//! A connection that was upgraded is still a connection: it is counted, cut off if it does not read, and waited for at the end.

use crate::socket::{Listening, listen_with, quick, read_answer, read_to_end};
use crate::support::Server;
use axum::{
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use hyper_util::rt::TokioIo;
use std::time::{Duration, Instant};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use windlass_engine::testing::eventually;
use windlass_server::{
    App, Service,
    listener::Limits,
    route::{Access, Route},
    websocket,
};

const UPGRADE: &[u8] = b"GET /ws HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
    sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
const HEALTH: &[u8] = b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
/// Of no frame: what is spoken does not matter here.
const FLOOD: u8 = b'f';
const CLOSE: [u8; 2] = [0x88, 0];

/// Gives back each byte it gets, floods whoever asks for it, and says goodbye when the server stops.
async fn echo(State(app): State<App>, mut request: Request) -> Response {
    let (response, stream) = match websocket::accept(&mut request) {
        Ok(accepted) => accepted,
        Err(problem) => return problem.into_response(),
    };
    tokio::spawn(async move {
        let mut stream = TokioIo::new(stream.await.unwrap());
        loop {
            let byte = tokio::select! {
                byte = stream.read_u8() => byte,
                () = app.drain.cancelled() => return drop(stream.write_all(&CLOSE).await),
            };
            match byte {
                Ok(FLOOD) => {
                    while stream.write_all(&[0; 1 << 16]).await.is_ok() {}
                    return;
                }
                Ok(byte) => stream.write_u8(byte).await.unwrap(),
                Err(_) => return,
            }
        }
    });
    response
}

async fn listen(limits: Limits) -> Listening {
    let server = Server::start().await;
    let health = Route::get("/health", Access::Open, || async { "well" });
    let service = Service::of(server.app.clone(), &[Route::get("/ws", Access::Open, echo), health]);
    listen_with(server, service, limits).await
}

async fn upgraded(server: &Listening) -> TcpStream {
    let mut stream = server.connect().await;
    stream.write_all(UPGRADE).await.unwrap();
    let answer = read_answer(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
    stream.write_u8(b'?').await.unwrap();
    assert_eq!(stream.read_u8().await.unwrap(), b'?');
    stream
}

async fn is_let_in(server: &Listening) -> Option<()> {
    server.exchange(HEALTH).await.starts_with("HTTP/1.1 200").then_some(())
}

#[tokio::test]
async fn upgraded_connections_keep_their_places_until_they_end() {
    let server = listen(Limits { connections: 2, ..quick() }).await;
    let (first, _second) = (upgraded(&server).await, upgraded(&server).await);
    let answer = server.exchange(UPGRADE).await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert_eq!(server.server.app.metrics.open_connections(), 2);
    drop(first);
    eventually("the place comes back", async || is_let_in(&server).await).await;
}

#[tokio::test]
async fn an_upgraded_connection_that_does_not_read_is_cut_off() {
    let server = listen(Limits { connections: 1, ..quick() }).await;
    let mut silent = upgraded(&server).await;
    silent.write_u8(FLOOD).await.unwrap();
    eventually("the place comes back", async || is_let_in(&server).await).await;
}

#[tokio::test]
async fn the_end_of_the_server_waits_for_goodbyes() {
    let server = listen(quick()).await;
    let mut stream = upgraded(&server).await;
    let began = Instant::now();
    server.server.app.drain.cancel();
    server.task.await.unwrap();
    assert_eq!(stream.read_u16().await.unwrap().to_be_bytes(), CLOSE);
    assert_eq!(read_to_end(&mut stream).await, "");
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}

#[tokio::test]
async fn half_a_handshake_is_refused() {
    let server = listen(quick()).await;
    for part in ["connection: upgrade\r\n", "upgrade: websocket\r\n", "sec-websocket-version: 13\r\n"] {
        let asked = String::from_utf8_lossy(UPGRADE).replace(part, "");
        let mut stream = server.connect().await;
        stream.write_all(asked.as_bytes()).await.unwrap();
        let answer = read_answer(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 400"), "without {part}: {answer}");
    }
}
