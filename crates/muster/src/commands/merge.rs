//! `muster merge`.

use anyhow::{Result, bail};
use muster_conduct::Part;
use muster_measure::Record;
use muster_report::{html, steps_csv, text};
use muster_result::{Archive, encoded};

use crate::args::MergeArgs;
use crate::folder::{Folder, read_archive};
use crate::outcome;
use crate::outputs::write_certificate;

/// Width of the summary in characters.
const WIDTH: usize = 100;

/// Makes one result and one verdict of the parts of one run; the exit code is the verdict.
pub(crate) fn merge(args: &MergeArgs) -> Result<u8> {
    let parts = args.folders.iter().map(|folder| read_archive(folder));
    let parts = parts.collect::<Result<Vec<_>>>()?;
    for part in &parts {
        outcome::warn_unread(part.unread.as_deref());
    }
    check_parts(&parts)?;
    let mut parts = parts.into_iter();
    let Some(mut whole) = parts.next() else {
        bail!("merge: no part is named")
    };
    for part in parts {
        whole.merge(part)?;
    }
    whole.header.part = Part::WHOLE;
    let mut folder = Folder::create(&args.out)?;
    folder.record(&Record::Header(encoded(&whole.header)));
    folder.record(&Record::Windows(Box::new(whole.windows.clone())));
    for record in whole.last_records() {
        folder.record(&record);
    }
    let report = whole.report()?;
    folder.write("result.json", &report.to_json());
    folder.write("report.html", &html(&report));
    if let Some(steps) = steps_csv(&report) {
        folder.write("steps.csv", &steps);
    }
    write_certificate(&mut folder, &report, args.sign.as_deref());
    outcome::say(&text(&report, WIDTH));
    if let Some(broken) = &folder.broken {
        bail!("{broken}");
    }
    Ok(report.verdict.exit_code())
}

/// Every part of the whole must be there, once.
fn check_parts(archives: &[Archive]) -> Result<()> {
    let parts: Vec<Part> = archives.iter().map(|part| part.header.part).collect();
    let has_backend = archives
        .first()
        .is_some_and(|part| !part.header.plan.backends.is_empty());
    if !Part::are_whole(&parts, has_backend) {
        let names: Vec<String> = parts.iter().map(ToString::to_string).collect();
        bail!(
            "merge the parts {}: give each share of the devices once, and of the backend, such as \
             devices and backend, or 1/2 and 2/2",
            names.join(", ")
        );
    }
    Ok(())
}
