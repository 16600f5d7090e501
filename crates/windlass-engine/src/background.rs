//! Background tasks of a process: joined at shutdown, and a panic in one is logged at once.

use futures::FutureExt;
use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use tokio_util::task::TaskTracker;

/// The background tasks that one owner has spawned.
#[derive(Default)]
pub(crate) struct BackgroundTasks {
    tasks: TaskTracker,
}

impl BackgroundTasks {
    /// Spawns a task. If it panics, the panic is logged with the task's name.
    pub(crate) fn spawn(
        &self,
        name: &'static str,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        self.tasks.spawn(async move {
            if let Err(panic) = AssertUnwindSafe(task).catch_unwind().await {
                tracing::error!(task = name, panic = message(&*panic), "background task panicked");
            }
        });
    }

    /// Waits until all tasks have ended.
    pub(crate) async fn join(self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn join_waits_for_every_task_even_when_one_panics() {
        let tasks = BackgroundTasks::default();
        let (sender, receiver) = tokio::sync::oneshot::channel();
        tasks.spawn("panics", async { panic!("on purpose") });
        tasks.spawn("ends", async move { sender.send(()).unwrap() });
        tasks.join().await;
        assert!(receiver.await.is_ok());
    }

    #[test]
    fn the_message_of_a_panic_is_found() {
        for panic in [Box::new("text") as Box<dyn Any + Send>, Box::new("text".to_owned())] {
            assert_eq!(message(&*panic), "text");
        }
        assert_eq!(message(&7), "no message");
    }
}
