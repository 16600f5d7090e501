//! Limits on open event streams, per caller and in total.

use crate::problem::{ApiError, ApiResult};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// The number of open streams of each caller.
pub(crate) struct EventStreams {
    open: Mutex<HashMap<String, usize>>,
    max_total: usize,
    max_per_caller: usize,
}

/// Permission to keep one stream open; dropping it closes the stream for the count.
pub(crate) struct StreamPermit {
    streams: Arc<EventStreams>,
    caller: String,
}

/// The `retry-after` of a refused stream.
const RETRY_SECONDS: u64 = 5;

impl EventStreams {
    pub(crate) fn new(max_total: usize, max_per_caller: usize) -> Arc<EventStreams> {
        Arc::new(EventStreams { open: Mutex::default(), max_total, max_per_caller })
    }

    /// Counts another stream of a caller, or fails with 429.
    pub(crate) fn acquire(self: &Arc<Self>, caller: &str) -> ApiResult<StreamPermit> {
        let mut open = self.open.lock();
        let own = open.get(caller).copied().unwrap_or_default();
        if own >= self.max_per_caller {
            return Err(limit_reached("server.max_streams_per_caller", self.max_per_caller));
        }
        if open.values().sum::<usize>() >= self.max_total {
            return Err(limit_reached("server.max_streams", self.max_total));
        }
        open.insert(caller.to_owned(), own + 1);
        Ok(StreamPermit { streams: self.clone(), caller: caller.to_owned() })
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut open = self.streams.open.lock();
        if let Some(own) = open.get_mut(&self.caller) {
            *own -= 1;
            if *own == 0 {
                open.remove(&self.caller);
            }
        }
    }
}

fn limit_reached(setting: &str, limit: usize) -> ApiError {
    let detail = format!("{limit} event streams are already open, the limit of {setting}");
    ApiError::too_many_requests(detail, RETRY_SECONDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_streams_are_limited_per_caller_and_in_total() {
        let streams = EventStreams::new(3, 2);
        let ada = [streams.acquire("ada").unwrap(), streams.acquire("ada").unwrap()];
        assert!(streams.acquire("ada").is_err());
        let bob = streams.acquire("bob").unwrap();
        assert!(streams.acquire("bob").is_err(), "three streams are open in total");
        drop((ada, bob));
        assert!(streams.open.lock().is_empty());
    }
}
