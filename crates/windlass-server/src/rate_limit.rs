//! The request rate limit: each caller has a token bucket that holds one second's worth of requests.

use crate::problem::ApiError;
use governor::clock::{Clock, MonotonicClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};
use std::num::NonZeroU32;

/// The token buckets of all callers. A bucket that has not been used is full.
pub(crate) struct RequestLimiter<C: Clock = MonotonicClock> {
    buckets: RateLimiter<String, HashMapStateStore<String>, C, NoOpMiddleware<C::Instant>>,
    clock: C,
}

/// With this many buckets, the full ones are removed before another is added.
const MAX_BUCKETS: usize = 10_000;

impl RequestLimiter {
    pub(crate) fn new(per_second: u32) -> RequestLimiter {
        RequestLimiter::with_clock(per_second, MonotonicClock)
    }
}

impl<C: Clock + Clone> RequestLimiter<C> {
    fn with_clock(per_second: u32, clock: C) -> RequestLimiter<C> {
        let quota = Quota::per_second(NonZeroU32::new(per_second).unwrap_or(NonZeroU32::MIN));
        let buckets = RateLimiter::new(quota, HashMapStateStore::default(), clock.clone());
        RequestLimiter { buckets, clock }
    }

    /// Counts one request of a caller. Fails with 429 and `retry-after` when the bucket is empty.
    pub(crate) fn check(&self, caller: &str) -> Result<(), ApiError> {
        if self.buckets.len() >= MAX_BUCKETS {
            self.buckets.retain_recent();
        }
        self.buckets.check_key(&caller.to_owned()).map_err(|refused| {
            let wait = refused.wait_time_from(self.clock.now());
            let detail = "more requests than server.requests_per_second allows; try again later";
            ApiError::too_many_requests(detail, wait.as_secs_f64().ceil().max(1.0) as u64)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use governor::clock::FakeRelativeClock;
    use std::time::Duration;

    #[test]
    fn a_bucket_holds_one_second_of_requests_and_callers_do_not_share_it() {
        let clock = FakeRelativeClock::default();
        let limiter = RequestLimiter::with_clock(3, clock.clone());
        let admitted = |caller: &str| (0..10).filter(|_| limiter.check(caller).is_ok()).count();
        assert_eq!(admitted("a"), 3);
        assert_eq!(admitted("b"), 3);
        clock.advance(Duration::from_millis(700));
        assert_eq!(admitted("a"), 2);
        clock.advance(Duration::from_secs(60));
        assert_eq!(admitted("a"), 3);
    }

    #[test]
    fn the_number_of_buckets_is_bounded() {
        let clock = FakeRelativeClock::default();
        let limiter = RequestLimiter::with_clock(1, clock.clone());
        for caller in 0..MAX_BUCKETS {
            limiter.check(&caller.to_string()).unwrap();
        }
        clock.advance(Duration::from_secs(2));
        limiter.check("one more").unwrap();
        assert_eq!(limiter.buckets.len(), 1);
    }
}
