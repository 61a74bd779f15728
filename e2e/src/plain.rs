//! The plainest HTTP client there is: one connection that stays open, one call after the other.
//!
//! For clients of protocols that are not ours, so that what is tested is what goes over the line and not what an SDK makes
//! of it.

use serde_json::Value;
use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::TcpStream,
    time::Duration,
};

pub struct Plain {
    address: String,
    token: String,
    stream: BufReader<TcpStream>,
}

impl Plain {
    pub fn connect(address: &str, token: &str) -> Self {
        Self::open(address, token, None).unwrap()
    }

    /// Gives up on an answer after so long.
    pub fn try_connect(address: &str, token: &str, patience: Duration) -> io::Result<Self> {
        Self::open(address, token, Some(patience))
    }

    fn open(address: &str, token: &str, patience: Option<Duration>) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(patience)?;
        stream.set_write_timeout(patience)?;
        Ok(Self { address: address.to_owned(), token: token.to_owned(), stream: BufReader::new(stream) })
    }

    fn send(&mut self, request: &str, more: &str, body: &str) -> io::Result<()> {
        self.send_as("application/json", request, more, body)
    }

    fn send_as(&mut self, content: &str, request: &str, more: &str, body: &str) -> io::Result<()> {
        let (address, token, length) = (&self.address, &self.token, body.len());
        let head = format!(
            "{request}\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: {content}\r\nContent-Length: {length}\r\n{more}\r\n{body}"
        );
        self.stream.get_mut().write_all(head.as_bytes())
    }

    /// Status and, where it has one, length of the body.
    fn head(&mut self) -> io::Result<(u16, usize)> {
        let (mut status, mut length) = (0, 0);
        for at in 0.. {
            let mut line = String::new();
            if self.stream.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let line = line.trim_end();
            if at == 0 {
                status = line.split(' ').nth(1).unwrap_or_else(|| panic!("{line:?}")).parse().unwrap();
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line.is_empty() {
                break;
            }
        }
        Ok((status, length))
    }

    pub fn call(&mut self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.try_call(method, path, &body).unwrap()
    }

    /// For callers that have to expect that the server hangs up.
    pub fn try_call(&mut self, method: &str, path: &str, body: &str) -> io::Result<(u16, Value)> {
        self.send(&format!("{method} {path} HTTP/1.1"), "", body)?;
        let (status, bytes) = self.answer()?;
        Ok((status, serde_json::from_slice(&bytes).unwrap_or_default()))
    }

    pub fn post_form(&mut self, path: &str, form: &str) -> (u16, Value) {
        self.send_as("application/x-www-form-urlencoded", &format!("POST {path} HTTP/1.1"), "", form).unwrap();
        let (status, bytes) = self.answer().unwrap();
        (status, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    /// An answer that need not be JSON.
    pub fn get_bytes(&mut self, path: &str) -> (u16, Vec<u8>) {
        self.send(&format!("GET {path} HTTP/1.1"), "", "").unwrap();
        self.answer().unwrap()
    }

    fn answer(&mut self) -> io::Result<(u16, Vec<u8>)> {
        let (status, length) = self.head()?;
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes)?;
        Ok((status, bytes))
    }

    /// Follows the events behind a number until `enough` says so; then the connection is dropped.
    pub fn follow(mut self, path: &str, last: Option<u64>, mut enough: impl FnMut(u64, &str, Value) -> bool) {
        let more = last.map(|last| format!("Last-Event-ID: {last}\r\n")).unwrap_or_default();
        // The older version has no chunks: what comes is what was written.
        self.send(&format!("GET {path} HTTP/1.0"), &more, "").unwrap();
        assert_eq!(self.head().unwrap().0, 200);
        let (mut id, mut kind) = (None, String::new());
        for line in self.stream.lines() {
            let line = line.unwrap();
            match line.split_once(": ") {
                Some(("id", value)) => id = Some(value.parse().unwrap()),
                Some(("event", value)) => kind = value.to_owned(),
                Some(("data", value)) => {
                    if let Some(id) = id.take()
                        && enough(id, &kind, serde_json::from_str(value).unwrap())
                    {
                        return;
                    }
                    assert_ne!(kind, "stream.gap", "{value}");
                }
                _ => {}
            }
        }
        panic!("the server ended the stream");
    }
}
