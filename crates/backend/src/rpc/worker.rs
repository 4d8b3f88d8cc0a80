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
use crate::loss::Loss;

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
        select! {
            () = log_in(&self.api, &self.reporter) => {}
            // No command is issued before the login, so that this is the end.
            _ = self.commands.recv() => return,
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

/// Logs in, and reports each failure before another try.
async fn log_in(api: &Api, reporter: &Reporter) {
    let mut failures = 0;
    while let Err(loss) = api.log_in().await {
        reporter.report(News::Down(loss)).await;
        sleep(RETRY * (1 << failures.min(DOUBLINGS_MAX))).await;
        failures += 1;
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

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;
    use tokio::runtime;
    use tokio::time::timeout;

    use super::*;
    use crate::rpc::api::tests::api;

    /// A server that never answers holds back no end of a run, however long an answer may take.
    #[test]
    fn the_end_of_a_run_ends_a_login() {
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let (queue, commands) = mpsc::channel(1);
            let (news, _reported) = mpsc::channel(1);
            let worker = Worker {
                api: Arc::new(Api {
                    patience: Duration::from_secs(3_600),
                    ..api(listener.local_addr().expect("its address"))
                }),
                commands,
                reporter: Reporter {
                    news,
                    waker: Waker::new().expect("a waker"),
                },
            };
            let ends = async {
                let _link = listener.accept().await.expect("it logs in");
                drop(queue);
                std::future::pending::<()>().await;
            };
            let ended = async {
                select! {
                    () = worker.run() => {}
                    () = ends => {}
                }
            };
            timeout(Duration::from_secs(60), ended)
                .await
                .expect("it ends");
        });
    }
}
