//! A flow in the background.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use windrow_state::Finished;

use crate::flow::now_millis;
use crate::{Flow, MoveKind, RefreshError, RefreshReport};

/// Is told of every refresh of a flow in the background.
pub type RefreshListener = Arc<dyn Fn(&Result<RefreshReport, RefreshError>) + Send + Sync>;

/// A running background task of one flow. Dropping it stops the flow at once; what was not committed is done again
/// by the next one.
#[derive(Debug)]
pub struct FlowTask {
    flow: Arc<Flow>,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl FlowTask {
    /// Starts to keep `flow` fresh.
    #[must_use]
    pub fn spawn(flow: Arc<Flow>, listener: RefreshListener) -> Self {
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(keep_fresh(Arc::clone(&flow), stopped, listener));
        Self { flow, stop, task }
    }

    /// The flow.
    #[must_use]
    pub fn flow(&self) -> &Arc<Flow> {
        &self.flow
    }

    /// Stops: at once when idle; a running query has `grace` to finish.
    pub async fn stop(mut self, grace: Duration) {
        self.stop.send_replace(true);
        if tokio::time::timeout(grace, &mut self.task).await.is_err() {
            self.task.abort();
        }
    }
}

impl Drop for FlowTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn keep_fresh(flow: Arc<Flow>, mut stopped: watch::Receiver<bool>, listener: RefreshListener) {
    let options = flow.definition().options.clone();
    let mut backoff = options.cadence.backoff();
    loop {
        let result = flow.refresh().await;
        listener(&result);
        // A pause, and whether a notification ends it.
        let (pause, wakes) = match (&result, options.schedule) {
            (Err(_), _) => (backoff.failed(jitter()), false),
            (Ok(_), Some(schedule)) => (until(schedule.next_after(now_millis())), false),
            (Ok(report), None) => {
                let idle = report.kind == MoveKind::Idle;
                let finished = Finished {
                    mode: flow.status().mode(),
                    elapsed: report.elapsed,
                    idle,
                    more: report.more,
                    window: flow.window_length(),
                };
                (options.cadence.pause(&finished), idle)
            }
        };
        if result.is_ok() {
            backoff.succeeded();
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = flow.wake.notified(), if wakes => {}
            _ = stopped.wait_for(|stop| *stop) => return,
        }
        if *stopped.borrow() {
            return;
        }
    }
}

/// A random number from 0 to 1.
fn jitter() -> f64 {
    let random = RandomState::new().build_hasher().finish();
    random as f64 / u64::MAX as f64
}

fn until(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis.saturating_sub(now_millis())).unwrap_or(0))
}
