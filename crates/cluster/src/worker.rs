//! A worker process: this program again, with an assignment on its standard input.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::SyncSender;

use muster_agent::{Assignment, FrameError, News, read_frame, write_frame};
use muster_conduct::Order;

/// A worker process under way. It ends by itself when its standard input does.
#[derive(Debug)]
pub(crate) struct Worker {
    child: Child,
    orders: ChildStdin,
}

impl Worker {
    /// Starts a worker and hands it its assignment; its news come through `news` with `index`.
    pub(crate) fn start(
        mut program: Command,
        assignment: &Assignment,
        index: usize,
        news: SyncSender<(usize, News)>,
    ) -> Result<Self, FrameError> {
        // A group of its own, so that Ctrl-C at the terminal reaches the controller alone, which
        // then has its workers settle.
        program.process_group(0);
        let mut child = program
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (mut orders, stories) =
            pipes.ok_or_else(|| io::Error::other("a worker without pipes"))?;
        write_frame(&mut orders, assignment)?;
        std::thread::Builder::new()
            .name(format!("worker-{index}"))
            .spawn(move || listen(stories, index, &news))?;
        Ok(Self { child, orders })
    }

    /// Passes an order on; a worker that is gone has said so by the end of its news.
    pub(crate) fn order(&mut self, order: Order) {
        let _ = write_frame(&mut self.orders, &order);
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // A worker that has done its work has ended; one that hangs must not outlive the run.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn listen(mut stories: ChildStdout, index: usize, news: &SyncSender<(usize, News)>) {
    loop {
        let story = match read_frame::<News>(&mut stories) {
            Ok(Some(story)) => story,
            Ok(None) => News::Lost("the worker process ended before its work was done".to_owned()),
            Err(error) => News::Lost(error.to_string()),
        };
        let is_last = matches!(story, News::Ended(_) | News::Lost(_));
        if news.send((index, story)).is_err() || is_last {
            return;
        }
    }
}
