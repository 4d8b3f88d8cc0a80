//! Every link of every fleet, each with its own credential.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use muster_model::{LinkId, figure};
use muster_net::Clock;
use muster_plan::{ConnectPlan, FleetPlan, Plan, PlatformKind};

use super::{Found, tell};
use crate::outcome;
use crate::reach::LinkTrial;

/// Links that are opened at once, at most, whatever the scenario allows.
const PENDING_MAX: u32 = 256;
/// Names that are listed of links with one answer.
const NAMES_MAX: usize = 10;

/// The reason why no link is tried.
const EMBEDDED: &str =
    "the links: the run starts the embedded gateway, so that it is not there yet; try --loop";

/// Opens each link once, never more at a time and never faster than the run would, and closes it again;
/// the exit code.
pub(super) fn try_all(plan: &Plan) -> Result<u8> {
    if let PlatformKind::Gateway { .. } = plan.platform.kind {
        tell("skipped", EMBEDDED);
        return Ok(outcome::PASS);
    }
    let mut trial = LinkTrial::new(plan)?;
    let mut code = outcome::PASS;
    for fleet in &plan.fleets {
        let answers = Answers::of_fleet(plan, &mut trial, fleet)?;
        code = code.max(answers.tell(fleet));
    }
    Ok(code)
}

/// Links that are opened at once: no more than the run has under way, or opens in a second.
fn at_once(connect: &ConnectPlan) -> u32 {
    let a_second = connect.rate.get().ceil().min(f64::from(PENDING_MAX)) as u32;
    connect.pending.min(a_second).max(1)
}

/// What the links of one fleet were answered.
#[derive(Default)]
struct Answers {
    tried: u32,
    connected: u32,
    /// By mark and words, with the exit code.
    others: BTreeMap<(&'static str, String), (u8, Vec<String>)>,
}

impl Answers {
    /// Tries a fleet to its end, or until nobody answers any more.
    fn of_fleet(plan: &Plan, trial: &mut LinkTrial<'_>, fleet: &FleetPlan) -> Result<Self> {
        let mut answers = Self::default();
        let at_once = at_once(&fleet.connect);
        while answers.tried < fleet.links {
            let first = fleet.first_link.0 + answers.tried;
            let count = at_once.min(fleet.links - answers.tried);
            let clock = Clock::start();
            let links = (first..first + count).map(|link| (fleet, LinkId(link)));
            let mut is_anybody_there = false;
            for reached in trial.open(links)? {
                let found = Found::new(plan, &reached);
                is_anybody_there |= found.code != outcome::SILENT;
                answers.add(found, reached.name);
            }
            answers.tried += count;
            if !is_anybody_there {
                break;
            }
            let wanted_s = f64::from(count) / fleet.connect.rate.get().max(1e-3);
            let left_s = wanted_s - clock.now().as_secs_f64();
            if answers.tried < fleet.links && left_s > 0.0 {
                std::thread::sleep(Duration::from_secs_f64(left_s));
            }
        }
        Ok(answers)
    }

    fn add(&mut self, found: Found, name: String) {
        if found.code == outcome::PASS {
            self.connected += 1;
            return;
        }
        let others = self.others.entry((found.mark, found.text));
        others.or_insert((found.code, Vec::new())).1.push(name);
    }

    /// One line for what went well, and one for each other answer; the exit code.
    fn tell(&self, fleet: &FleetPlan) -> u8 {
        let count = |number: u32| figure::count(u64::from(number));
        let (name, all) = (&fleet.name, count(fleet.links));
        let connected = count(self.connected);
        let mark = if self.others.is_empty() {
            "ok"
        } else {
            "failed"
        };
        tell(
            mark,
            &format!("fleet `{name}`: {connected} of {all} links connected"),
        );
        for ((mark, text), (_, names)) in &self.others {
            let listed: Vec<String> = names
                .iter()
                .take(NAMES_MAX)
                .map(|name| format!("`{name}`"))
                .collect();
            let more = names.len().saturating_sub(NAMES_MAX);
            let more = match more {
                0 => String::new(),
                more => format!(" and {} more", figure::count(more as u64)),
            };
            let (many, listed) = (figure::count(names.len() as u64), listed.join(", "));
            tell(mark, &format!("{many}: {text} ({listed}{more})"));
        }
        if self.tried < fleet.links {
            let left = count(fleet.links - self.tried);
            tell(
                "stopped",
                &format!("no link answered any more; {left} were not tried"),
            );
        }
        let codes = self.others.values().map(|(code, _)| *code);
        codes.max().unwrap_or(outcome::PASS)
    }
}

#[cfg(test)]
mod tests {
    use muster_model::{Micros, Rate};
    use muster_scenario::{NoFiles, Overrides, Source, parse};

    use super::*;

    #[test]
    fn an_embedded_gateway_that_is_not_there_yet_is_no_fault() {
        let source = Source {
            name: "x.yaml",
            text: "name: x\nfleet: [ { count: 1, streams: [] } ]\n",
        };
        let plan = parse(source, &Overrides::new(), &NoFiles).expect("a plan");
        assert_eq!(try_all(&plan).expect("no link is tried"), outcome::PASS);
    }

    #[test]
    fn a_second_opens_no_more_links_than_the_run_would() {
        for (rate, pending, expected) in [
            (0.1, 128, 1),
            (5.0, 128, 5),
            (500.0, 128, 128),
            (1e6, 10_000, 256),
        ] {
            let connect = ConnectPlan {
                rate: Rate::per_second(rate).expect("a rate"),
                pending,
                timeout: Micros::from_secs(1),
                lifetime: None,
                from: Vec::new(),
            };
            assert_eq!(at_once(&connect), expected, "{rate}/s, {pending} pending");
        }
    }
}
