//! How much of the disk files may take: those of one job, those of one namespace, and all of them without touching a reserve.
//!
//! Sums are counted from the records once and kept in memory from there on. Another server on the same store does not tell what
//! it takes in, and not everything that is deleted is told either; so a sum that leaves no room is counted again before
//! somebody is refused, but not more often than counting is worth.

pub use crate::config::limits::Files as Limits;
use crate::{
    app::App,
    artifacts, content,
    problem::{Code, Problem, Result},
};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};
use windlass_api::Uuid;
use windlass_core::Namespace;
use windlass_product::files::{FILE, File};

/// What a file takes beside its bytes: its record, and what is left of its last block.
pub const OVERHEAD: u64 = 4 << 10;
/// A sum that was counted so lately is not counted again.
pub const COUNTED_FOR: Duration = Duration::from_secs(2);
/// Counting may take up one part in so many of the time.
const COUNTING_SHARE: u32 = 50;
/// Sums kept; those of jobs with no upload under way make room for others.
const SUMS_MAX: usize = 10_000;
/// The reserve is never more than one part in so many of the disk.
const RESERVE_SHARE: u64 = 10;

/// Whose file it is.
#[derive(Clone, Debug)]
pub struct Owner {
    pub namespace: Namespace,
    pub job: Option<Uuid>,
}

/// What is summed up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Whose {
    Namespace(Namespace),
    Job(Namespace, Uuid),
}

impl Owner {
    fn all(&self) -> impl Iterator<Item = Whose> {
        let job = self.job.map(|job| Whose::Job(self.namespace.clone(), job));
        job.into_iter().chain([Whose::Namespace(self.namespace.clone())])
    }
}

impl Whose {
    fn limit(&self, limits: &Limits) -> u64 {
        match self {
            Whose::Namespace(_) => limits.per_namespace,
            Whose::Job(..) => limits.per_job,
        }
    }

    /// From the records.
    async fn count(&self, app: &App) -> Result<u64> {
        let (bytes, count) = match self {
            Whose::Job(namespace, job) => artifacts::total(app, artifacts::of_job(namespace, *job)).await?,
            Whose::Namespace(namespace) => {
                let kept = artifacts::total(app, artifacts::of_namespace(namespace)).await?;
                let files = content::total(app, namespace.clone(), FILE.0, None, |file: &File| file.size).await?;
                (kept.0 + files.0, kept.1 + files.1)
            }
        };
        Ok(bytes + count * OVERHEAD)
    }

    fn refusal(&self, limit: u64, used: u64) -> Problem {
        let (whose, setting) = match self {
            Whose::Namespace(namespace) => (format!("the namespace {namespace}"), "artifacts_per_namespace_max"),
            Whose::Job(_, job) => (format!("the job {job}"), "artifacts_per_job_max"),
        };
        let why = format!(
            "the files of {whose} may take {limit} bytes ({setting}), and take {used} with those that are coming in; delete some"
        );
        Problem::new(Code::TooLarge, why).at("body")
    }
}

#[derive(Clone, Copy)]
struct Sum {
    kept: u64,
    /// Of uploads under way.
    coming: u64,
    counted: Instant,
    took: Duration,
}

impl Sum {
    fn is_stale(&self) -> bool {
        self.counted.elapsed() > COUNTED_FOR.max(self.took * COUNTING_SHARE)
    }
}

pub struct Usage {
    limits: Limits,
    sums: Mutex<HashMap<Whose, Sum>>,
}

/// Whether some bytes fit.
pub enum Fit {
    Yes,
    No {
        used: u64,
    },
    /// To be found out by counting.
    Unknown,
}

