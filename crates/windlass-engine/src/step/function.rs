//! A Rust function as a step.

use super::{ItemContext, Step, StepBatch, StepError, StepItem};
use async_trait::async_trait;
use futures::{FutureExt, StreamExt};
use serde::de::DeserializeOwned;
use std::any::Any;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::AssertUnwindSafe;
use windlass_core::{ItemError, Outcome};

/// Items of one batch that a function works at once, so that one that waits on the network does
/// not hold up the others.
const AT_ONCE: usize = 32;

/// Calls a function once per record, which arrives as the function's own type.
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
            // All of it may panic: reading the record, calling the function, and its future.
            let called = async move {
                let record = record.parse::<T>().map_err(|error| {
                    ItemError::permanent(format!(
                        "the record does not fit the handler's type: {error}"
                    ))
                })?;
                (self.function)(record, context).await
            };
            async move {
                let answer = AssertUnwindSafe(called).catch_unwind().await;
                answer.unwrap_or_else(panicked).unwrap_or_else(Outcome::Error)
            }
        };
        Ok(futures::stream::iter(batch.items.iter().map(call)).buffered(AT_ONCE).collect().await)
    }
}

/// A handler that panics has failed on its item, and on no other.
fn panicked(panic: Box<dyn Any + Send>) -> Result<Outcome, ItemError> {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    Err(ItemError::permanent(format!("the handler panicked: {text}")))
}
