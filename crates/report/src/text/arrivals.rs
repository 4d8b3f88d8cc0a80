//! Arrivals at a backend, or what a store keeps.

use muster_measure::Arrivals;

use super::listed;
use crate::BackendAccount;
use crate::number::{count, known};

/// The arrivals at the backend of an account as parts of a line.
pub(super) fn parts(arrivals: &Arrivals, account: &BackendAccount) -> Vec<String> {
    let mut parts = arrived(arrivals, Words::of(account.is_store));
    let overwritten = account.overwritten.filter(|count| *count > 0);
    parts.extend(overwritten.map(|number| format!("{} overwritten", count(number))));
    parts.extend(split(account));
    parts.extend(sample(account));
    parts
}

fn arrived(arrivals: &Arrivals, words: Words) -> Vec<String> {
    let all = [
        (arrivals.lost, words.lost, true),
        (arrivals.lost_unacknowledged, "lost unacknowledged", false),
        (arrivals.outstanding, words.outstanding, true),
        (arrivals.late, "late", false),
        (arrivals.duplicates, "duplicates", true),
        (arrivals.duplicate_own, "own duplicates", false),
        (arrivals.reordered, "reordered", false),
        (arrivals.corrupted, "corrupted", false),
        (arrivals.foreign, "foreign", false),
        (arrivals.unstamped, "unstamped", false),
    ];
    listed(first_copies(arrivals, words), &all)
}

/// The words for the figures of an account.
#[derive(Debug, Clone, Copy)]
struct Words {
    arrived: &'static str,
    lost: &'static str,
    outstanding: &'static str,
}

impl Words {
    const fn of(is_store: bool) -> Self {
        match is_store {
            true => Self {
                arrived: "stored",
                lost: "accepted but not stored",
                outstanding: "not read",
            },
            false => Self {
                arrived: "arrived",
                lost: "lost",
                outstanding: "outstanding",
            },
        }
    }
}

/// Arrived messages, and how many of them the device's side saw rejected or timed out.
fn first_copies(arrivals: &Arrivals, words: Words) -> String {
    let against: Vec<String> = [
        (arrivals.rejected_but_arrived, "rejected"),
        (arrivals.timed_out_but_arrived, "timed out"),
    ]
    .into_iter()
    .filter(|(number, _)| number.is_some_and(|n| n > 0))
    .map(|(number, state)| format!("{} of these though {state}", known(number)))
    .collect();
    let arrived = known(arrivals.arrived);
    if against.is_empty() {
        return format!("{arrived} {}", words.arrived);
    }
    format!("{arrived} {} ({})", words.arrived, against.join(", "))
}

/// Messages that reached consumers of two processes, so that the windows of both count a first copy.
fn split(account: &BackendAccount) -> Option<String> {
    let twice = account.split.filter(|split| *split > 0)?;
    Some(format!("{} first at two consumers", count(twice)))
}

/// The devices that were read of a store, if not all were.
fn sample(account: &BackendAccount) -> Option<String> {
    let sample = account.sample?;
    Some(format!(
        "a sample of {} of {} devices: {} outside",
        count(sample.devices.into()),
        count(sample.of.into()),
        count(sample.outside)
    ))
}