impl Usage {
    pub fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self { limits, sums: Mutex::default() })
    }

    /// Room for a file of so many bytes.
    pub async fn enter(self: &Arc<Self>, app: &App, owner: &Owner, bytes: u64) -> Result<Grant> {
        let mut grant = Grant { usage: self.clone(), of: Vec::new(), bytes: 0 };
        for whose in owner.all().filter(|whose| whose.limit(&self.limits) > 0) {
            self.add(app, &whose, bytes + OVERHEAD).await?;
            grant.of.push((whose, bytes + OVERHEAD));
        }
        grant.bytes = bytes;
        Ok(grant)
    }

    async fn add(&self, app: &App, whose: &Whose, bytes: u64) -> Result<()> {
        let mut fit = self.try_add(whose, bytes);
        if let Fit::Unknown = fit {
            let began = Instant::now();
            let kept = whose.count(app).await?;
            self.learn(whose, kept, Instant::now(), began.elapsed());
            fit = self.try_add(whose, bytes);
        }
        match fit {
            Fit::Yes => Ok(()),
            Fit::No { used } => Err(whose.refusal(whose.limit(&self.limits), used)),
            // Forgotten again, or counted so slowly that it is old by now: there are too many uploads.
            Fit::Unknown => {
                Err(Problem::new(Code::Unavailable, "the files here could not be summed up").retry_after(500))
            }
        }
    }

    /// Counts the bytes as coming in if they fit. A [`Grant`] gives them back.
    pub fn try_add(&self, whose: &Whose, bytes: u64) -> Fit {
        let mut sums = self.sums.lock();
        let Some(sum) = sums.get_mut(whose) else { return Fit::Unknown };
        let used = sum.kept.saturating_add(sum.coming);
        if used.saturating_add(bytes) > whose.limit(&self.limits) {
            return if sum.is_stale() { Fit::Unknown } else { Fit::No { used } };
        }
        sum.coming += bytes;
        Fit::Yes
    }

    /// What was counted, when, and how long that took.
    pub fn learn(&self, whose: &Whose, kept: u64, counted: Instant, took: Duration) {
        let mut sums = self.sums.lock();
        if sums.len() >= SUMS_MAX {
            sums.retain(|_, sum| sum.coming > 0);
        }
        let coming = sums.get(whose).map_or(0, |sum| sum.coming);
        sums.insert(whose.clone(), Sum { kept, coming, counted, took });
    }

    /// Bytes kept and bytes of uploads under way, if they were counted.
    pub fn used(&self, whose: &Whose) -> Option<(u64, u64)> {
        self.sums.lock().get(whose).map(|sum| (sum.kept, sum.coming))
    }

    /// A file was deleted.
    pub fn forget(&self, owner: &Owner, bytes: u64) {
        let mut sums = self.sums.lock();
        for whose in owner.all() {
            if let Some(sum) = sums.get_mut(&whose) {
                sum.kept = sum.kept.saturating_sub(bytes + OVERHEAD);
            }
        }
    }
}

/// Room that an upload has taken, given back if it comes to nothing.
pub struct Grant {
    usage: Arc<Usage>,
    of: Vec<(Whose, u64)>,
    bytes: u64,
}

impl Grant {
    /// The file turned out to be at least so large.
    pub async fn reach(&mut self, app: &App, bytes: u64) -> Result<()> {
        if bytes <= self.bytes {
            return Ok(());
        }
        let more = bytes - self.bytes;
        for (whose, taken) in &mut self.of {
            self.usage.add(app, whose, more).await?;
            *taken += more;
        }
        self.bytes = bytes;
        Ok(())
    }

    /// The file is kept, and has so many bytes.
    pub fn keep(self, bytes: u64) {
        let mut sums = self.usage.sums.lock();
        for (whose, _) in &self.of {
            if let Some(sum) = sums.get_mut(whose) {
                sum.kept += bytes + OVERHEAD;
            }
        }
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        let mut sums = self.usage.sums.lock();
        for (whose, taken) in &self.of {
            if let Some(sum) = sums.get_mut(whose) {
                sum.coming = sum.coming.saturating_sub(*taken);
            }
        }
    }
}

/// Bytes on a disk that are free for this user, and all bytes of the disk. None: the system does not tell.
fn disk(folder: &Path) -> Option<(u64, u64)> {
    let told = rustix::fs::statvfs(folder).ok()?;
    Some((told.f_bavail.saturating_mul(told.f_frsize), told.f_blocks.saturating_mul(told.f_frsize)))
}

/// Whether so many bytes more leave the reserve alone. May block.
pub fn has_room(folder: &Path, limits: &Limits, bytes: u64) -> Result<()> {
    let Some((free, total)) = disk(folder) else { return Ok(()) };
    let reserve = limits.reserve.min(total / RESERVE_SHARE);
    if free >= reserve.saturating_add(bytes) {
        return Ok(());
    }
    let why = format!(
        "there is no room for artifacts: {free} bytes are free where they are kept, and {reserve} of them are reserved \
         (artifacts_reserve); make room there"
    );
    Err(Problem::new(Code::StoreFull, why).at("body").retry_after(1_000))
}
