//! Tasks whose panic must not go unnoticed.
//!
//! A task that panics ends, and nothing else does: what waits for its work waits on. A task that
//! others count on is wrapped in [`alarmed`], so that the node stops instead.

/// Runs a task. If it panics, `alarm` is called while its stack unwinds.
pub async fn alarmed<T>(task: impl Future<Output = T>, alarm: impl FnOnce()) -> T {
    let _guard = Alarm(Some(alarm));
    task.await
}

struct Alarm<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> Drop for Alarm<F> {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Some(alarm) = self.0.take()
        {
            alarm();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[tokio::test]
    async fn the_alarm_is_raised_by_a_panic_alone() {
        let raised = Arc::new(AtomicBool::new(false));
        let alarm = || {
            let raised = raised.clone();
            move || raised.store(true, Ordering::Relaxed)
        };
        assert_eq!(alarmed(async { 7 }, alarm()).await, 7);
        let dropped = tokio::spawn(alarmed(std::future::pending::<()>(), alarm()));
        tokio::task::yield_now().await;
        dropped.abort();
        assert!(dropped.await.expect_err("it was ended").is_cancelled());
        assert!(!raised.load(Ordering::Relaxed));
        tokio::spawn(alarmed(async { panic!("planted") }, alarm())).await.expect_err("it panicked");
        assert!(raised.load(Ordering::Relaxed));
    }
}
