//! A gateway in another process, so that its work is not the generator's: both ends of the pipe
//! between them.
//!
//! The parent writes lines, the child answers each with one line of JSON: first the
//! [`GatewayConfig`], answered by [`Listening`]; then `account` as often as it likes, answered by
//! a [`GatewayAccount`]; `stop` or the end of the input ends the child, with a last account. So a
//! child never outlives its parent, however that ends.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Gateway, GatewayAccount, GatewayConfig, ListenAddresses, StartError};

const ASK: &str = "account";
const STOP: &str = "stop";

/// Longest wait for an answer of a gateway process; the longest answer is a final account with
/// hashes.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// Lines that may wait to be read: each answers one request, and one request is open at a time.
const ANSWERS_MAX: usize = 4;

/// First message of a child.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Listening {
    /// Listens on these addresses.
    At(ListenAddresses),
    /// Failed to start, for this reason.
    Failed(String),
}

/// Reasons for which the pipe between a gateway and its parent broke.
#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    /// The child could not start its gateway.
    #[error("{0}")]
    Start(String),
    /// The other process is gone, or the system refused.
    #[error("the gateway process cannot be reached: {0}")]
    Pipe(#[from] io::Error),
    /// A line is not what this pipe carries.
    #[error("the gateway process said what is no answer: {0}")]
    Line(#[from] serde_json::Error),
}

impl From<StartError> for ChildError {
    fn from(error: StartError) -> Self {
        Self::Start(error.to_string())
    }
}

/// The child's end: runs a gateway as configured until it receives `stop`, or until its parent is
/// gone.
///
/// # Errors
/// [`ChildError`] if the gateway could not be started (which the parent receives), or the pipe
/// broke in the middle of a line.
pub fn run_until_stopped(input: impl BufRead, mut output: impl Write) -> Result<(), ChildError> {
    let mut lines = input.lines();
    let Some(line) = lines.next() else {
        return Ok(());
    };
    let config: GatewayConfig = serde_json::from_str(&line?)?;
    let gateway = match Gateway::start(config) {
        Ok(gateway) => gateway,
        Err(error) => {
            write_line(&mut output, &Listening::Failed(error.to_string()))?;
            return Err(error.into());
        }
    };
    write_line(&mut output, &Listening::At(gateway.addresses().clone()))?;
    for line in lines {
        if line?.trim() == STOP {
            break;
        }
        write_line(&mut output, &gateway.account())?;
    }
    write_line(&mut output, &gateway.stop())
}

/// The parent's end: a gateway in another process. Dropping it ends the process.
#[derive(Debug)]
pub struct ChildGateway {
    child: Child,
    orders: Option<ChildStdin>,
    answers: Receiver<io::Result<String>>,
    addresses: ListenAddresses,
}

impl ChildGateway {
    /// Starts `program`, which must call [`run_until_stopped`] on its standard input and output.
    ///
    /// # Errors
    /// [`ChildError`] if the process, or the gateway in it, does not start.
    pub fn start(mut program: Command, config: &GatewayConfig) -> Result<Self, ChildError> {
        // A new group, so that Ctrl-C at the terminal stops the run and not its target.
        program.process_group(0);
        let mut child = program
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (orders, answers) =
            pipes.ok_or_else(|| io::Error::other("a gateway process without pipes"))?;
        let answers = listen(answers)?;
        let mut gateway = Self {
            child,
            orders: Some(orders),
            answers,
            addresses: ListenAddresses::default(),
        };
        gateway.send(&serde_json::to_string(config)?)?;
        match gateway.receive()? {
            Listening::At(addresses) => gateway.addresses = addresses,
            Listening::Failed(reason) => return Err(ChildError::Start(reason)),
        }
        Ok(gateway)
    }

    /// The addresses on which it listens.
    pub fn addresses(&self) -> &ListenAddresses {
        &self.addresses
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its account up to now.
    ///
    /// # Errors
    /// [`ChildError`] if the process is gone.
    pub fn account(&mut self) -> Result<GatewayAccount, ChildError> {
        self.send(ASK)?;
        self.receive()
    }

    /// Stops it and gives its final account.
    ///
    /// # Errors
    /// [`ChildError`] if the process was gone already.
    pub fn stop(mut self) -> Result<GatewayAccount, ChildError> {
        self.send(STOP)?;
        let account = self.receive()?;
        self.orders = None;
        self.child.wait()?;
        Ok(account)
    }

    fn send(&mut self, line: &str) -> Result<(), ChildError> {
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        let orders = self.orders.as_mut().ok_or_else(gone)?;
        writeln!(orders, "{line}")?;
        Ok(orders.flush()?)
    }

    /// The next answer; a process that gives none in time (it hangs, or was frozen) is gone.
    fn receive<T: for<'de> Deserialize<'de>>(&mut self) -> Result<T, ChildError> {
        let late = || io::Error::new(io::ErrorKind::TimedOut, "it does not answer");
        let line = self
            .answers
            .recv_timeout(ANSWER_MAX)
            .map_err(|_| late())??;
        Ok(serde_json::from_str(&line)?)
    }
}

/// Reads the child's lines on another thread, so that waiting for one can have a bound.
fn listen(answers: ChildStdout) -> io::Result<Receiver<io::Result<String>>> {
    let (lines, inbox) = sync_channel(ANSWERS_MAX);
    std::thread::Builder::new()
        .name("gateway-answers".to_owned())
        .spawn(move || {
            for line in BufReader::new(answers).lines() {
                if lines.send(line).is_err() {
                    return;
                }
            }
        })?;
    Ok(inbox)
}

impl Drop for ChildGateway {
    fn drop(&mut self) {
        // One that has stopped has ended already; one that hangs must not outlive the run.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn write_line(output: &mut impl Write, value: &impl Serialize) -> Result<(), ChildError> {
    let line = serde_json::to_string(value)?;
    writeln!(output, "{line}")?;
    Ok(output.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_answers_each_line_and_ends_with_its_input() {
        let config = serde_json::to_string(&GatewayConfig::default()).expect("plain data");
        for ending in ["stop\nunread\n", ""] {
            let input = format!("{config}\naccount\n{ending}");
            let mut output = Vec::new();
            run_until_stopped(input.as_bytes(), &mut output).expect("it runs");
            let text = String::from_utf8(output).expect("text");
            let lines: Vec<&str> = text.lines().collect();
            assert_eq!(lines.len(), 3, "{text}");
            let first: Listening = serde_json::from_str(lines[0]).expect("where it listens");
            assert!(
                matches!(first, Listening::At(at) if at.get("mqtt").is_some_and(|at| at.port() != 0))
            );
            for line in &lines[1..] {
                let account: GatewayAccount = serde_json::from_str(line).expect("an account");
                assert_eq!(account, GatewayAccount::default());
            }
        }
    }

    #[test]
    fn a_child_that_cannot_listen_says_so() {
        let taken = Gateway::start(GatewayConfig::default()).expect("a gateway");
        let config = GatewayConfig {
            listen: ListenAddresses::new(taken.addr()),
            ..GatewayConfig::default()
        };
        let input = serde_json::to_string(&config).expect("plain data");
        let mut output = Vec::new();
        assert!(run_until_stopped(input.as_bytes(), &mut output).is_err());
        let first: Listening = serde_json::from_slice(&output).expect("a line");
        assert!(matches!(first, Listening::Failed(reason) if reason.contains("cannot listen")));
    }
}
