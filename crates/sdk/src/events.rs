//! Events as they are committed: the server's event stream, read line by line.
//!
//! The stream ends when the connection does. Whoever wants to go on asks again with the number of the last event seen;
//! the server then tells everything that happened meanwhile.

use crate::{Client, Error};
use bytes::Bytes;
use reqwest::{Method, Response, header};
use windlass_api::event::{Event, ListenEvents};

/// A line longer than this is not one of ours.
const LINE_MAX: usize = 4 << 20;

impl Client {
    /// Listens. Without `after` only what happens from now on is told.
    pub async fn events(&self, query: &ListenEvents) -> Result<EventStream, Error> {
        let request = self.request(Method::GET, "/api/v1/events").query(query);
        let request = request.header(header::ACCEPT, "text/event-stream");
        let response = self.send(request).await?;
        Ok(EventStream { response, url: self.base().to_owned(), parser: Parser::default() })
    }
}

/// Events in order. Give up on it by dropping it.
pub struct EventStream {
    response: Response,
    url: String,
    parser: Parser,
}

impl EventStream {
    /// The next event; none when the server closed the stream.
    pub async fn next(&mut self) -> Result<Option<Event>, Error> {
        loop {
            if let Some(data) = self.parser.message() {
                let event = serde_json::from_str(&data);
                return event.map(Some).map_err(|error| self.confused(error.to_string()));
            }
            let unreachable =
                |error: reqwest::Error| Error::Unreachable { url: self.url.clone(), why: error.to_string() };
            match self.response.chunk().await.map_err(unreachable)? {
                Some(bytes) => self.parser.push(bytes).map_err(|why| self.confused(why))?,
                None => return Ok(None),
            }
        }
    }

    fn confused(&self, why: String) -> Error {
        Error::Confused { url: self.url.clone(), why, retry_after: None }
    }
}

/// The data of one message after another. Comments (which keep the connection alive) and fields we do not use are passed over.
#[derive(Default)]
struct Parser {
    bytes: Vec<u8>,
    data: String,
    kind: String,
}

impl Parser {
    fn push(&mut self, bytes: Bytes) -> Result<(), String> {
        if self.bytes.len() + self.data.len() + bytes.len() > LINE_MAX {
            return Err("an event is too long".into());
        }
        self.bytes.extend_from_slice(&bytes);
        Ok(())
    }

    /// The data of the next event. The stream also tells of gaps, where events asked for are no longer kept.
    fn message(&mut self) -> Option<String> {
        while let Some(end) = self.bytes.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.bytes.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end_matches(['\n', '\r']);
            if line.is_empty() {
                let (data, kind) = (std::mem::take(&mut self.data), std::mem::take(&mut self.kind));
                if data.starts_with('{') && kind != "gap" {
                    return Some(data);
                }
            } else if let Some(data) = field(line, "data") {
                if !self.data.is_empty() {
                    self.data.push('\n');
                }
                self.data.push_str(data);
            } else if let Some(kind) = field(line, "event") {
                self.kind = kind.to_owned();
            }
        }
        None
    }
}

fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let value = line.strip_prefix(name)?.strip_prefix(':')?;
    Some(value.strip_prefix(' ').unwrap_or(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_out_whole_however_they_arrive() {
        let text = ": hello\n\nid: 4\nevent: submitted\ndata: {\"a\":1}\n\nretry: 5\n\ndata: {\r\ndata: }\r\n\r\ndata: x\n\nevent: gap\ndata: {}\n\n";
        for size in 1..text.len() {
            let mut parser = Parser::default();
            let mut found = Vec::new();
            for chunk in text.as_bytes().chunks(size) {
                parser.push(Bytes::copy_from_slice(chunk)).unwrap();
                found.extend(std::iter::from_fn(|| parser.message()));
            }
            assert_eq!(found, ["{\"a\":1}", "{\n}"], "in pieces of {size}");
        }
    }
}
