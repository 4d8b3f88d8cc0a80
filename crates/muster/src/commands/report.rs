//! `muster report`.

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use muster_report::{Report, csv, hdr, hono_simulator, html, junit, sap, text, thingsboard};

use crate::args::{Format, ReportArgs};
use crate::folder::{damage, read_archive};
use crate::outcome;

/// Width of the summary in characters.
const WIDTH: usize = 100;

/// Shows a result in another form. The exit code is 0: the verdict is in the report.
pub(crate) fn report(args: &ReportArgs) -> Result<u8> {
    if args.format == Format::Hdr {
        let archive = read_archive(&args.folder)?;
        outcome::warn_unread(archive.unread.as_deref());
        let log = hdr(&archive.windows, &archive.stream_names());
        std::io::stdout()
            .lock()
            .write_all(&log)
            .context("write the log")?;
        return Ok(outcome::PASS);
    }
    let report = read(&args.folder)?;
    outcome::say(&match args.format {
        Format::Html => html(&report),
        Format::Csv => csv(&report),
        Format::Junit => junit(&report),
        Format::Json => report.to_json(),
        Format::Sap => sap(&report).context(
            "show this run as `sap`: it has no figures of SAP Edge, which come with `platform: \
             { kind: sap-edge }` and with `dialect: sap-edge`; try --format text",
        )?,
        Format::HonoSimulator => hono_simulator(&report).context(
            "show this run as `hono-simulator`: it has no figures of Hono, which come with `dialect: \
             hono` (and from a run that was not killed); try --format text",
        )?,
        Format::Thingsboard => thingsboard(&report).context(
            "show this run as `thingsboard`: nothing of the target was watched, and nothing counted on the server; add \
             `monitor`, or `provision: { count: true }`",
        )?,
        Format::Text | Format::Hdr => text(&report, WIDTH),
    });
    Ok(outcome::PASS)
}

/// The result of a folder; where there is none, or none that can be read (a run that was killed,
/// a disk that was full), it is made of the windows.
pub(crate) fn read(folder: &Path) -> Result<Report> {
    let path = folder.join("result.json");
    if path.exists() {
        let json = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        match Report::from_json(&json) {
            Ok(report) => {
                outcome::warn_unread(damage(folder).as_deref());
                return Ok(report);
            }
            Err(error) => outcome::remark(&format!(
                "warning: {} cannot be read ({error}); the windows are taken instead",
                path.display()
            )),
        }
    }
    let archive = read_archive(folder)?;
    outcome::warn_unread(archive.unread.as_deref());
    archive.report()
}
