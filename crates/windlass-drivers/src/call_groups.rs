//! Groups concurrent calls, so that they share a transaction and a wait for the disk. A call that is alone waits for no
//! other: groups form of the calls that arrive while earlier ones are running.

use std::{collections::VecDeque, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// The waiting calls, and the tasks that run them. A clone shares both.
pub struct CallGroups<C, A> {
    queue: Arc<Mutex<Queue<C, A>>>,
    max_tasks: usize,
    max_calls: usize,
}

struct Queue<C, A> {
    waiting: VecDeque<WaitingCall<C, A>>,
    tasks: usize,
}

/// A call of a group.
pub struct WaitingCall<C, A> {
    /// Its parameters.
    pub call: C,
    answer: oneshot::Sender<A>,
}

impl<C, A> WaitingCall<C, A> {
    /// Returns the answer to the caller, unless it was cancelled.
    pub fn answer(self, answer: A) {
        let _ = self.answer.send(answer);
    }
}

impl<C: Send + 'static, A: Send + 'static> CallGroups<C, A> {
    /// At most this many groups run at the same time, each with at most this many calls.
    pub fn new(max_tasks: usize, max_calls: usize) -> Self {
        let queue = Queue { waiting: VecDeque::new(), tasks: 0 };
        CallGroups { queue: Arc::new(Mutex::new(queue)), max_tasks, max_calls }
    }

    /// Adds a call to the next group, which `run` answers. `None` if the group was aborted before it was answered: its
    /// effect is unknown.
    pub async fn call<F>(
        &self,
        call: C,
        run: impl Fn(Vec<WaitingCall<C, A>>) -> F + Send + 'static,
    ) -> Option<A>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (sender, answer) = oneshot::channel();
        let needs_task = {
            let mut queue = self.queue.lock();
            queue.waiting.push_back(WaitingCall { call, answer: sender });
            let needs_task = queue.tasks < self.max_tasks;
            queue.tasks += usize::from(needs_task);
            needs_task
        };
        if needs_task {
            // A separate task, since a caller may be cancelled and the others must continue.
            let task = Task { groups: self.clone(), ended: false };
            tokio::spawn(task.run(run));
        }
        answer.await.ok()
    }
}

/// A task that runs groups until no call waits.
struct Task<C, A> {
    groups: CallGroups<C, A>,
    ended: bool,
}

impl<C, A> Task<C, A> {
    async fn run<F: Future<Output = ()>>(mut self, run: impl Fn(Vec<WaitingCall<C, A>>) -> F) {
        while let Some(group) = self.next_group() {
            run(group).await;
        }
    }

    /// The calls of the next group. `None` if no call waits, and then this task has ended for its callers.
    fn next_group(&mut self) -> Option<Vec<WaitingCall<C, A>>> {
        let mut queue = self.groups.queue.lock();
        // A cancelled caller no longer wants its effect.
        queue.waiting.retain(|waiting| !waiting.answer.is_closed());
        if queue.waiting.is_empty() {
            queue.tasks -= 1;
            self.ended = true;
            return None;
        }
        let calls = queue.waiting.len().min(self.groups.max_calls);
        Some(queue.waiting.drain(..calls).collect())
    }
}

/// Allows another task to start if this one panics or its runtime shuts down.
impl<C, A> Drop for Task<C, A> {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let mut queue = self.groups.queue.lock();
        queue.tasks -= 1;
        if queue.tasks == 0 {
            // No task would answer them.
            queue.waiting.clear();
        }
    }
}

impl<C, A> Clone for CallGroups<C, A> {
    fn clone(&self) -> Self {
        CallGroups { queue: self.queue.clone(), ..*self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::Semaphore;

    /// Answers each call with the size of its group, once the gate lets it.
    async fn size_of_group(gate: Arc<Semaphore>, group: Vec<WaitingCall<u32, usize>>) {
        gate.acquire().await.unwrap().forget();
        let calls = group.len();
        for waiting in group {
            assert_ne!(waiting.call, PANICS);
            waiting.answer(calls);
        }
    }

    const PANICS: u32 = 13;

    fn call(
        groups: &CallGroups<u32, usize>,
        gate: &Arc<Semaphore>,
        number: u32,
    ) -> impl Future<Output = Option<usize>> + use<> {
        let (groups, gate) = (groups.clone(), gate.clone());
        async move { groups.call(number, move |group| size_of_group(gate.clone(), group)).await }
    }

    #[tokio::test]
    async fn calls_that_arrive_while_one_runs_form_groups() {
        let (groups, gate) = (CallGroups::new(1, 3), Arc::new(Semaphore::new(0)));
        let calls = futures::future::join_all((0..6).map(|number| call(&groups, &gate, number)));
        let open = async { gate.add_permits(3) };
        let (sizes, ()) = tokio::join!(biased; calls, open);
        assert_eq!(sizes, [3, 3, 3, 3, 3, 3].map(Some));
    }

    #[tokio::test]
    async fn a_cancelled_call_is_left_out() {
        let (groups, gate) = (CallGroups::new(1, 3), Arc::new(Semaphore::new(0)));
        let mut first = Box::pin(call(&groups, &gate, 0));
        assert!(futures::poll!(&mut first).is_pending());
        tokio::task::yield_now().await;
        let (mut second, third) = (Box::pin(call(&groups, &gate, 1)), call(&groups, &gate, 2));
        assert!(futures::poll!(&mut second).is_pending());
        drop(second);
        gate.add_permits(2);
        assert_eq!(tokio::join!(first, third), (Some(1), Some(1)));
    }

    #[tokio::test]
    async fn a_group_that_panics_answers_none_and_the_next_one_runs() {
        let (groups, gate) = (CallGroups::new(1, 1), Arc::new(Semaphore::new(9)));
        assert_eq!(call(&groups, &gate, PANICS).await, None);
        assert_eq!(call(&groups, &gate, 1).await, Some(1));
    }
}
