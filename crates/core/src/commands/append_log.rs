//! Append to a job's log, under its live lease and within its cap.

use super::{Decided, holder::Holder, submit::check_size};
use crate::{
    desk::Desk,
    model::{
        change::{LogAppend, LogDrop},
        keys::Keys,
        log::{self, LogForm},
        payload::Payload,
        reply::Logged,
    },
};

#[derive(Clone, Debug)]
pub struct AppendLog {
    pub holder: Holder,
    pub form: LogForm,
    pub data: Payload,
}

impl AppendLog {
    /// Text of the ordinary stream.
    pub fn new(holder: Holder, data: impl Into<Payload>) -> Self {
        Self { holder, form: LogForm::default(), data: data.into() }
    }
}

impl AppendLog {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        self.holder.keys(keys);
    }

    /// What exceeds the cap goes from the middle of the log, and is counted; the job goes on.
    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<Logged> {
        let limits = desk.limits();
        check_size("log", self.data.len(), limits.log_piece_bytes_max)?;
        let mut job = match self.holder.heard(desk)? {
            Ok(job) => job,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let cancelled = job.live.cancel.is_some();
        let cap = limits.log_bytes_max;
        let data =
            log::newest(self.form, &self.data, usize::try_from(job.live.log.piece_max(cap)).unwrap_or(usize::MAX));
        let text = log::text_len(self.form, data.as_bytes());
        if data.len() < self.data.len() {
            job.live.log.dropped_bytes += (log::text_len(self.form, self.data.as_bytes()) - text) as u64;
        }
        if !data.is_empty() {
            let gone = job.live.log.append(text as u64, data.len() as u64, cap);
            let (piece, attempt) = (job.live.log.pieces, job.live.attempt);
            desk.put_log(LogAppend { job: job.key.clone(), piece, attempt, at: desk.now(), form: self.form, data });
            if let Some((first, last)) = gone {
                desk.drop_log(LogDrop { job: job.key.clone(), first, last });
            }
        }
        let (piece, dropped_bytes) = (job.live.log.pieces, job.live.log.dropped_bytes);
        desk.put_job(job);
        Ok(Ok(Logged { piece, at: desk.now(), dropped_bytes, cancelled }))
    }
}
