//! The thread of calls: logs in, and then has a task for each call.

use std::sync::Arc;
use std::time::Duration;

use muster_conduct::CommandToken;
use muster_net::Waker;
use tokio::select;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::api::{Api, Command};
use super::connection::Answer;
use crate::amqp::refusal::Loss;

/// The wait before another login: short, since no command is issued meanwhile.
const RETRY: Duration = Duration::from_millis(100);
/// Doublings of that wait, up to 1.6 s.
const DOUBLINGS_MAX: u32 = 4;

/// A command on its way to the thread.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) token: CommandToken,
    pub(super) command: Command,
}

/// The end of a call.
pub(super) struct Called {
    pub(super) token: CommandToken,
    pub(super) is_two_way: bool,
    pub(super) answer: Result<Answer, Loss>,
}

/// A piece of news for the loop.
pub(super) enum News {
    /// The platform has let us in.
    Up,
    /// The platform has not let us in, for this reason.
    Down(Loss),
    Called(Called),
}

/// The work of the thread.
pub(super) struct Worker {
    pub(super) api: Arc<Api>,
    /// Closed at the end of the run.
    pub(super) commands: mpsc::Receiver<Outgoing>,
    pub(super) reporter: Reporter,
}

/// The way of news to the loop.
#[derive(Clone)]
pub(super) struct Reporter {
    pub(super) news: mpsc::Sender<News>,
    pub(super) waker: Waker,
}

impl Reporter {
    async fn report(&self, news: News) {
        // The loop may be gone.
        let _ = self.news.send(news).await;
        self.waker.wake();
    }
}

impl Worker {
    /// Works until the run is over; calls that are still open then are dropped.
    pub(super) async fn run(mut self) {
        let mut failures = 0;
        while let Err(loss) = self.api.log_in().await {
            self.reporter.report(News::Down(loss)).await;
            let wait = RETRY * (1 << failures.min(DOUBLINGS_MAX));
            failures += 1;
            select! {
                () = sleep(wait) => {}
                // No command is issued before the login, so that this is the end.
                _ = self.commands.recv() => return,
            }
        }
        self.reporter.report(News::Up).await;
        let mut calls = JoinSet::new();
        loop {
            select! {
                command = self.commands.recv() => match command {
                    Some(command) => {
                        calls.spawn(call(Arc::clone(&self.api), command, self.reporter.clone()));
                    }
                    None => return,
                },
                Some(_) = calls.join_next() => {}
            }
        }
    }
}

async fn call(api: Arc<Api>, Outgoing { token, command }: Outgoing, reporter: Reporter) {
    let called = Called {
        token,
        is_two_way: command.is_two_way,
        answer: api.command(&command).await,
    };
    reporter.report(News::Called(called)).await;
}
