//! Passwords: argon2id, beside what answers requests, two at a time, and with a line that ends.

use crate::problem::{Code, Problem};
use argon2::{Argon2, PasswordHash, PasswordHasher, PasswordVerifier};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use tokio::sync::OnceCell;
use windlass_engine::{
    Engine,
    aside::{Aside, Pool, Undone, Yields},
};

/// One that asks gets half of them, so two work at a time. Each takes 19 MiB while it does.
const THREADS: usize = 4;
const WAITING_MAX: usize = 64;
const YIELDS: Yields = Yields::By(15);
pub const BYTES_MAX: usize = 1_024;
/// How many times as long as a hash took its thread rests, if others are in line and the server had something else to do. A
/// thread of low priority still delays those that wake up beside it by milliseconds.
const REST: u32 = 7;
const REST_MAX: Duration = Duration::from_millis(500);

pub struct Passwords {
    threads: Aside,
    /// Passwords under way.
    asked: Arc<AtomicUsize>,
    /// Of a password nobody has. Who does not exist is checked against it, so that it takes as long.
    nobody: OnceCell<Arc<str>>,
}

impl Default for Passwords {
    fn default() -> Self {
        let pool = Pool { name: "passwords", threads: THREADS, yields: YIELDS, waiting_max: WAITING_MAX };
        Self { threads: Aside::new(pool), asked: Arc::default(), nobody: OnceCell::new() }
    }
}

impl Passwords {
    /// As it is stored.
    pub async fn hash(&self, engine: &Engine, password: String) -> Result<String, Problem> {
        self.aside(engine, move || hash(&password)).await
    }

    /// None: there is nobody whose password it could be.
    pub async fn fits(&self, engine: &Engine, password: String, stored: Option<&str>) -> Result<bool, Problem> {
        let (stored, is_known): (Arc<str>, bool) = match stored {
            Some(stored) => (stored.into(), true),
            None => (self.nobody(engine).await?, false),
        };
        let fits = self.aside(engine, move || fits(&password, &stored)).await?;
        Ok(fits && is_known)
    }

    async fn nobody(&self, engine: &Engine) -> Result<Arc<str>, Problem> {
        let draw = || async {
            let password = windlass_engine::ids::secret().to_string();
            self.hash(engine, password).await.map(Arc::from)
        };
        self.nobody.get_or_try_init(draw).await.cloned()
    }

    async fn aside<T: Send + 'static>(
        &self,
        engine: &Engine,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let (engine, asked) = (engine.clone(), CountedCheck::new(&self.asked));
        let work = move || {
            let (begun, commands) = (Instant::now(), engine.counts().commands);
            let done = work();
            if asked.others() && engine.counts().commands != commands {
                thread::sleep((begun.elapsed() * REST).min(REST_MAX));
            }
            done
        };
        self.threads.run(None, work).await.map_err(|undone| match undone {
            Undone::TooMany(_) => {
                Problem::new(Code::Unavailable, "too many passwords wait to be checked").retry_after(2_000)
            }
            Undone::Failed => Problem::new(Code::Internal, undone.to_string()),
        })
    }
}

/// One of the passwords under way; also when its caller does not wait any longer.
struct CountedCheck(Arc<AtomicUsize>);

impl CountedCheck {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count.clone())
    }

    fn others(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 1
    }
}

impl Drop for CountedCheck {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn hash(password: &str) -> String {
    let salt: [u8; 16] = rand::random();
    let hashed: PasswordHash = Argon2::default()
        .hash_password_with_salt(password.as_bytes(), &salt)
        .expect("the package's own parameters fit");
    hashed.to_string()
}

fn fits(password: &str, stored: &str) -> bool {
    Argon2::default().verify_password(password.as_bytes(), stored).is_ok()
}
