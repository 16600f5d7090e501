//! How often a caller may ask: a bucket each, which fills at a rate and holds a second's worth.

use crate::problem::Failure;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The buckets of all callers.
pub(crate) struct Limiter {
    per_second: f64,
    buckets: Mutex<HashMap<String, Bucket>>,
}

struct Bucket {
    left: f64,
    at: Instant,
}

/// Beyond so many callers, those whose buckets are full again are forgotten.
const MOST_BUCKETS: usize = 10_000;

impl Limiter {
    pub(crate) fn new(per_second: u32) -> Limiter {
        Limiter { per_second: f64::from(per_second), buckets: Mutex::default() }
    }

    /// Lets one request of a caller in, or says when to come again.
    pub(crate) fn admit(&self, caller: &str, now: Instant) -> Result<(), Failure> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MOST_BUCKETS && !buckets.contains_key(caller) {
            buckets.retain(|_, bucket| self.filled(bucket, now) < self.per_second);
        }
        let full = || Bucket { left: self.per_second, at: now };
        let bucket = buckets.entry(caller.to_owned()).or_insert_with(full);
        bucket.left = self.filled(bucket, now);
        bucket.at = now;
        if bucket.left < 1.0 {
            let wait = (1.0 - bucket.left) / self.per_second;
            let detail = "more requests than server.requests_per_second allows; try again later";
            return Err(Failure::too_many(detail, wait.ceil() as u64));
        }
        bucket.left -= 1.0;
        Ok(())
    }

    fn filled(&self, bucket: &Bucket, now: Instant) -> f64 {
        let grown = now.saturating_duration_since(bucket.at).as_secs_f64() * self.per_second;
        (bucket.left + grown).min(self.per_second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_second_holds_so_many_and_callers_do_not_share() {
        let (limiter, start) = (Limiter::new(3), Instant::now());
        let admitted =
            |caller: &str, at| (0..10).filter(|_| limiter.admit(caller, at).is_ok()).count();
        assert_eq!(admitted("a", start), 3);
        assert_eq!(admitted("b", start), 3);
        assert_eq!(admitted("a", start + Duration::from_millis(700)), 2);
        assert_eq!(admitted("a", start + Duration::from_secs(60)), 3);
    }

    #[test]
    fn the_number_of_buckets_is_bounded() {
        let (limiter, start) = (Limiter::new(1), Instant::now());
        for caller in 0..MOST_BUCKETS {
            limiter.admit(&caller.to_string(), start).unwrap();
        }
        limiter.admit("one more", start + Duration::from_secs(2)).unwrap();
        assert_eq!(limiter.buckets.lock().unwrap().len(), 1);
    }
}
