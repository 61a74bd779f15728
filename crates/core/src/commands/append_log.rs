//! Append to a job's log, under its live lease and within its cap.

use super::{Decided, holder::Holder, submit::check_size};
use crate::{
    change::{LogAppend, LogStream},
    desk::Desk,
    keys::Keys,
    payload::Payload,
    reply::Reply,
};

#[derive(Clone, Debug)]
pub struct AppendLog {
    pub holder: Holder,
    pub stream: LogStream,
    pub data: Payload,
}

impl AppendLog {
    /// To the ordinary stream.
    pub fn new(holder: Holder, data: impl Into<Payload>) -> Self {
        Self { holder, stream: LogStream::Out, data: data.into() }
    }
}

impl AppendLog {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        self.holder.keys(keys);
    }

    /// What exceeds the cap is counted and dropped; the job goes on.
    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided {
        let limits = desk.limits();
        check_size("log", self.data.len(), limits.log_piece_bytes_max)?;
        let mut job = match self.holder.held(desk)? {
            Ok(job) => job,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let cancelled = job.live.cancel.is_some();
        let room = limits.log_bytes_max.saturating_sub(job.live.log.bytes);
        let kept = fitting(self.data.as_bytes(), room as usize);
        job.live.log.dropped_bytes += (self.data.len() - kept) as u64;
        if kept > 0 {
            job.live.log.pieces += 1;
            job.live.log.bytes += kept as u64;
            let data =
                if kept == self.data.len() { self.data.clone() } else { Payload::from(&self.data.as_bytes()[..kept]) };
            desk.put_log(LogAppend {
                job: job.key.clone(),
                piece: job.live.log.pieces,
                attempt: job.live.attempt,
                at: desk.now(),
                stream: self.stream,
                data,
            });
        }
        let (piece, dropped_bytes) = (job.live.log.pieces, job.live.log.dropped_bytes);
        desk.put_job(job);
        Ok(Ok(Reply::Logged { piece, at: desk.now(), dropped_bytes, cancelled }))
    }
}

/// How many bytes fit into `room` without cutting a UTF-8 character in two.
fn fitting(data: &[u8], room: usize) -> usize {
    if data.len() <= room {
        return data.len();
    }
    (0..=room).rev().find(|&at| at == 0 || data[at] & 0xc0 != 0x80).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::testing::{Story, code, ns, once};

    #[test]
    fn what_exceeds_the_cap_is_counted_and_dropped() {
        let mut story = Story::new();
        (story.tables.limits.log_bytes_max, story.tables.limits.log_piece_bytes_max) = (10, 8);
        let lease = story.submit_and_claim(once(1));
        let append = |text: &str| AppendLog::new(Holder::lease(&ns(), lease), text);
        for (text, dropped_bytes) in [("123456", 0), ("123é", 2), ("x", 2), ("", 2), ("yy", 4)] {
            let Ok(Reply::Logged { dropped_bytes: told, cancelled: false, .. }) = story.run(append(text)) else {
                panic!("{text}");
            };
            assert_eq!(told, dropped_bytes, "{text}");
        }
        assert_eq!(code(&story.run(append("123456789"))), "too-large");
        let kept: Vec<(u64, usize)> =
            story.tables.logs.iter().map(|append| (append.piece, append.data.len())).collect();
        assert_eq!(kept, [(1, 6), (2, 3), (3, 1)]);
    }

    #[test]
    fn characters_are_kept_whole() {
        assert_eq!(fitting("abc".as_bytes(), 5), 3);
        assert_eq!(fitting("abc".as_bytes(), 2), 2);
        assert_eq!(fitting("aé".as_bytes(), 2), 1);
        assert_eq!(fitting("é".as_bytes(), 1), 0);
        assert_eq!(fitting("".as_bytes(), 0), 0);
    }
}
