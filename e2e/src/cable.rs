//! A cable between a client and a server that can be pulled, or cut without either end noticing.

use std::sync::Arc;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};

#[derive(Clone, Copy, PartialEq)]
enum State {
    Plugged,
    Pulled,
    Silent,
}

pub struct Cable {
    pub url: String,
    state: Arc<watch::Sender<State>>,
    accepting: JoinHandle<()>,
}

impl Cable {
    /// To the server at this address.
    pub async fn to(address: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (state, address) = (Arc::new(watch::Sender::new(State::Plugged)), address.to_owned());
        let now = state.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if *now.borrow() != State::Pulled {
                    tokio::spawn(carry(client, address.clone(), now.subscribe()));
                }
            }
        });
        Self { url, state, accepting }
    }

    /// Ends every connection and lets none through until it is plugged in again.
    pub fn pull(&self) {
        self.state.send_replace(State::Pulled);
    }

    pub fn plug(&self) {
        self.state.send_replace(State::Plugged);
    }

    /// Nothing goes through any more, and nobody is told: connections stay open, as behind a firewall that forgot them.
    pub fn silence(&self) {
        self.state.send_replace(State::Silent);
    }
}

async fn carry(mut client: TcpStream, address: String, mut state: watch::Receiver<State>) {
    let Ok(mut server) = TcpStream::connect(address).await else { return };
    tokio::select! {
        biased;
        _ = state.wait_for(|state| *state != State::Plugged) => {}
        _ = copy_bidirectional(&mut client, &mut server) => return,
    }
    // Both ends are kept open until the cable is pulled or thrown away.
    let _ = state.wait_for(|state| *state == State::Pulled).await;
}

impl Drop for Cable {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}
