//! Event streams: how many are open at once, for each caller and in all.

use crate::problem::{Answer, Failure};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The open streams, by caller.
pub(crate) struct Streams {
    open: Mutex<HashMap<String, usize>>,
    most: usize,
    most_per_caller: usize,
}

/// A stream's place, until it ends.
pub(crate) struct StreamPlace {
    streams: Arc<Streams>,
    caller: String,
}

/// When a caller with too many streams may try again.
const RETRY_SECONDS: u64 = 5;

impl Streams {
    pub(crate) fn new(most: usize, most_per_caller: usize) -> Arc<Streams> {
        Arc::new(Streams { open: Mutex::default(), most, most_per_caller })
    }

    /// A place for another stream of a caller.
    pub(crate) fn open(self: &Arc<Self>, caller: &str) -> Answer<StreamPlace> {
        let mut open = self.lock();
        let own = open.get(caller).copied().unwrap_or_default();
        if own >= self.most_per_caller {
            return Err(full("server.max_streams_per_caller", self.most_per_caller));
        }
        if open.values().sum::<usize>() >= self.most {
            return Err(full("server.max_streams", self.most));
        }
        open.insert(caller.to_owned(), own + 1);
        Ok(StreamPlace { streams: self.clone(), caller: caller.to_owned() })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        let mut open = self.streams.lock();
        if let Some(own) = open.get_mut(&self.caller) {
            *own -= 1;
            if *own == 0 {
                open.remove(&self.caller);
            }
        }
    }
}

fn full(setting: &str, most: usize) -> Failure {
    Failure::too_many(
        format!("{most} event streams are open, the most of {setting}"),
        RETRY_SECONDS,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_counted_by_caller_and_in_all_until_they_end() {
        let streams = Streams::new(3, 2);
        let ada = [streams.open("ada").unwrap(), streams.open("ada").unwrap()];
        assert!(streams.open("ada").is_err());
        let bob = streams.open("bob").unwrap();
        assert!(streams.open("bob").is_err(), "three are open");
        drop((ada, bob));
        assert!(streams.lock().is_empty());
    }
}
