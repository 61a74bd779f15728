//! What a worker says for a job's log, as the piece that is kept of it.

use crate::problem::{Problem, Result};
use windlass_api::log::{LogChunk, OutputStream};
use windlass_core::{
    Chunk, LogForm, LogStream,
    commands::{append_log::AppendLog, holder::Holder},
    log::{CHUNKS_MAX, ChunkWriter},
};

/// Text with what is known of it, or chunks of text.
#[derive(Clone, Copy, Default)]
pub struct Said<'a> {
    pub data: &'a str,
    pub stream: Option<OutputStream>,
    pub time_ms: Option<u64>,
    pub chunks: &'a [LogChunk],
}

impl Said<'_> {
    pub fn append(self, holder: Holder) -> Result<AppendLog> {
        let Said { data, stream, time_ms, chunks } = self;
        if chunks.is_empty() && stream.is_none() && time_ms.is_none() {
            return Ok(AppendLog::new(holder, data));
        }
        if !chunks.is_empty() && !data.is_empty() {
            return Err(Problem::invalid("chunks", "go in place of the text, not beside it"));
        }
        if chunks.len() > CHUNKS_MAX {
            let why = format!("{} in one piece; at most {CHUNKS_MAX}: send several pieces", chunks.len());
            return Err(Problem::invalid("chunks", why));
        }
        let mut writer = ChunkWriter::default();
        if !data.is_empty() {
            writer.push(chunk(data, stream, time_ms));
        }
        chunks.iter().for_each(|one| writer.push(chunk(&one.data, one.stream, one.time_ms)));
        Ok(AppendLog { holder, form: LogForm::Chunks, data: writer.finish() })
    }
}

fn chunk(data: &str, stream: Option<OutputStream>, time: Option<u64>) -> Chunk<'_> {
    let stream = stream.map(|stream| match stream {
        OutputStream::Stdout => LogStream::Out,
        OutputStream::Stderr => LogStream::Err,
    });
    Chunk { stream, time, data: data.as_bytes(), ..Chunk::default() }
}
