//! The generator's own ceiling for a search, which bounds its loads.

use anyhow::{Result, bail};
use muster_conduct::Part;
use muster_judge::{Ceiling, SizedCeiling};
use muster_model::Dimension;
use muster_plan::Plan;
use muster_report::CapacityCeiling;

use crate::args::CalibrationArgs;
use crate::calibration::Calibration;
use crate::{outcome, target};

/// Sizes of messages that measure the generator's ceiling of a payload, in bytes: their costs differ clearly.
const SIZES: [u32; 2] = [1_024, 16_384];

/// The most of a range of loads that the generator can judge here.
///
/// # Errors
/// The reason, with the generator's own remedy, if it cannot judge the first one.
pub(in crate::commands) fn judgeable(
    find: Dimension,
    (first, most): (f64, f64),
    ceiling: Option<&CapacityCeiling>,
) -> Result<f64> {
    let Some((can, part)) = ceiling.and_then(CapacityCeiling::most) else {
        return Ok(most);
    };
    if first > can {
        bail!(
            "search from {}: the generator judges at most {} here, bound by {part}; {}",
            find.in_words(first),
            find.in_words(can),
            part.remedy()
        );
    }
    Ok(most.min(can))
}

/// The generator's own ceiling. One that cannot be measured bounds nothing.
pub(in crate::commands) fn ceiling(
    args: &CalibrationArgs,
    plan: &Plan,
    find: Dimension,
) -> Option<CapacityCeiling> {
    match find {
        Dimension::Rate | Dimension::Devices => {
            let rate_per_load = plan.stated_rate() / plan.stated_load(find);
            let messages = measured_ceiling(args, plan, find)?;
            // A step multiplies commands too.
            let commands = plan.stated_load(Dimension::Commands);
            let of_commands = (commands > 0.0)
                .then(|| measured_ceiling(args, plan, Dimension::Commands))
                .flatten();
            let found = match of_commands {
                Some(of_commands) => messages.together(plan.stated_rate(), commands, &of_commands),
                None => messages,
            };
            Some(CapacityCeiling::new(found, rate_per_load))
        }
        Dimension::Payload => {
            payload_ceiling(args, plan).map(|found| CapacityCeiling::new(found, 1.0))
        }
        Dimension::Commands => {
            let commands = measured_ceiling(args, plan, find)?;
            let messages = measured_ceiling(args, plan, Dimension::Rate);
            let found = match messages {
                Some(messages) => commands.left_by(plan.stated_rate(), &messages),
                None => commands,
            };
            Some(CapacityCeiling::new(found, 1.0))
        }
        Dimension::Connects => {
            measured_ceiling(args, plan, find).map(|found| CapacityCeiling::new(found, 1.0))
        }
    }
}

/// The ceiling in bytes of a message at the rate of the scenario.
fn payload_ceiling(args: &CalibrationArgs, plan: &Plan) -> Option<Ceiling> {
    let sized = |bytes: u32| {
        let ceiling = measured_ceiling(args, &plan.clone().with_size(bytes), Dimension::Payload)?;
        Some(SizedCeiling {
            bytes: f64::from(bytes),
            ceiling,
        })
    };
    let [small, large] = SIZES.map(sized);
    Ceiling::of_payload(plan.stated_rate(), &small?, &large?)
}

/// The ceiling of a plan in messages, commands or connects a second; none with a warning if it cannot be measured.
fn measured_ceiling(args: &CalibrationArgs, plan: &Plan, load: Dimension) -> Option<Ceiling> {
    let found = target::resolve(plan, Part::WHOLE)
        .and_then(|addresses| Calibration::find(plan, load, &addresses, args));
    let found = match found {
        Ok(found) => found,
        Err(error) => {
            outcome::remark(&format!(
                "warning: the generator's ceiling is not measured, and bounds no step: failed to {error:#}"
            ));
            return None;
        }
    };
    let found = found?;
    if let Some(busy) = found.busy_in_words() {
        outcome::remark(&format!(
            "warning: the generator's ceiling was measured {busy}"
        ));
    }
    Some(found.ceiling)
}
