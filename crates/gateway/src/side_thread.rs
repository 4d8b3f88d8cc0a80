//! A thread with a runtime for what is not driven by the gateway's event loops.

use std::io;
use std::thread::{Builder, JoinHandle};

use tokio::sync::oneshot;

/// A running thread; dropping it ends its tasks and waits for it.
#[derive(Debug)]
pub(crate) struct SideThread {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl SideThread {
    /// Starts a thread; what `prepare` gives runs there until the thread is dropped. `prepare` itself runs here,
    /// within the runtime.
    pub(crate) fn start<T>(name: &str, prepare: impl FnOnce() -> io::Result<T>) -> io::Result<Self>
    where
        T: Future<Output = ()> + Send + 'static,
    {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let task = {
            let _inside = runtime.enter();
            prepare()?
        };
        let (stop, stopped) = oneshot::channel();
        let serve = move || {
            runtime.spawn(task);
            // It ends when the sender is dropped, which shows as an error.
            let _ = runtime.block_on(stopped);
        };
        let thread = Builder::new().name(name.to_owned()).spawn(serve)?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for SideThread {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so on stderr.
            let _ = thread.join();
        }
    }
}
