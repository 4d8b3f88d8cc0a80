//! `muster completions` and `muster man`: what the arguments say of themselves.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use clap::{Command, CommandFactory};

use crate::args::{Arguments, CompletionsArgs, ManArgs};
use crate::outcome;

/// Prints the completions of a shell.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<u8> {
    let mut script = Vec::new();
    let mut command = visible(&Arguments::command());
    clap_complete::generate(args.shell, &mut command, "muster", &mut script);
    outcome::say(&String::from_utf8(script).context("write the completions as UTF-8")?);
    Ok(outcome::PASS)
}

/// The same command without what is hidden, which completions would offer all the same.
fn visible(command: &Command) -> Command {
    let arguments = command.get_arguments().filter(|it| !it.is_hide_set());
    let below = command.get_subcommands().filter(|it| !it.is_hide_set());
    Command::new(command.get_name().to_owned())
        .about(command.get_about().cloned().unwrap_or_default())
        .version(command.get_version().unwrap_or_default().to_owned())
        .disable_version_flag(command.get_version().is_none())
        .args(arguments.cloned())
        .subcommands(below.map(visible))
}

/// Prints the manual page of the program, or writes it with that of each command.
pub(crate) fn man(args: &ManArgs) -> Result<u8> {
    let command = shown(Arguments::command());
    let Some(folder) = &args.out else {
        outcome::say(&page(command)?);
        return Ok(outcome::PASS);
    };
    fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    write_pages(folder, "muster", command)?;
    Ok(outcome::PASS)
}

/// The command with all that people may use, and nothing that is hidden.
fn shown(command: Command) -> Command {
    let mut shown = command.disable_help_subcommand(true);
    shown.build();
    shown
}

/// Writes the page of a command and those of the commands below it.
fn write_pages(folder: &Path, name: &str, command: Command) -> Result<()> {
    let below = command
        .get_subcommands()
        .filter(|below| !below.is_hide_set());
    for below in below {
        write_pages(
            folder,
            &format!("{name}-{}", below.get_name()),
            below.clone(),
        )?;
    }
    let path = folder.join(format!("{name}.1"));
    let text = page(command.display_name(name.to_owned()))?;
    fs::write(&path, text).with_context(|| format!("write {}", path.display()))
}

fn page(command: Command) -> Result<String> {
    let mut page = Vec::new();
    let man = clap_mangen::Man::new(command);
    man.render(&mut page).context("write the manual page")?;
    String::from_utf8(page).context("write the manual page as UTF-8")
}

#[cfg(test)]
mod tests {
    use clap_complete::Shell;

    use super::*;

    #[test]
    fn completions_offer_what_people_may_use_and_nothing_else() {
        for shell in [
            Shell::Bash,
            Shell::Zsh,
            Shell::Fish,
            Shell::PowerShell,
            Shell::Elvish,
        ] {
            let mut command = visible(&Arguments::command());
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut command, "muster", &mut script);
            let script = String::from_utf8(script).expect("text");
            for word in ["provision", "all-links", "websocket", "version"] {
                assert!(script.contains(word), "{shell}: {word}");
            }
            for word in ["agent", "embedded"] {
                assert!(!script.contains(word), "{shell}: {word}");
            }
        }
    }
}
