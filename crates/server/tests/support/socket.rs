//! A server on a real socket, and clients that send exactly the bytes they want to.

#![allow(dead_code, reason = "each test file uses some of it")]

use crate::support::Server;
use std::{net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
    time::timeout,
};
use windlass_server::{Service, listener};

pub struct Listening {
    pub server: Server,
    pub address: SocketAddr,
    pub task: JoinHandle<()>,
}

/// Short times, so that tests do not wait.
pub fn quick() -> listener::Limits {
    listener::Limits {
        head: Duration::from_millis(300),
        body: Duration::from_millis(300),
        idle: Duration::from_millis(1_500),
        write: Duration::from_millis(500),
        drain: Duration::from_secs(3),
        ..listener::Limits::default()
    }
}

pub async fn listen(limits: listener::Limits) -> Listening {
    let server = Server::start().await;
    let service = Service::new(server.app.clone());
    listen_with(server, service, limits).await
}

/// With other handlers than the server's own.
pub async fn listen_with(server: Server, service: Service, limits: listener::Limits) -> Listening {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let task = tokio::spawn(listener::serve(socket, None, server.app.clone(), service, limits));
    Listening { server, address, task }
}

impl Listening {
    pub async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends these bytes and gives everything that comes back until the server closes.
    pub async fn exchange(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect().await;
        // The server may close before it has read everything.
        drop(stream.write_all(bytes).await);
        read_to_end(&mut stream).await
    }
}

pub async fn read_to_end(stream: &mut TcpStream) -> String {
    let mut all = Vec::new();
    let mut piece = [0; 4_096];
    while let Ok(Ok(count @ 1..)) = timeout(Duration::from_secs(10), stream.read(&mut piece)).await {
        all.extend_from_slice(&piece[..count]);
    }
    String::from_utf8_lossy(&all).into_owned()
}

/// One answer with a known length, on a connection that stays open.
pub async fn read_answer(stream: &mut TcpStream) -> String {
    let mut all = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&all).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length =
                head.lines().find_map(|line| line.strip_prefix("content-length: ")).map_or(0, |n| n.parse().unwrap());
            if body.len() >= length {
                return text;
            }
        }
        let mut piece = [0; 4_096];
        let count =
            timeout(Duration::from_secs(10), stream.read(&mut piece)).await.expect("an answer in time").unwrap();
        assert!(count > 0, "closed after {text:?}");
        all.extend_from_slice(&piece[..count]);
    }
}
