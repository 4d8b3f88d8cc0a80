//! The file of `muster gateway --users`: who may connect, one a line. A file, since what stands
//! on a command line can be read by everybody on the machine.

use std::path::Path;

use anyhow::{Context, Result, bail};
use muster_gateway::{Demand, User};

/// Reads a file of lines `name:password`; empty lines and those that begin with `#` say nothing.
/// The password is the rest of its line as it stands.
pub(crate) fn read(path: &Path) -> Result<Vec<User>> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("read the users {}", path.display()))?;
    parse(&path.display().to_string(), &text, "name:password").context("read the users")
}

/// Reads a file of one line `method:secret`, for `muster gateway --authentication`.
pub(crate) fn read_demand(path: &Path) -> Result<Demand> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("read --authentication {}", path.display()))?;
    let lines = parse(&path.display().to_string(), &text, "method:secret");
    let mut lines = lines.context("read --authentication")?;
    match (lines.pop(), lines.is_empty()) {
        (Some(User { name, password }), true) => Ok(Demand {
            method: name,
            secret: password,
        }),
        (Some(_) | None, _) => bail!("{} asks for more than one method", path.display()),
    }
}

/// Errors never show a line: it may be a password.
fn parse(file: &str, text: &str, form: &str) -> Result<Vec<User>> {
    let mut users = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        match line.split_once(':') {
            Some((name, password)) if !name.is_empty() => users.push(User {
                name: name.to_owned(),
                password: password.to_owned(),
            }),
            Some(_) | None => {
                bail!("{file}:{number} has nothing before a colon; write it as {form}")
            }
        }
    }
    if users.is_empty() {
        bail!("{file} has no line; write {form}, or leave the option out");
    }
    Ok(users)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: &str = "name:password";

    #[test]
    fn users_are_read_line_by_line_without_comments() {
        let users = parse("users", "# who may\n\nmeter:a:b #\nother:\n", FORM).expect("two users");
        let read: Vec<(&str, &str)> = users
            .iter()
            .map(|user| (user.name.as_str(), user.password.as_str()))
            .collect();
        assert_eq!(read, [("meter", "a:b #"), ("other", "")]);
    }

    #[test]
    fn a_wrong_line_is_named_by_its_number_and_not_shown() {
        for wrong in ["a:b\nsecret\n", "a:b\n:secret\n"] {
            let error = parse("users", wrong, FORM)
                .expect_err("the second line is wrong")
                .to_string();
            assert_eq!(
                error,
                "users:2 has nothing before a colon; write it as name:password"
            );
        }
    }

    #[test]
    fn a_file_that_names_nobody_does_not_admit_everybody() {
        assert!(parse("users", "# nobody\n", FORM).is_err());
    }
}
