//! Hashing and verifying passwords. bcrypt is slow on purpose, so it runs on blocking threads, and
//! only so many at a time: whoever floods the store with logins must not take the processors from
//! those already inside.

use std::{fmt, num::NonZero, thread};

use bytes::Bytes;
use rand::RngExt as _;
use tokio::{sync::Semaphore, task};

use super::Error;

/// More than bcrypt takes in, and more than etcd accepts.
const PASSWORD_BYTES_MAX: usize = 72;

/// Passwords that may wait for a processor or have one. At bcrypt's default cost and one processor
/// the last of them waits about as long as clients do before they give up.
const WAITING_MAX: usize = 128;

/// The work factors bcrypt knows.
const COSTS: std::ops::RangeInclusive<u32> = 4..=31;

/// A bcrypt hash in its text form. May be empty, and then matches no password.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PasswordHash(Bytes);

/// Hashes and verifies.
#[derive(Debug)]
pub(crate) struct Passwords {
    cost: u32,
    waiting: Semaphore,
    running: Semaphore,
}

// === impl PasswordHash ===

impl PasswordHash {
    pub(crate) fn to_bytes(&self) -> Bytes {
        self.0.clone()
    }

    fn matches(&self, password: &str) -> bool {
        // A hash that is none, which an administrator may have set, is as good as a wrong password.
        let text = std::str::from_utf8(&self.0);
        text.is_ok_and(|text| bcrypt::verify(password, text).is_ok_and(|is_equal| is_equal))
    }
}

impl From<Bytes> for PasswordHash {
    fn from(text: Bytes) -> Self {
        Self(text)
    }
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordHash(…)")
    }
}

// === impl Passwords ===

impl Passwords {
    /// A `cost` that bcrypt does not know is replaced by its default, as etcd does.
    pub(crate) fn new(cost: u32) -> Self {
        let cost = if COSTS.contains(&cost) { cost } else { bcrypt::DEFAULT_COST };
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        Self {
            cost,
            waiting: Semaphore::new(WAITING_MAX),
            running: Semaphore::new((processors / 2).max(1)),
        }
    }

    pub(crate) async fn hash(&self, password: String) -> Result<PasswordHash, Error> {
        if password.len() > PASSWORD_BYTES_MAX {
            return Err(Error::PasswordTooLong);
        }
        let (cost, salt) = (self.cost, rand::rng().random());
        self.run(move || {
            let hash = bcrypt::hash_with_salt_bytes(password, cost, salt)
                .expect("the only error is a cost out of range, and ours was checked");
            PasswordHash(Bytes::copy_from_slice(&hash))
        })
        .await
    }

    pub(super) async fn verify(&self, hash: PasswordHash, password: String) -> Result<bool, Error> {
        self.run(move || hash.matches(&password)).await
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let _place = self.waiting.try_acquire().map_err(|_full| Error::TooManyPasswords)?;
        let _processor = self.running.acquire().await.expect("the semaphore is never closed");
        // A panic in bcrypt is as final for this request as a runtime that stops taking work.
        task::spawn_blocking(work).await.map_err(|_cancelled| Error::Stopped)
    }
}
