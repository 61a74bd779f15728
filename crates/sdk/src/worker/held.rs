//! One lease in a worker's hands.

use super::buffer::LogBuffer;
use std::{
    sync::{
        Mutex, MutexGuard, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use windlass_api::{job::Progress, lease::Leased};

/// Why a handler should stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// Somebody cancelled the job.
    Cancelled,
    /// The job is somebody else's now. Nothing is reported.
    LeaseLost,
    /// The job's time is up.
    DeadlinePassed,
    /// The worker stops at once; the job is given back.
    Stopped,
}

/// A lease that its worker keeps alive only by its own signs of life is renewed all the same, for the sake of cancellation.
const LENGTH_DEFAULT: Duration = Duration::from_secs(30);

pub(crate) struct Held {
    pub leased: Leased,
    pub log: LogBuffer,
    pub length: Duration,
    pub deadline: Option<Instant>,
    pub token: CancellationToken,
    why: OnceLock<StopReason>,
    /// Gone: nothing that is said under it will be heard.
    lost: AtomicBool,
    /// The final report is on its way; its answer counts, not what a renewal hears meanwhile.
    reporting: AtomicBool,
    live: Mutex<Live>,
}

struct Live {
    /// When the server last took a renewal, by the time the request left.
    renewed: Instant,
    /// What to say next about how far it is.
    progress: Option<Progress>,
}

impl Held {
    pub fn new(leased: Leased, asked: Instant) -> Self {
        let now = Instant::now();
        // Zero says no more than that the work has begun, which is what makes the job count as running.
        let progress = Some(Progress { percent: 0.0, message: String::new() });
        Self {
            log: LogBuffer::default(),
            length: leased.lease_ms.map_or(LENGTH_DEFAULT, Duration::from_millis),
            deadline: leased.deadline_ms.map(|left| now + Duration::from_millis(left)),
            token: CancellationToken::new(),
            why: OnceLock::new(),
            lost: AtomicBool::new(false),
            reporting: AtomicBool::new(false),
            live: Mutex::new(Live { renewed: asked, progress }),
            leased,
        }
    }

    fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The first reason stays.
    pub fn stop(&self, why: StopReason) {
        let _ = self.why.set(why);
        self.token.cancel();
    }

    pub fn stop_reason(&self) -> Option<StopReason> {
        self.why.get().copied()
    }

    pub fn lose(&self, why: StopReason) {
        if !self.reporting.load(Ordering::SeqCst) {
            self.lost.store(true, Ordering::SeqCst);
            match self.is_out_of_time() {
                true => self.log.keep_last(),
                false => self.log.discard(),
            }
            self.stop(why);
        }
    }

    /// The server takes what is printed on the way out; clocks and answers may differ a little.
    pub fn is_out_of_time(&self) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= Instant::now() + Duration::from_secs(1))
    }

    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::SeqCst)
    }

    /// From here on only the answer to the report counts. False: the lease was lost before.
    pub fn begin_report(&self) -> bool {
        self.reporting.store(true, Ordering::SeqCst);
        !self.is_lost()
    }

    pub fn is_reporting(&self) -> bool {
        self.reporting.load(Ordering::SeqCst)
    }

    pub fn set_progress(&self, progress: Progress) {
        self.live().progress = Some(progress);
    }

    pub fn take_progress(&self) -> Option<Progress> {
        self.live().progress.take()
    }

    /// Something that could not be said: it is said the next time, unless there is news by then.
    pub fn put_back(&self, progress: Option<Progress>) {
        let mut live = self.live();
        live.progress = live.progress.take().or(progress);
    }

    pub fn has_news(&self) -> bool {
        !self.is_reporting() && (self.log.len() > 0 || self.live().progress.is_some())
    }

    pub fn renewed(&self, at: Instant) {
        let mut live = self.live();
        live.renewed = live.renewed.max(at);
    }

    pub fn renewed_at(&self) -> Instant {
        self.live().renewed
    }

    /// Three chances within every lease.
    pub fn renew_at(&self) -> Instant {
        self.renewed_at() + self.length / 3
    }

    pub fn runs_out_at(&self) -> Instant {
        self.renewed_at() + self.length
    }
}
