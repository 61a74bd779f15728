//! TLS: the real handshake, and clients that never finish theirs.

use crate::support::Server;
use rustls::{ClientConfig, RootCertStore, pki_types::CertificateDer};
use std::{fs, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::timeout,
};
use tokio_rustls::TlsConnector;
use windlass_server::{Service, listener};

#[tokio::test]
async fn requests_come_over_tls_and_half_handshakes_are_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let (certificate, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    fs::write(&certificate, made.cert.pem()).unwrap();
    fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let acceptor = listener::acceptor(&certificate, &key).unwrap();
    assert!(listener::acceptor(&key, &certificate).is_err(), "a key is no certificate");

    let server = Server::start().await;
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let limits = listener::Limits { handshake: Duration::from_millis(300), ..listener::Limits::default() };
    tokio::spawn(listener::serve(socket, Some(acceptor), server.app.clone(), Service::new(server.app.clone()), limits));

    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(made.cert.der().to_vec())).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let connector = TlsConnector::from(Arc::new(config.with_root_certificates(roots).with_no_client_auth()));
    let stream = TcpStream::connect(address).await.unwrap();
    let mut stream = connector.connect("localhost".try_into().unwrap(), stream).await.unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    drop(stream.read_to_string(&mut answer).await);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");

    let mut plain = TcpStream::connect(address).await.unwrap();
    plain.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    timeout(Duration::from_secs(5), plain.read_to_string(&mut answer)).await.expect("closed in time").unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("\r\nconnection: close\r\n"), "{answer}");
    assert!(answer.contains("this port expects TLS") && answer.contains("https://"), "{answer}");

    let mut silent = TcpStream::connect(address).await.unwrap();
    silent.write_all(b"\x16\x03\x01").await.unwrap();
    let closed = timeout(Duration::from_secs(5), silent.read(&mut [0; 16])).await.expect("closed in time");
    assert!(matches!(closed, Ok(0) | Err(_)));
}
