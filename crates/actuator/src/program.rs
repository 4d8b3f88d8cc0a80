//! A program of the user with its arguments.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};

use muster_plan::Variable;

use crate::{ActuatorError, Wait};

/// Bytes at the end of a program's output that are read.
const LAST_WORDS: u64 = 2_048;
/// Characters of a program's last words that an error shows.
pub(crate) const SHOWN: usize = 200;

/// The words with variables replaced.
pub(crate) fn filled(words: &[String], variables: &[(&str, &str)]) -> Vec<String> {
    let fill = |word: &String| {
        let all = variables.iter();
        all.fold(word.clone(), |word, (name, value)| {
            word.replace(&format!("${{{name}}}"), value)
        })
    };
    words.iter().map(fill).collect()
}

/// A program with its arguments, and variables that it has in addition to those of this program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Program<'a> {
    pub(crate) words: &'a [String],
    pub(crate) environment: &'a [Variable],
}

/// Starts a program in another process group, so that a Ctrl-C in the terminal does not reach it. What it
/// prints to standard output and error goes to two files, which may be one.
pub(crate) fn start(
    program: &Program<'_>,
    out: &Path,
    errors: &Path,
) -> Result<Child, ActuatorError> {
    let variables = program.environment.iter();
    let variables = variables.map(|variable| (&variable.name, &variable.value));
    let [program, arguments @ ..] = program.words else {
        return Err(not_started("", io::ErrorKind::InvalidInput.into()));
    };
    let file = |path: &Path| {
        File::create(path)?;
        OpenOptions::new().append(true).open(path)
    };
    let spawn = || -> io::Result<Child> {
        Command::new(program)
            .args(arguments)
            .envs(variables.clone())
            .stdin(Stdio::null())
            .stdout(file(out)?)
            .stderr(file(errors)?)
            .process_group(0)
            .spawn()
    };
    spawn().map_err(|error| not_started(program, error))
}

fn not_started(program: &str, source: io::Error) -> ActuatorError {
    ActuatorError::Start {
        program: program.to_owned(),
        source,
    }
}

/// End of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandEnd {
    /// Its exit code; none if a signal or the time-out ended it.
    pub code: Option<i32>,
    /// Its end in words, such as `code 3` or `no exit after 0:10`.
    pub how: String,
    /// The last of its standard output, at most 2 KiB.
    pub output: String,
    /// The last line of its standard error, behind a colon; empty if there was none.
    pub said: String,
}

/// Runs a command of the shell `sh` to its end, or to that of the wait, which ends all that it has started. Its standard
/// output and error are in `NAME.log` and `NAME.err.log` of the folder.
///
/// # Errors
/// If it did not start, or the wait was interrupted.
pub fn run_shell(
    command: &str,
    folder: &Path,
    name: &str,
    wait: &Wait<'_>,
) -> Result<CommandEnd, ActuatorError> {
    let words = ["sh", "-c", command].map(str::to_owned);
    let program = Program {
        words: &words,
        environment: &[],
    };
    run_to_end(&program, folder, name, wait)
}

/// Runs a program to its end, and gives the last of what it printed. Its standard output and error are in
/// `NAME.log` and `NAME.err.log`.
pub(crate) fn run(
    program: &Program<'_>,
    folder: &Path,
    name: &str,
    wait: &Wait<'_>,
) -> Result<String, ActuatorError> {
    let end = run_to_end(program, folder, name, wait)?;
    match end.code {
        Some(0) => Ok(end.output),
        Some(_) | None => Err(ActuatorError::Failed {
            program: program.words.first().cloned().unwrap_or_default(),
            status: end.how,
            said: end.said,
        }),
    }
}

fn run_to_end(
    program: &Program<'_>,
    folder: &Path,
    name: &str,
    wait: &Wait<'_>,
) -> Result<CommandEnd, ActuatorError> {
    let out = folder.join(format!("{name}.log"));
    let errors = folder.join(format!("{name}.err.log"));
    let mut child = start(program, &out, &errors)?;
    let status = wait.until(|| Ok(child.try_wait().ok().flatten()));
    if !matches!(status, Ok(Some(_))) {
        end_now(&mut child);
    }
    let status = status?;
    Ok(CommandEnd {
        code: status.and_then(|status| status.code()),
        how: status.map_or_else(|| format!("no exit after {}", wait.length()), of_exit),
        output: tail(&out),
        said: last_words(&errors),
    })
}

/// Ends a program and what it started, at once.
pub(crate) fn end_now(child: &mut Child) {
    signal_group(child.id(), Signal::KILL);
    let _ = child.wait();
}

/// Sends a signal to a process group, which may be gone.
pub(crate) fn signal_group(leader: u32, signal: Signal) {
    let leader = i32::try_from(leader).ok().and_then(Pid::from_raw);
    if let Some(leader) = leader {
        let _ = kill_process_group(leader, signal);
    }
}

/// An exit in words.
pub(crate) fn of_exit(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "an unknown exit".to_owned(),
    }
}

/// The last line of a program's output, behind a colon.
pub(crate) fn last_words(output: &Path) -> String {
    let text = tail(output);
    let line = text
        .lines()
        .rev()
        .map(str::trim)
        .find(|line| !line.is_empty());
    line.map_or(String::new(), |line| {
        format!(": {}", line.chars().take(SHOWN).collect::<String>())
    })
}

/// The end of a file; nothing of one that cannot be read.
fn tail(path: &Path) -> String {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let from = file.metadata()?.len().saturating_sub(LAST_WORDS);
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(LAST_WORDS).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
}
