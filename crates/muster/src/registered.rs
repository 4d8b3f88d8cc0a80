//! The file of `muster gateway --devices`: which devices are registered, one a line.

use std::path::Path;

use anyhow::{Context, Result, bail};
use muster_gateway::KnownDevice;

use crate::lines;

/// Reads a file of lines `device@tenant`; lines without text and those that begin with `#` are passed
/// over.
pub(crate) fn read(path: &Path) -> Result<Vec<KnownDevice>> {
    let lines = lines::read(path).context("read --devices")?;
    parse(&path.display().to_string(), &lines).context("read --devices")
}

fn parse(file: &str, lines: &[(usize, String)]) -> Result<Vec<KnownDevice>> {
    let devices = lines.iter().map(|(number, line)| {
        let parts = line.rsplit_once('@');
        match parts.map(|(device, tenant)| (device.trim(), tenant.trim())) {
            Some((device, tenant)) if !device.is_empty() && !tenant.is_empty() => Ok(KnownDevice {
                tenant: tenant.to_owned(),
                device: device.to_owned(),
            }),
            Some(_) | None => {
                bail!("{file}:{number}: `{line}` names no device; write it as device@tenant")
            }
        }
    });
    devices.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Vec<KnownDevice>> {
        parse("devices", &lines::parse("devices", text.as_bytes())?)
    }

    #[test]
    fn devices_are_read_line_by_line_without_comments() {
        let devices = parsed("# all\n\nns:d-1@t1\na@b @ t2\n").expect("two devices");
        let read: Vec<(&str, &str)> = devices
            .iter()
            .map(|known| (known.device.as_str(), known.tenant.as_str()))
            .collect();
        assert_eq!(read, [("ns:d-1", "t1"), ("a@b", "t2")]);
        assert!(parsed("").is_ok_and(|devices| devices.is_empty()));
    }

    #[test]
    fn a_wrong_line_is_named_by_its_number() {
        for wrong in ["d-1", "@t1", "d-1@"] {
            let error = parsed(&format!("a@t\n{wrong}\n"));
            let error = error.expect_err("the second line is wrong").to_string();
            let expected =
                format!("devices:2: `{wrong}` names no device; write it as device@tenant");
            assert_eq!(error, expected);
        }
    }
}
