//! One kept-alive connection with one request on its way: as little as a client can cost.

use anyhow::{Context, bail};
use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use std::fmt;
use tokio::net::TcpStream;

/// Host and port of a server that is spoken to without TLS.
#[derive(Clone, Debug)]
pub struct Address(String);

impl Address {
    pub fn parse(url: &str) -> anyhow::Result<Self> {
        let Some(rest) = url.strip_prefix("http://") else {
            bail!("{url:?}: the bench measures plain HTTP only; write it like http://127.0.0.1:3000")
        };
        let host = rest.trim_end_matches('/');
        Ok(Self(if host.contains(':') { host.to_owned() } else { format!("{host}:80") }))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}", self.0)
    }
}

pub struct Connection {
    address: Address,
    /// None where the server wants none.
    authorization: Option<String>,
    sender: SendRequest<Full<Bytes>>,
}

impl Connection {
    pub async fn open(address: &Address, token: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(&address.0).await.with_context(|| format!("{address} cannot be reached"))?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let authorization = (!token.is_empty()).then(|| format!("Bearer {token}"));
        Ok(Self { address: address.clone(), authorization, sender })
    }

    pub async fn call(
        &mut self,
        method: Method,
        path: &str,
        body: impl Into<Bytes>,
    ) -> anyhow::Result<(StatusCode, Bytes)> {
        self.send(method, path, "application/json", body.into()).await
    }

    pub async fn call_form(&mut self, path: &str, form: String) -> anyhow::Result<(StatusCode, Bytes)> {
        self.send(Method::POST, path, "application/x-www-form-urlencoded", form.into()).await
    }

    async fn send(
        &mut self,
        method: Method,
        path: &str,
        content: &str,
        body: Bytes,
    ) -> anyhow::Result<(StatusCode, Bytes)> {
        self.sender.ready().await?;
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, &self.address.0)
            .header(header::CONTENT_TYPE, content);
        if let Some(authorization) = &self.authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        let response = self.sender.send_request(request.body(Full::new(body))?).await?;
        let status = response.status();
        Ok((status, response.into_body().collect().await?.to_bytes()))
    }

    /// A call that must succeed.
    pub async fn post(&mut self, path: &str, body: impl Into<Bytes>) -> anyhow::Result<Bytes> {
        let (status, answer) = self.call(Method::POST, path, body).await?;
        if !status.is_success() {
            bail!("{path} answered {status}: {}", String::from_utf8_lossy(&answer));
        }
        Ok(answer)
    }
}
