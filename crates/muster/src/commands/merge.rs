//! `muster merge`.

use anyhow::{Result, bail};
use muster_conduct::Slice;
use muster_measure::Record;
use muster_report::{html, text};

use crate::archive::{Archive, encoded};
use crate::args::MergeArgs;
use crate::folder::Folder;
use crate::outcome;

/// Width of the summary in characters.
const WIDTH: usize = 100;

/// Makes one result and one verdict of the parts of one run; the exit code is the verdict.
pub(crate) fn merge(args: &MergeArgs) -> Result<u8> {
    let parts = args.folders.iter().map(|folder| Archive::read(folder));
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
    whole.header.part = Slice::WHOLE;
    let mut folder = Folder::create(&args.out)?;
    folder.record(&Record::Header(encoded(&whole.header)));
    folder.record(&Record::Windows(Box::new(whole.windows.clone())));
    for record in whole.last_records() {
        folder.record(&record);
    }
    let report = whole.report()?;
    folder.write("result.json", &report.to_json());
    folder.write("report.html", &html(&report));
    outcome::say(&text(&report, WIDTH));
    if let Some(broken) = &folder.broken {
        bail!("{broken}");
    }
    Ok(report.verdict.exit_code())
}

/// Every part of the whole must be there, once.
fn check_parts(parts: &[Archive]) -> Result<()> {
    let of = parts.first().map_or(1, |part| part.header.part.of);
    let mut seen: Vec<u32> = parts.iter().map(|part| part.header.part.index).collect();
    seen.sort_unstable();
    let is_whole = seen.iter().copied().eq(0..of);
    let is_one = parts.iter().all(|part| part.header.part.of == of);
    if !is_whole || !is_one {
        let names: Vec<String> = parts
            .iter()
            .map(|part| format!("{}/{}", part.header.part.index + 1, part.header.part.of))
            .collect();
        bail!(
            "merge the parts {}: give each part of 1/{of} to {of}/{of} once",
            names.join(", ")
        );
    }
    Ok(())
}
