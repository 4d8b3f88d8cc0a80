//! The file of `muster gateway --users`: who may connect, one a line. A file, since what stands
//! on a command line can be read by everybody on the machine.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use muster_gateway::{Demand, User};

use crate::lines;

/// Reads a file of lines `name:password`; lines without text and those that begin with `#` are passed
/// over. A line has no blanks around its name and its password.
pub(crate) fn read(path: &Path) -> Result<Vec<User>> {
    let users = pairs(path, "name:password").context("read the users")?;
    let user = |(name, password): (String, String)| User {
        name,
        password: password.into_bytes(),
    };
    Ok(users.into_iter().map(user).collect())
}

/// Reads a file of one line `method:secret`, for `muster gateway --authentication`.
pub(crate) fn read_demand(path: &Path) -> Result<Demand> {
    let mut lines = pairs(path, "method:secret").context("read --authentication")?;
    match (lines.pop(), lines.is_empty()) {
        (Some((method, secret)), true) => Ok(Demand { method, secret }),
        (Some(_) | None, _) => bail!(
            "read --authentication: {} asks for more than one method; keep one line",
            path.display()
        ),
    }
}

fn pairs(path: &Path, form: &str) -> Result<Vec<(String, String)>> {
    parse(&path.display().to_string(), &lines::read(path)?, form)
}

/// Errors never show a line: it may be a password.
fn parse(file: &str, lines: &[(usize, String)], form: &str) -> Result<Vec<(String, String)>> {
    let mut pairs = Vec::new();
    let mut lines_of = HashMap::new();
    for (number, line) in lines {
        let Some((name, secret)) = line.split_once(':').filter(|(name, _)| !name.is_empty()) else {
            bail!("{file}:{number} has nothing before a colon; write it as {form}");
        };
        if name != name.trim() || secret != secret.trim() {
            bail!("{file}:{number} has blanks at its colon; write it as {form}");
        }
        if let Some(first) = lines_of.insert(name, number) {
            bail!("{file}:{number} has the same name as line {first}; remove one of them");
        }
        pairs.push((name.to_owned(), secret.to_owned()));
    }
    if pairs.is_empty() {
        bail!("{file} has no line; write {form}, or leave the option out");
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Vec<(String, String)>> {
        let lines = lines::parse("users", text.as_bytes())?;
        parse("users", &lines, "name:password")
    }

    #[test]
    fn users_are_read_line_by_line_without_comments() {
        let users = parsed("# who may\n\nmeter:a:b #\nother:\n").expect("two users");
        let pair = |name: &str, password: &str| (name.to_owned(), password.to_owned());
        assert_eq!(users, [pair("meter", "a:b #"), pair("other", "")]);
    }

    #[test]
    fn a_wrong_line_is_named_by_its_number_and_not_shown() {
        for wrong in ["a:b\nsecret\n", "a:b\n:secret\n"] {
            let error = parsed(wrong)
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
        assert!(parsed("# nobody\n").is_err());
    }

    #[test]
    fn a_name_that_stands_twice_is_refused_with_both_lines() {
        let error = parsed("a:1\n\nb:2\na:3\n").expect_err("whose password is it?");
        let expected = "users:4 has the same name as line 1; remove one of them";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn a_blank_beside_the_colon_is_refused() {
        for wrong in ["a:b\nc : d\n", "a:b\nc: d\n"] {
            let error = parsed(wrong).expect_err("the second line is wrong");
            let expected = "users:2 has blanks at its colon; write it as name:password";
            assert_eq!(error.to_string(), expected);
        }
    }
}
