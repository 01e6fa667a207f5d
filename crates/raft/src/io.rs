//! Where this crate does what blocks on the disk.

use futures::FutureExt;
use futures::future::BoxFuture;
use meridian_base::runtime::Runtime;
use std::sync::Arc;
use tokio::sync::oneshot;

type Spawn = dyn Fn(BoxFuture<'static, ()>) + Send + Sync;

/// [`Runtime::run_io`], for what does not know the runtime's type.
#[derive(Clone)]
pub(crate) struct Io(Arc<Spawn>);

impl Io {
    pub(crate) fn new<R: Runtime>(runtime: R) -> Io {
        Io(Arc::new(move |work| runtime.spawn_io("snapshot", work)))
    }

    /// Waits for work that blocks.
    pub(crate) async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let (tell, told) = oneshot::channel();
        (self.0)(async move { drop(tell.send(work())) }.boxed());
        told.await.expect("work on the disk gives errors and does not panic")
    }
}
