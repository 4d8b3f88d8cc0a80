//! Every link of every fleet, each with its own credential.

use std::collections::BTreeMap;

use anyhow::Result;
use muster_conduct::Slice;
use muster_model::{LinkId, figure};
use muster_net::limits;
use muster_plan::FleetPlan;
use muster_scenario::needs;

use super::connecting::{Connecting, names, untried};
use super::{Found, print};
use crate::outcome;

/// Names that are listed of links with one answer.
const NAMES_MAX: usize = 10;

/// Opens each link once, as fast as the run would, and closes it again; the exit code. As many are
/// open at once as one process of the run would have.
pub(super) fn try_all(connecting: &Connecting<'_>) -> Result<u8> {
    let fleets = &connecting.plan.fleets;
    let mut all: Vec<Answers> = fleets.iter().map(|_| Answers::default()).collect();
    let processes = needs(connecting.plan).processes(limits::raise_descriptors());
    let of = u32::try_from(processes).unwrap_or(u32::MAX).max(1);
    for slice in (0..of).map(|index| Slice { index, of }) {
        let links = connecting.links(slice)?;
        let mut is_whole = true;
        for (fleet, answers) in fleets.iter().zip(&mut all) {
            let name_of = names(connecting.plan, fleet);
            for link in slice.cut(fleet.first_link.0, fleet.links).map(LinkId) {
                let name = name_of(link);
                match links.of(fleet, link, &name) {
                    Some(found) => answers.add(found, name),
                    None => is_whole = false,
                }
            }
        }
        if !is_whole {
            break;
        }
    }
    let codes = fleets.iter().zip(&all);
    let codes = codes.map(|(fleet, answers)| answers.print(fleet));
    Ok(codes.max().unwrap_or(outcome::PASS))
}

/// The answers to the links of one fleet.
#[derive(Default)]
struct Answers {
    tried: u32,
    connected: u32,
    /// By mark and words, with the exit code.
    others: BTreeMap<(&'static str, String), (u8, Vec<String>)>,
}

impl Answers {
    fn add(&mut self, found: Found, name: String) {
        self.tried += 1;
        if found.code == outcome::PASS {
            self.connected += 1;
            return;
        }
        let others = self.others.entry((found.mark, found.text));
        others.or_insert((found.code, Vec::new())).1.push(name);
    }

    /// One line for what went well, and one for each other answer; the exit code.
    fn print(&self, fleet: &FleetPlan) -> u8 {
        let count = |number: u32| figure::count(u64::from(number));
        let (name, all) = (&fleet.name, count(fleet.links));
        let connected = count(self.connected);
        let is_whole = self.tried == fleet.links;
        let mark = match self.others.is_empty() && is_whole {
            true => "ok",
            false => "failed",
        };
        print(
            mark,
            &format!(
                "fleet `{name}`: {connected} of {all} links connected{}",
                untried(fleet)
            ),
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
            print(mark, &format!("{many}: {text} ({listed}{more})"));
        }
        if !is_whole {
            let left = count(fleet.links - self.tried);
            print(
                "stopped",
                &format!("no link answered any more; {left} were not tried"),
            );
        }
        let least = if is_whole {
            outcome::PASS
        } else {
            outcome::SILENT
        };
        let codes = self.others.values().map(|(code, _)| *code);
        codes.fold(least, u8::max)
    }
}
