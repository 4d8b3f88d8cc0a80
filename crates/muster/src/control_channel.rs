//! The line to the other parts of a run: where it is, and what came of it in words.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context, Result};
use muster_cluster::{ChannelAccount, ControlChannel, Membership, Offset};
use muster_model::{Micros, figure};
use muster_report::Event;
use muster_result::{CLOCKS_APART, Header};

use crate::args::RunArgs;
use crate::target;

/// Opens the control channel that the arguments name; none if they name none.
pub(crate) fn open(
    args: &RunArgs,
    who: impl FnOnce() -> Membership,
) -> Result<Option<ControlChannel>> {
    if let Some(at) = args.listen {
        let line = ControlChannel::listen(at, who()).with_context(|| {
            format!("listen for the other parts on --listen {at} (name a free port)")
        })?;
        return Ok(Some(line));
    }
    let Some(text) = &args.join else {
        return Ok(None);
    };
    let line = ControlChannel::join(listeners(text)?, who())
        .with_context(|| format!("join the part that listens at --join {text}"))?;
    Ok(Some(line))
}

/// A port alone is one of this machine's.
fn listeners(text: &str) -> Result<Vec<SocketAddr>> {
    if let Ok(port) = text.parse::<u16>() {
        return Ok(vec![SocketAddr::from((Ipv4Addr::LOCALHOST, port))]);
    }
    target::addresses(text).with_context(|| {
        format!("look up --join `{text}` (write the host and the port of --listen, such as backend.example:7411)")
    })
}

/// The events of the control channel at the end of settling; none without one.
pub(crate) fn noted(account: Option<&ChannelAccount>, header: &Header, end: Micros) -> Vec<Event> {
    let clock = header.clocks.first().map_or("", String::as_str);
    account.map_or_else(Vec::new, |account| {
        events(account, end.as_secs_f64(), clock)
    })
}

/// The same; `clock` is this part's.
fn events(account: &ChannelAccount, end_s: f64, clock: &str) -> Vec<Event> {
    let event = |kind: &str, detail: String| Event::new(end_s, kind, detail);
    let silent = (!account.was_complete).then(|| {
        let detail = "not every other part reported over the control channel when settling ended: this one settled by \
                      itself, its consumers up to `settle.at-most`";
        event("part-silent", detail.to_owned())
    });
    let ignored = (account.ignored > 0).then(|| {
        let number = figure::count(account.ignored);
        let detail = format!(
            "{number} datagrams on the control channel were ignored: they were no word of another part of this run \
             (same --run-id, scenario, --set and --seed?)"
        );
        event("line-ignored", detail)
    });
    let apart = account
        .offsets
        .iter()
        .filter(|offset| is_apart(offset, clock));
    let apart = apart.map(|offset| event(CLOCKS_APART, measured(offset, clock)));
    silent.into_iter().chain(ignored).chain(apart).collect()
}

/// Two hosts have two clocks, however well they agree. On one host they can only differ if the
/// parts were not given the same beginning.
fn is_apart(offset: &Offset, clock: &str) -> bool {
    offset.clock != clock || offset.ahead_us.unsigned_abs() > offset.bound_us
}

fn measured(offset: &Offset, clock: &str) -> String {
    let ms = |us: u64| format!("{:.1} ms", us as f64 / 1e3);
    let way = if offset.ahead_us < 0 {
        "behind"
    } else {
        "ahead of"
    };
    format!(
        "measured over the control channel: the clock of {} was {} {way} that of {clock}, give or take {}; nothing \
         was corrected by it",
        offset.clock,
        ms(offset.ahead_us.unsigned_abs()),
        ms(offset.bound_us)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(clock: &str, ahead_us: i64, bound_us: u64) -> ChannelAccount {
        ChannelAccount {
            was_complete: true,
            ignored: 0,
            offsets: vec![Offset {
                clock: clock.to_owned(),
                ahead_us,
                bound_us,
            }],
        }
    }

    fn kinds(account: &ChannelAccount) -> Vec<(String, String)> {
        let events = events(account, 9.0, "box (1)").into_iter();
        events.map(|event| (event.kind, event.detail)).collect()
    }

    #[test]
    fn clocks_of_two_hosts_are_told_with_what_was_measured_of_them() {
        let of = |clock, ahead, bound| kinds(&account(clock, ahead, bound));
        let apart = of("other (2)", -12_340, 410);
        assert_eq!(apart.len(), 1);
        let (kind, detail) = &apart[0];
        assert_eq!(kind, "clocks-apart");
        let words =
            "the clock of other (2) was 12.3 ms behind that of box (1), give or take 0.4 ms;";
        assert!(detail.contains(words), "{detail}");
        assert_eq!(
            of("other (2)", 3, 410).len(),
            1,
            "two hosts always have two clocks"
        );
        assert_eq!(of("box (1)", 3, 410), []);
        assert_eq!(of("box (1)", 2_000_000, 410).len(), 1, "another --start-at");
    }

    #[test]
    fn silence_and_strangers_on_the_line_are_told() {
        let account = ChannelAccount {
            was_complete: false,
            ignored: 1_200,
            offsets: Vec::new(),
        };
        let events = kinds(&account);
        let kinds: Vec<&str> = events.iter().map(|(kind, _)| kind.as_str()).collect();
        assert_eq!(kinds, ["part-silent", "line-ignored"]);
        assert!(events[1].1.starts_with("1,200 datagrams"), "{events:?}");
    }
}
