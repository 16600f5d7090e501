//! Runs a registered Rust function as a step, once per record.

use super::{ItemContext, Step, StepBatch, StepError, StepItem};
use async_trait::async_trait;
use futures::{FutureExt, StreamExt};
use serde::de::DeserializeOwned;
use std::any::Any;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::AssertUnwindSafe;
use windlass_core::{ItemError, Outcome};

/// Items of a batch that a function processes concurrently, so that one that waits for the network
/// does not delay the rest.
const MAX_CONCURRENT_ITEMS: usize = 32;

/// Calls a function once per record, deserialized to the type that the function takes.
pub(crate) struct FunctionStep<T, F> {
    function: F,
    record: PhantomData<fn() -> T>,
}

impl<T, F> FunctionStep<T, F> {
    pub(crate) fn new(function: F) -> Self {
        FunctionStep { function, record: PhantomData }
    }
}

#[async_trait]
impl<T, F, Fut> Step for FunctionStep<T, F>
where
    T: DeserializeOwned + Send + 'static,
    F: Fn(T, ItemContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Outcome, ItemError>> + Send + 'static,
{
    async fn process(&self, batch: StepBatch) -> Result<Vec<Outcome>, StepError> {
        let call = |item: &StepItem| {
            let (record, context) = (item.record.clone(), batch.context(item));
            // All of this may panic: deserializing, calling the function, and polling its future.
            let called = async move {
                let record = record.parse::<T>().map_err(|error| {
                    ItemError::permanent(format!(
                        "cannot deserialize the record for the handler: {error}"
                    ))
                })?;
                (self.function)(record, context).await
            };
            async move {
                let result = AssertUnwindSafe(called).catch_unwind().await;
                result.unwrap_or_else(panicked).unwrap_or_else(Outcome::Error)
            }
        };
        Ok(futures::stream::iter(batch.items.iter().map(call))
            .buffered(MAX_CONCURRENT_ITEMS)
            .collect()
            .await)
    }
}

/// A panic fails only the item that the handler was called for.
fn panicked(panic: Box<dyn Any + Send>) -> Result<Outcome, ItemError> {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    Err(ItemError::permanent(format!("the handler panicked: {text}")))
}
