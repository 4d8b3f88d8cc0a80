//! The steps of a search, judged again by the windows of the run that held them.

use anyhow::{Context, Result, bail};
use muster_measure::{Record, Records, Timeline};
use muster_report::CapacityStep;

use crate::archive::{Header, Note, decoded};
use crate::capacity::{CapacitySearch, SearchBegun};

/// The steps of a search as the windows of a run give them.
#[derive(Debug)]
pub struct Replayed {
    /// The search, as the run began with it.
    pub begun: SearchBegun,
    /// Number of the run among those of the search, from 1.
    pub session: u64,
    /// The steps, with those of earlier runs.
    pub steps: Vec<CapacityStep>,
    /// True if the run came to its end.
    pub has_ended: bool,
}

/// Judges the steps of a run again. `bytes` is its archive, and `earlier` has the steps of the runs before it.
///
/// # Errors
/// If the archive is not that of a search, or its holds do not follow from the steps before them.
pub fn replay(bytes: &[u8], earlier: &[CapacityStep]) -> Result<Replayed> {
    let mut records = Records::new(bytes);
    let Some(Record::Header(header)) = records.next() else {
        bail!("it does not begin with the header of a run");
    };
    let header: Header = decoded(&header).context("read its header")?;
    let Some(Record::Event(note)) = records.next() else {
        bail!("its run was not that of a search");
    };
    let Note::Search(begun) = decoded(&note)? else {
        bail!("its run was not that of a search");
    };
    let mut search = CapacitySearch::new(&begun, header.plan, earlier.to_vec())?;
    let (mut timeline, mut hold, mut has_ended) = (Timeline::CONNECTING, None, false);
    for record in records {
        match record {
            Record::Windows(delta) => search.windows(&delta),
            Record::Health(bytes) => {
                let (agent, sample) = decoded(&bytes)?;
                search.process_sample(agent, &sample);
            }
            Record::Event(bytes) => match decoded(&bytes)? {
                Note::Timeline(begins) => timeline = begins,
                Note::Hold(next) => hold = Some(next),
                Note::Judged(judgement) => {
                    let hold = hold.take().context("find the hold of a step")?;
                    search.judge_again(hold, timeline, judgement)?;
                }
                Note::Event(_)
                | Note::Refusal(_)
                | Note::PushesRefused(_)
                | Note::Counters(_)
                | Note::Counted(_)
                | Note::Usage(_)
                | Note::Hook(_)
                | Note::Search(_) => {}
            },
            Record::Footer(_) => has_ended = true,
            Record::Header(_) | Record::Identity(_) | Record::Account(_) => {}
        }
    }
    Ok(Replayed {
        begun: *begun,
        session: search.session(),
        steps: search.held().to_vec(),
        has_ended,
    })
}
