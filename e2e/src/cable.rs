//! A cable between a client and a server that can be pulled.

use std::sync::Arc;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};

pub struct Cable {
    pub url: String,
    plugged: Arc<watch::Sender<bool>>,
    accepting: JoinHandle<()>,
}

impl Cable {
    /// To the server at this address.
    pub async fn to(address: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (plugged, address) = (Arc::new(watch::Sender::new(true)), address.to_owned());
        let state = plugged.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if *state.borrow() {
                    tokio::spawn(carry(client, address.clone(), state.subscribe()));
                }
            }
        });
        Self { url, plugged, accepting }
    }

    /// Ends every connection and lets none through until it is plugged in again.
    pub fn pull(&self) {
        self.plugged.send_replace(false);
    }

    pub fn plug(&self) {
        self.plugged.send_replace(true);
    }
}

async fn carry(mut client: TcpStream, address: String, mut plugged: watch::Receiver<bool>) {
    let Ok(mut server) = TcpStream::connect(address).await else { return };
    tokio::select! {
        _ = copy_bidirectional(&mut client, &mut server) => {}
        _ = plugged.wait_for(|plugged| !plugged) => {}
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}
