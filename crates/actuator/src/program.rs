//! A program of the user with its arguments.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::{ActuatorError, Wait};

/// Bytes at the end of a program's output in which its last words are looked for.
const LAST_WORDS: usize = 2_048;
/// Characters of a program's last words that an error shows.
const SHOWN: usize = 200;

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

/// Starts a program in another process group, so that a Ctrl-C in the terminal does not reach it. Its
/// standard output and error go to a file.
pub(crate) fn start(words: &[String], output: &Path) -> Result<Child, ActuatorError> {
    let [program, arguments @ ..] = words else {
        return Err(not_started("", io::ErrorKind::InvalidInput.into()));
    };
    let open = || -> io::Result<Child> {
        let out = File::create(output)?;
        let errors = out.try_clone()?;
        Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(errors)
            .process_group(0)
            .spawn()
    };
    open().map_err(|error| not_started(program, error))
}

fn not_started(program: &str, source: io::Error) -> ActuatorError {
    ActuatorError::Start {
        program: program.to_owned(),
        source,
    }
}

/// Runs a program to its end, and gives what it printed.
pub(crate) fn run(
    words: &[String],
    output: &Path,
    wait: &Wait<'_>,
) -> Result<String, ActuatorError> {
    let mut child = start(words, output)?;
    let ended = wait.until(|| Ok(child.try_wait().ok().flatten()));
    let failed = |status: String| ActuatorError::Failed {
        program: words.join(" "),
        status,
        said: last_words(output),
    };
    match ended {
        Ok(Some(status)) if status.success() => Ok(fs::read_to_string(output).unwrap_or_default()),
        Ok(Some(status)) => Err(failed(of_exit(status))),
        Ok(None) => {
            end_now(&mut child);
            Err(failed(format!("no exit after {}", wait.length())))
        }
        Err(error) => {
            end_now(&mut child);
            Err(error)
        }
    }
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
    let bytes = fs::read(output).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(LAST_WORDS)..]);
    let line = text
        .lines()
        .rev()
        .map(str::trim)
        .find(|line| !line.is_empty());
    line.map_or(String::new(), |line| {
        format!(": {}", line.chars().take(SHOWN).collect::<String>())
    })
}
