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
    /// A call was not answered, for this reason: another login comes before further commands.
    Lost(Loss),
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

/// The end of a task.
enum Done {
    LoggedIn,
    Answered,
    /// A call was not answered that was made after this number of logins.
    Lost {
        logins: u32,
        loss: Loss,
    },
}

impl Worker {
    /// Works until the run is over; tasks that are still open then are dropped.
    pub(super) async fn run(mut self) {
        let mut tasks = JoinSet::new();
        tasks.spawn(log_in(Arc::clone(&self.api), self.reporter.clone()));
        let (mut logins, mut is_up) = (0, false);
        loop {
            select! {
                command = self.commands.recv() => match command {
                    Some(command) => {
                        let call = call(Arc::clone(&self.api), command, self.reporter.clone());
                        tasks.spawn(async move {
                            let loss = call.await;
                            loss.map_or(Done::Answered, |loss| Done::Lost { logins, loss })
                        });
                    }
                    None => return,
                },
                Some(done) = tasks.join_next() => match done {
                    Ok(Done::LoggedIn) => {
                        (logins, is_up) = (logins + 1, true);
                        self.reporter.report(News::Up).await;
                    }
                    // Calls from before the last login say nothing about it.
                    Ok(Done::Lost { logins: of, loss }) if is_up && of == logins => {
                        is_up = false;
                        self.reporter.report(News::Lost(loss)).await;
                        tasks.spawn(log_in_anew(Arc::clone(&self.api), self.reporter.clone()));
                    }
                    Ok(Done::Answered | Done::Lost { .. }) | Err(_) => {}
                },
            }
        }
    }
}

/// Logs in although there is a session.
async fn log_in_anew(api: Arc<Api>, reporter: Reporter) -> Done {
    api.forget().await;
    log_in(api, reporter).await
}

/// Logs in, and reports each failure before another try.
async fn log_in(api: Arc<Api>, reporter: Reporter) -> Done {
    let mut failures = 0;
    while let Err(loss) = api.log_in().await {
        reporter.report(News::Down(loss)).await;
        sleep(RETRY * (1 << failures.min(DOUBLINGS_MAX))).await;
        failures += 1;
    }
    Done::LoggedIn
}

/// Makes a call; the loss if it is not answered.
async fn call(
    api: Arc<Api>,
    Outgoing { token, command }: Outgoing,
    reporter: Reporter,
) -> Option<Loss> {
    let answer = api.command(&command).await;
    let loss = answer.as_ref().err().cloned();
    let called = Called {
        token,
        is_two_way: command.is_two_way,
        answer,
    };
    reporter.report(News::Called(called)).await;
    loss
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;
    use tokio::runtime;
    use tokio::time::timeout;

    use super::*;
    use crate::rpc::api::tests::{DEVICE, OLD, answer, api, serve};

    /// A worker for calls of a server, the way of commands to it, and its news.
    fn worker(api: Api) -> (Worker, mpsc::Sender<Outgoing>, mpsc::Receiver<News>) {
        let (queue, commands) = mpsc::channel(1);
        let (news, reported) = mpsc::channel(8);
        let waker = Waker::new().expect("a waker");
        let worker = Worker {
            api: Arc::new(api),
            commands,
            reporter: Reporter { news, waker },
        };
        (worker, queue, reported)
    }

    /// Issues a command.
    async fn issue(queue: &mpsc::Sender<Outgoing>) {
        let command = Command {
            device: "a".to_owned(),
            is_two_way: false,
            body: b"{}".to_vec(),
        };
        let token = CommandToken(0);
        let sent = queue.send(Outgoing { token, command }).await;
        sent.expect("the worker takes it");
    }

    /// A server that is gone while it is called has lost us, and we are back when it lets us in again.
    #[test]
    fn a_server_that_goes_is_lost_until_it_is_back() {
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let address = listener.local_addr().expect("its address");
            let (worker, queue, mut news) = worker(api(address));
            let server = async {
                // It hangs up when it is asked for the device, and has not started whole when we log in again.
                let connections: [&[(u16, &str)]; 4] =
                    [&[(200, OLD)], &[], &[(503, "")], &[(200, OLD)]];
                for answers in connections {
                    serve(&listener, answers).await;
                }
            };
            let issued = async {
                let mut next = async || news.recv().await.expect("news");
                assert!(matches!(next().await, News::Up));
                issue(&queue).await;
                assert!(matches!(next().await, News::Called(called) if called.answer.is_err()));
                assert!(matches!(next().await, News::Lost(_)));
                assert!(matches!(next().await, News::Down(_)));
                assert!(matches!(next().await, News::Up));
                drop(queue);
            };
            tokio::join!(worker.run(), server, issued);
        });
    }

    /// Two calls are open when the first one is lost; the second one is lost after the next login.
    #[test]
    fn a_call_from_before_a_login_does_not_end_it() {
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let address = listener.local_addr().expect("its address");
            let (worker, queue, mut news) = worker(api(address));
            let called = async {
                let connection = async || listener.accept().await.expect("the client connects").0;
                let mut first = connection().await;
                answer(&mut first, 200, OLD).await;
                assert!(matches!(news.recv().await, Some(News::Up)));
                issue(&queue).await;
                // Its look-up, so that the other call needs a connection.
                answer(&mut first, 200, DEVICE).await;
                issue(&queue).await;
                let second = connection().await;
                drop(first);
                let is_called = |of| matches!(of, Some(News::Called(_)));
                assert!(is_called(news.recv().await));
                assert!(matches!(news.recv().await, Some(News::Lost(_))));
                serve(&listener, &[(200, OLD)]).await;
                assert!(matches!(news.recv().await, Some(News::Up)));
                drop(second);
                assert!(is_called(news.recv().await));
                drop(queue);
                assert!(news.recv().await.is_none());
            };
            tokio::join!(worker.run(), called);
        });
    }

    /// A server that never answers holds back no end of a run, however long an answer may take.
    #[test]
    fn the_end_of_a_run_ends_a_login() {
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let (worker, queue, _news) = worker(Api {
                patience: Duration::from_secs(3_600),
                ..api(listener.local_addr().expect("its address"))
            });
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
