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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::holder::Address;
    use crate::commands::testing::{Story, code, ns, once};
    use crate::model::reply::Reply;

    #[test]
    fn beyond_the_cap_the_beginning_and_the_newest_part_are_kept() {
        let mut story = Story::new();
        (story.tables.limits.log_bytes_max, story.tables.limits.log_piece_bytes_max) = (10, 8);
        let lease = story.submit_and_claim(once(1));
        let append = |text: &str| AppendLog::new(Holder::lease(&ns(), lease), text);
        for (text, dropped_bytes) in [("1234", 0), ("567é", 0), ("x", 0), ("", 0), ("yy", 5), ("z34567é", 10)] {
            let Ok(Reply::Logged(Logged { dropped_bytes: told, cancelled: false, .. })) = story.run(append(text))
            else {
                panic!("{text}");
            };
            assert_eq!(told, dropped_bytes, "{text}");
        }
        assert_eq!(code(&story.run(append("123456789"))), "too-large");
        let kept: Vec<(u64, &[u8])> =
            story.tables.logs.values().flatten().map(|append| (append.piece, append.data.as_bytes())).collect();
        assert_eq!(kept, [(1, &b"1234"[..]), (5, "4567é".as_bytes())]);
    }

    /// However large the pieces are beside the cap, a reader of all there is finds out how much is missing.
    #[test]
    fn whatever_is_missing_is_said_once_between_what_is_there() {
        for (cap, pieces) in
            [(10, &[8, 8, 3][..]), (4, &[8]), (4, &[1, 8, 1]), (4, &[2, 8, 8]), (6, &[3, 8, 1, 1]), (0, &[3, 3])]
        {
            let mut story = Story::new();
            (story.tables.limits.log_bytes_max, story.tables.limits.log_piece_bytes_max) = (cap, 8);
            let lease = story.submit_and_claim(once(1));
            for &length in pieces {
                story.run(AppendLog::new(Holder::lease(&ns(), lease), "x".repeat(length).as_str())).unwrap();
            }
            let count = &story.job(1).live.log;
            let (mut after, mut said) = (0, 0);
            for append in story.tables.logs.values().flatten() {
                said += count.gap(after, append.piece).map_or(0, |gap| gap.bytes.unwrap_or(0));
                after = append.piece;
            }
            said += if count.ends_short() { count.dropped_bytes } else { 0 };
            let kept: usize = story.tables.logs.values().flatten().map(|append| append.data.len()).sum();
            let written: usize = pieces.iter().sum();
            assert_eq!(said, (written - kept) as u64, "a cap of {cap}, {pieces:?}");
        }
    }

    #[test]
    fn a_line_that_names_the_job_is_taken_after_its_end_and_one_under_a_lease_is_not() {
        let mut story = Story::new();
        let lease = story.submit_and_claim(once(1));
        story.complete(lease).unwrap();
        let by_job = Holder { address: Address::Job(lease.job), ..Holder::lease(&ns(), lease) };
        story.run(AppendLog::new(by_job.clone(), "late")).unwrap();
        assert_eq!(story.job(1).live.log.pieces, 1);
        assert_eq!(code(&story.run(AppendLog::new(Holder::lease(&ns(), lease), "late"))), "lease-lost");
        story.submit(once(2));
        let unclaimed = Holder { address: Address::Job(crate::commands::testing::id(2)), ..by_job };
        assert_eq!(code(&story.run(AppendLog::new(unclaimed, "early"))), "not-held");
    }

    #[test]
    fn a_cap_of_nothing_keeps_nothing_and_counts() {
        let mut story = Story::new();
        story.tables.limits.log_bytes_max = 0;
        let lease = story.submit_and_claim(once(1));
        let reply = story.run(AppendLog::new(Holder::lease(&ns(), lease), "abc"));
        assert!(matches!(reply, Ok(Reply::Logged(Logged { dropped_bytes: 3, .. }))), "{reply:?}");
        assert_eq!(story.tables.logs.values().flatten().count(), 0);
    }
}
