//! A Rust function as a step, and a job type together with its function.

use super::{ItemContext, Step, StepBatch, StepError, StepItem};
use async_trait::async_trait;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use serde::de::DeserializeOwned;
use std::any::Any;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use windlass_core::job_type_builder::{Declared, Handler, JobTypeBuilder};
use windlass_core::{ItemError, JobType, Outcome};

/// A job type with the code that it needs, as [`Builder::job`](crate::Builder::job) takes it: a
/// [`JobType`], or a [`JobTypeBuilder`] with its step. The compiler infers `Record`, the type that a
/// handler takes.
///
/// ```no_run
/// use windlass_core::{Config, ItemError, JobType, Outcome};
/// use windlass_engine::{Builder, Engine, ItemContext};
///
/// async fn skip(_: serde_json::Value, _: ItemContext) -> Result<Outcome, ItemError> {
///     Ok(Outcome::Skip)
/// }
///
/// fn engine(config: Config) -> Builder {
///     let job = JobType::builder("SKIP").connection("app").table("visits").handler(skip);
///     Engine::builder(config).job(job)
/// }
/// ```
pub trait JobDefinition<Record> {
    /// The job type, and its handler where it has one.
    fn into_job(self) -> (JobType, Option<Arc<dyn Step>>);
}

impl JobDefinition<()> for JobType {
    fn into_job(self) -> (JobType, Option<Arc<dyn Step>>) {
        (self, None)
    }
}

impl JobDefinition<()> for JobTypeBuilder<Declared> {
    fn into_job(self) -> (JobType, Option<Arc<dyn Step>>) {
        (self.into_job_type(), None)
    }
}

impl<T, F, Fut> JobDefinition<T> for JobTypeBuilder<Handler<F>>
where
    T: DeserializeOwned + Send + 'static,
    F: Fn(T, ItemContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Outcome, ItemError>> + Send + 'static,
{
    fn into_job(self) -> (JobType, Option<Arc<dyn Step>>) {
        let (job_type, function) = self.into_parts();
        (job_type, Some(Arc::new(FunctionStep::new(function))))
    }
}

/// Items of one batch that a function processes concurrently, so that an item that waits on the network
/// does not delay the rest of the batch.
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
            // Reading the record, calling the function and polling its future can all panic.
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
        Ok(in_order(batch.items.iter().map(call)).await)
    }
}

/// The results of futures in their order. Each is polled once where it is made: most functions do not wait,
/// and then no task is needed. Those that wait do so concurrently, with up to [`MAX_CONCURRENT_ITEMS`].
async fn in_order<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut results: Vec<Option<F::Output>> = Vec::with_capacity(futures.size_hint().0);
    let mut waiting = FuturesUnordered::new();
    // Used again for the next future if this one was ready at once.
    let mut ready = None::<Pin<Box<F>>>;
    for (index, future) in futures.enumerate() {
        while waiting.len() >= MAX_CONCURRENT_ITEMS {
            if let Some((index, result)) = waiting.next().await {
                results[index] = Some(result);
            }
        }
        let mut next = match ready.take() {
            Some(mut place) => {
                place.set(future);
                place
            }
            None => Box::pin(future),
        };
        match futures::poll!(&mut next) {
            Poll::Ready(result) => {
                results.push(Some(result));
                ready = Some(next);
            }
            Poll::Pending => {
                results.push(None);
                waiting.push(async move { (index, next.await) });
            }
        }
    }
    while let Some((index, result)) = waiting.next().await {
        results[index] = Some(result);
    }
    results.into_iter().flatten().collect()
}

/// A panic fails its own item permanently and no other.
fn panicked(panic: Box<dyn Any + Send>) -> Result<Outcome, ItemError> {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    Err(ItemError::permanent(format!("the handler panicked: {text}")))
}
