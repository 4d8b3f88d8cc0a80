//! Answers of the rules of published tests on simulated targets.
//!
//! Each rule judges a staircase of rates, and answers with the last one before the first that it rejects.

use muster_model::mix;

use crate::targets::{Message, Target, World};

/// The staircase: from this part of the truth, by this factor, to this part at the most.
const FROM: f64 = 0.7;
const FACTOR: f64 = 1.02;
const TO: f64 = 1.5;
/// Length of a step, and of a window in it, in seconds.
const SECONDS: usize = 180;
const WINDOW: usize = 60;
/// Windows begin this many seconds after each other.
const SHIFT: usize = 10;
/// A message without a response in this time has failed for its client, in seconds.
const PATIENCE: f64 = 1.0;

/// A published rule.
pub(crate) struct Rule {
    pub(crate) name: &'static str,
    accepts: fn(&Record) -> bool,
}

pub(crate) const RULES: [Rule; 4] = [
    // The mean over all seconds of failures by sent, each rounded to 1 % (Hono, scaled by hand, 2018).
    Rule {
        name: "mean of ratios below 2 %",
        accepts: |record| mean(&record.ratios[..]) < 0.02,
    },
    // The same in the best window of the step: waiting for a stable state until one window is good.
    Rule {
        name: "best window below 2 %",
        accepts: |record| {
            let windows = record.ratios.windows(WINDOW).step_by(SHIFT);
            windows.map(mean).fold(f64::INFINITY, f64::min) < 0.02
        },
    },
    // Latency and number of its acknowledgement do not correlate (SAP Edge Gateway).
    Rule {
        name: "Pearson correlation below 0.5",
        accepts: |record| record.correlation < 0.5,
    },
    // The failures of the whole run, as many as the run that was called stable had (Hono over CoAP, 2024).
    Rule {
        name: "failures of the run below 0.2 %",
        accepts: |record| record.failed < 0.002,
    },
];

/// Figures of a step that the rules use.
struct Record {
    /// Failures by sent of each second, rounded to 1 %.
    ratios: Vec<f64>,
    /// Share of failures in all.
    failed: f64,
    correlation: f64,
}

/// The answers of each rule on a target, as parts of the truth, in ascending order.
pub(crate) fn answers(target: Target, seed: u64, count: u32) -> Vec<Vec<f64>> {
    let mut answers = vec![Vec::new(); RULES.len()];
    for at in 0..count {
        let mut world = World::new(target, mix(seed, u64::from(at)));
        let truth = target.truth(0.0);
        let mut open = vec![true; RULES.len()];
        let mut part = FROM;
        while part < TO && open.contains(&true) {
            let record = record(&mut world, part * truth);
            for ((rule, open), answers) in RULES.iter().zip(&mut open).zip(&mut answers) {
                if *open && !(rule.accepts)(&record) {
                    *open = false;
                    answers.push(part / FACTOR);
                }
            }
            part *= FACTOR;
        }
        for (open, answers) in open.iter().zip(&mut answers) {
            if *open {
                answers.push(part / FACTOR);
            }
        }
    }
    for answers in &mut answers {
        answers.sort_unstable_by(f64::total_cmp);
    }
    answers
}

fn record(world: &mut World, rate: f64) -> Record {
    let mut sent = vec![0_u32; SECONDS];
    let mut failed = vec![0_u32; SECONDS];
    let mut answered: Vec<(f64, f64)> = Vec::new();
    world.messages(rate, SECONDS as f64, |Message { due, response }| {
        let second = due as usize;
        sent[second] += 1;
        failed[second] += u32::from(response.is_none_or(|response| response > PATIENCE));
        if let Some(response) = response {
            answered.push((due + response, response));
        }
    });
    let ratio = |(failed, sent): (&u32, &u32)| {
        (f64::from(*failed) * 100.0 / f64::from((*sent).max(1))).round() / 100.0
    };
    let ratios = failed.iter().zip(&sent).map(ratio).collect();
    answered.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    Record {
        ratios,
        failed: f64::from(failed.iter().sum::<u32>()) / f64::from(sent.iter().sum::<u32>()),
        correlation: correlation(&answered),
    }
}

/// Pearson's correlation of response time and number of the answer.
fn correlation(answered: &[(f64, f64)]) -> f64 {
    let count = answered.len() as f64;
    let mean_number = (count - 1.0) / 2.0;
    let mean_response = answered.iter().map(|(_, response)| response).sum::<f64>() / count;
    let (mut both, mut numbers, mut responses) = (0.0, 0.0, 0.0);
    for (number, (_, response)) in answered.iter().enumerate() {
        let (x, y) = (number as f64 - mean_number, response - mean_response);
        both += x * y;
        numbers += x * x;
        responses += y * y;
    }
    both / (numbers * responses).sqrt()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
