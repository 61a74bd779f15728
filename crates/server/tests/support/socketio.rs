//! A Socket.IO client over a WebSocket, packet by packet.

#![allow(dead_code, reason = "each test file uses some of it")]

use crate::socket::Listening;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::{net::TcpStream, time::timeout};
use tokio_tungstenite::{WebSocketStream, client_async, tungstenite::Message};

const SOON: Duration = Duration::from_secs(10);

pub struct Client(WebSocketStream<TcpStream>);

/// What comes: a packet, or the end.
#[derive(Debug, PartialEq)]
pub enum Got {
    Text(String),
    /// A close frame.
    Close,
    /// The connection is gone.
    End,
}

impl Client {
    /// Up to the server's first packet.
    pub async fn open(server: &Listening) -> Self {
        let url = format!("ws://{}/socket.io/?EIO=4&transport=websocket", server.address);
        let (stream, _) = client_async(url, server.connect().await).await.expect("a WebSocket");
        let mut client = Self(stream);
        let Got::Text(open) = client.packet().await else { panic!("nothing was said") };
        assert!(open.starts_with(r#"0{"#), "{open}");
        client
    }

    pub async fn connect(server: &Listening, token: &str) -> Self {
        let mut client = Self::open(server).await;
        let answer = client.introduce(json!({ "token": token })).await;
        assert!(answer.starts_with(r#"40{"sid":"#), "{answer}");
        client
    }

    /// What the server says to this auth object.
    pub async fn introduce(&mut self, auth: Value) -> String {
        self.send(format!("40{auth}")).await;
        match self.packet().await {
            Got::Text(text) => text,
            other => panic!("{other:?}"),
        }
    }

    pub async fn send(&mut self, packet: impl Into<String>) {
        // The server may have closed it.
        drop(self.0.send(Message::text(packet.into())).await);
    }

    pub async fn send_bytes(&mut self, bytes: &[u8]) {
        drop(self.0.send(Message::binary(bytes.to_vec())).await);
    }

    pub async fn emit(&mut self, event: &str, data: Value) {
        self.send(format!("42{}", json!([event, data]))).await;
    }

    /// With an acknowledgement, which also tells that everything before it was heard.
    pub async fn ask(&mut self, event: &str, data: Value) -> Value {
        self.send(format!("421{}", json!([event, data]))).await;
        loop {
            match self.packet().await {
                Got::Text(text) if text.starts_with("431") => {
                    let mut answer: Value = serde_json::from_str(&text[3..]).unwrap();
                    return answer[0].take();
                }
                Got::Text(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// Waits until everything it said was heard.
    pub async fn is_heard(&mut self) {
        self.ask("room_leave", json!({"room_id": "nowhere"})).await;
    }

    pub async fn packet(&mut self) -> Got {
        loop {
            let Some(Ok(message)) = timeout(SOON, self.0.next()).await.expect("something comes") else {
                return Got::End;
            };
            match message {
                Message::Text(text) if text.as_str() == "2" => self.send("3").await,
                Message::Text(text) => return Got::Text(text.to_string()),
                Message::Close(_) => return Got::Close,
                other => panic!("{other:?}"),
            }
        }
    }

    /// The next event, by name and data.
    pub async fn event(&mut self) -> (String, Value) {
        loop {
            match self.packet().await {
                Got::Text(text) if text.starts_with("42") => {
                    let (name, data) = serde_json::from_str(&text[2..]).unwrap();
                    return (name, data);
                }
                Got::Text(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    pub async fn next_of(&mut self, name: &str) -> Value {
        loop {
            let (got, data) = self.event().await;
            if got == name {
                return data;
            }
        }
    }

    /// All events until it is certain that nothing more is on its way from what was done before.
    pub async fn events_until_quiet(&mut self) -> Vec<(String, Value)> {
        let mut events = Vec::new();
        while let Ok(event) = timeout(Duration::from_millis(500), self.event()).await {
            events.push(event);
        }
        events
    }
}
