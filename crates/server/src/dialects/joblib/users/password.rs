//! Passwords: argon2id, beside what answers requests, two at a time, and with a line that ends.

use crate::problem::{Code, Problem};
use argon2::{Argon2, PasswordHash, PasswordHasher, PasswordVerifier};
use std::sync::Arc;
use tokio::sync::OnceCell;
use windlass_engine::aside::{Aside, Pool, Undone};

/// One that asks gets half of them, so two work at a time. Each takes 19 MiB while it does.
const THREADS: usize = 4;
const WAITING_MAX: usize = 64;
const YIELDS: i32 = 15;
pub const BYTES_MAX: usize = 1_024;

pub struct Passwords {
    threads: Aside,
    /// Of a password nobody has. Who does not exist is checked against it, so that it takes as long.
    nobody: OnceCell<Arc<str>>,
}

impl Default for Passwords {
    fn default() -> Self {
        let pool = Pool { name: "passwords", threads: THREADS, yields: YIELDS, waiting_max: WAITING_MAX };
        Self { threads: Aside::new(pool), nobody: OnceCell::new() }
    }
}

impl Passwords {
    /// As it is stored.
    pub async fn hash(&self, password: String) -> Result<String, Problem> {
        self.aside(move || hash(&password)).await
    }

    /// None: there is nobody whose password it could be.
    pub async fn fits(&self, password: String, stored: Option<&str>) -> Result<bool, Problem> {
        let (stored, is_known): (Arc<str>, bool) = match stored {
            Some(stored) => (stored.into(), true),
            None => (self.nobody().await?, false),
        };
        let fits = self.aside(move || fits(&password, &stored)).await?;
        Ok(fits && is_known)
    }

    async fn nobody(&self) -> Result<Arc<str>, Problem> {
        let draw = || async {
            let password = windlass_engine::ids::secret().to_string();
            self.hash(password).await.map(Arc::from)
        };
        self.nobody.get_or_try_init(draw).await.cloned()
    }

    async fn aside<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Problem> {
        self.threads.run(None, work).await.map_err(|undone| match undone {
            Undone::TooMany(_) => {
                Problem::new(Code::Unavailable, "too many passwords wait to be checked").retry_after(2_000)
            }
            Undone::Failed => Problem::new(Code::Internal, undone.to_string()),
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_password_fits_its_own_hash_and_no_other() {
        let passwords = Passwords::default();
        let stored = passwords.hash("correct horse".into()).await.unwrap();
        assert!(stored.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{stored}");
        assert!(passwords.fits("correct horse".into(), Some(&stored)).await.unwrap());
        assert!(!passwords.fits("correct horsf".into(), Some(&stored)).await.unwrap());
        assert!(!passwords.fits("correct horse".into(), None).await.unwrap());
        assert_ne!(stored, passwords.hash("correct horse".into()).await.unwrap(), "salted");
    }
}
