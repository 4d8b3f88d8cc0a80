//! Payloads: a pure function of the seed, the message id and the due instant, so that none is kept
//! for a retransmission.

use std::sync::Arc;

use muster_model::{Micros, STAMP_BYTES, STAMP_TEXT, mix};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::mix::{Mix, MixSpec};
use crate::random::Draws;
use crate::template::{Bounds, Scope, Template, TemplateError};

/// The largest payload: the largest remaining length of an MQTT packet (MQTT 5 section 1.5.5) less
/// 64 KiB for its topic and properties.
pub const MAX_PAYLOAD: u32 = 268_435_455 - 65_536;
/// The standard normal's 99th percentile.
const Z_99: f64 = 2.326_347_874_040_841;
/// A log-normal size lies within this number of deviations: 3 in 10 million would lie outside.
const SIZE_REACH: f64 = 5.0;

/// The payload of a stream, as the plan carries it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum PayloadSpec {
    /// The source text of a template.
    Template(String),
    /// This many bytes: a binary stamp if it fits, then seeded filler.
    Size(u32),
    /// As `Size`, of `stated` bytes times the factor of the hold in which the message is due, and no less than `least`.
    Held {
        /// Bytes at a factor of 1.
        stated: u32,
        /// The least length, in bytes.
        least: u32,
    },
    /// As `Size`, of log-normally distributed length. What would be shorter than `least`, the room
    /// that its carrier needs, is drawn again.
    LogNormal {
        /// Half of the payloads are shorter.
        median: u32,
        /// 99 % of the payloads are shorter.
        p99: u32,
        /// The least length, in bytes.
        least: u32,
    },
    /// Exactly these bytes.
    File(Arc<[u8]>),
    /// Messages of several kinds.
    Mix(MixSpec),
}

/// A payload ready to be rendered.
#[derive(Debug, Clone)]
pub struct Payload {
    body: Body,
}

/// Position and form of a stamp in the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StampAt {
    /// The offset of its first byte in the output.
    pub offset: usize,
    /// Its form.
    pub form: StampForm,
}

/// The two forms of a stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StampForm {
    /// 22 bytes.
    Binary22,
    /// 30 characters of base64url.
    Text30,
}

/// Reasons that a payload cannot be rendered.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PayloadError {
    /// The template is none.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// A size above [`MAX_PAYLOAD`], or a distribution that reaches above it.
    #[error("a payload of up to {0} bytes is too large; the largest is {MAX_PAYLOAD}")]
    TooLarge(u64),
    /// A distribution whose percentiles are out of order.
    #[error(
        "a median of {median} bytes and a p99 of {p99} bytes are no distribution of sizes; give 1 <= median <= p99"
    )]
    Percentiles {
        /// The median asked for.
        median: u32,
        /// The 99th percentile asked for.
        p99: u32,
    },
    /// A distribution with too many sizes below the room that the carrier needs.
    #[error("{percent} % of these sizes are below the {least} bytes that the carrier needs")]
    MostlyTooSmall {
        /// The share in percent.
        percent: u32,
        /// Bytes that the carrier needs.
        least: u32,
    },
    /// A mix of nothing.
    #[error("a mix of messages has no kind with a share above 0")]
    EmptyMix,
    /// A mix whose kinds carry a stamp in different ways.
    #[error(
        "the messages of a mix do not all have `${{stamp}}` behind the same text, which a consumer looks for"
    )]
    UnevenMix,
}

#[derive(Debug, Clone)]
enum Body {
    Template(Template),
    Size(u32),
    Held(HeldSizes),
    LogNormal(LogNormal),
    File(Arc<[u8]>),
    Mix(Mix),
}

impl Payload {
    /// Compiles a payload.
    ///
    /// # Errors
    /// [`PayloadError`] if there is no such payload.
    pub fn compile(spec: &PayloadSpec) -> Result<Self, PayloadError> {
        let body = match spec {
            PayloadSpec::Template(source) => Body::Template(Template::parse(source)?),
            PayloadSpec::Size(size) => Body::Size(at_most(u64::from(*size))?),
            PayloadSpec::Held { stated, least } => Body::Held(HeldSizes {
                stated: at_most(u64::from(*stated))?,
                least: *least,
                holds: Vec::new(),
            }),
            PayloadSpec::LogNormal { median, p99, least } => {
                Body::LogNormal(LogNormal::new(*median, *p99, *least)?)
            }
            PayloadSpec::File(bytes) => {
                at_most(bytes.len() as u64)?;
                Body::File(Arc::clone(bytes))
            }
            PayloadSpec::Mix(spec) => Body::Mix(mixed(spec)?),
        };
        Ok(Self { body })
    }

    /// Goes on with another hold, which begins at `from` on the clock of due instants. Changes nothing but sizes that
    /// follow holds.
    pub fn add_hold(&mut self, from: Micros, factor: f64) {
        if let Body::Held(sizes) = &mut self.body {
            sizes.add_hold(from, factor);
        }
    }

    /// Appends the payload of one message. Returns where its stamp belongs; none if it has no room
    /// for one.
    pub fn render(&self, scope: &Scope<'_>, out: &mut Vec<u8>) -> Option<StampAt> {
        match &self.body {
            Body::Template(template) => written(template, scope, out),
            Body::Mix(mix) => written(mix.template(scope), scope, out),
            Body::Size(size) => {
                let is_stamped = *size as usize >= STAMP_BYTES;
                sized(*size, is_stamped, &mut filler(scope), out)
            }
            Body::Held(sizes) => {
                let is_stamped = sizes.least as usize >= STAMP_BYTES;
                sized(sizes.at(scope.due), is_stamped, &mut filler(scope), out)
            }
            Body::LogNormal(sizes) => {
                let mut draws = filler(scope);
                let is_stamped = sizes.least as usize >= STAMP_BYTES;
                sized(sizes.draw(&mut draws), is_stamped, &mut draws, out)
            }
            Body::File(bytes) => {
                out.extend_from_slice(bytes);
                None
            }
        }
    }

    /// The least and greatest length, in bytes.
    pub fn bounds(&self, bounds: &Bounds<'_>) -> (usize, usize) {
        match &self.body {
            Body::Template(template) => template.size_bounds(bounds),
            Body::Size(size) => (*size as usize, *size as usize),
            Body::Held(sizes) => (sizes.least as usize, sizes.most() as usize),
            Body::LogNormal(sizes) => (sizes.least as usize, sizes.most as usize),
            Body::File(bytes) => (bytes.len(), bytes.len()),
            Body::Mix(mix) => mix.bounds(bounds),
        }
    }

    /// The share of random sizes that is below the least one and drawn again, 0 to 1.
    pub fn redrawn(&self) -> f64 {
        match &self.body {
            Body::LogNormal(sizes) => sizes.share_below(sizes.least),
            Body::Template(_) | Body::Size(_) | Body::Held(_) | Body::File(_) | Body::Mix(_) => 0.0,
        }
    }

    /// The form of the stamp that every payload has room for; none if some or all have none.
    pub fn stamp_form(&self) -> Option<StampForm> {
        match &self.body {
            Body::Template(_) | Body::Mix(_) => self.stamp_anchor().map(|_| StampForm::Text30),
            Body::Size(size) => (*size as usize >= STAMP_BYTES).then_some(StampForm::Binary22),
            Body::Held(HeldSizes { least, .. }) | Body::LogNormal(LogNormal { least, .. }) => {
                (*least as usize >= STAMP_BYTES).then_some(StampForm::Binary22)
            }
            Body::File(_) => None,
        }
    }

    /// Returns true if it is text, in which a stamp has 30 characters.
    pub fn is_text(&self) -> bool {
        matches!(self.body, Body::Template(_) | Body::Mix(_))
    }

    /// The ticks of `${unique_ms}` in milliseconds, the longest if there are several; none if no message
    /// has one.
    pub fn unique_step(&self) -> Option<u32> {
        match &self.body {
            Body::Template(template) => template.unique_step(),
            Body::Mix(mix) => mix.templates().filter_map(Template::unique_step).max(),
            Body::Size(_) | Body::Held(_) | Body::LogNormal(_) | Body::File(_) => None,
        }
    }

    /// The template, if it is one.
    pub fn template(&self) -> Option<&Template> {
        match &self.body {
            Body::Template(template) => Some(template),
            Body::Size(_) | Body::Held(_) | Body::LogNormal(_) | Body::File(_) | Body::Mix(_) => {
                None
            }
        }
    }

    /// The fixed text directly before the stamp of a payload that is text
    /// ([`Template::stamp_anchor`]); none if it has none, or is no text.
    pub fn stamp_anchor(&self) -> Option<&str> {
        match &self.body {
            Body::Template(template) => template.stamp_anchor(),
            Body::Mix(mix) => mix.templates().next()?.stamp_anchor(),
            Body::Size(_) | Body::Held(_) | Body::LogNormal(_) | Body::File(_) => None,
        }
    }
}

impl StampForm {
    /// Its length in bytes.
    pub const fn size(self) -> usize {
        match self {
            Self::Binary22 => STAMP_BYTES,
            Self::Text30 => STAMP_TEXT,
        }
    }
}

/// Sizes that follow holds.
#[derive(Debug, Clone)]
struct HeldSizes {
    stated: u32,
    least: u32,
    /// The begin of each hold and the size in it, ascending.
    holds: Vec<(Micros, u32)>,
}

impl HeldSizes {
    fn add_hold(&mut self, from: Micros, factor: f64) {
        let size = (f64::from(self.stated) * factor).round() as u32;
        let size = size.clamp(self.least, MAX_PAYLOAD.max(self.least));
        self.holds.push((from, size));
    }

    /// The size of a message that is due at this instant: as a rule in the last hold.
    fn at(&self, due: Micros) -> u32 {
        let mut holds = self.holds.iter().rev();
        let hold = holds.find(|(from, _)| *from <= due);
        hold.map_or(self.stated, |(_, size)| *size)
    }

    fn most(&self) -> u32 {
        let held = self.holds.iter().map(|(_, size)| *size);
        held.fold(self.stated, u32::max)
    }
}

/// Sizes of a log-normal distribution, cut off below the least and beyond [`SIZE_REACH`].
#[derive(Debug, Clone)]
struct LogNormal {
    median: f64,
    sigma: f64,
    least: u32,
    most: u32,
}

/// Draws of a size until one lies within its bounds: above [`MAX_REDRAWN`] of them outside, a thousand
/// fail less often than once in 10^39 messages.
const DRAWS_MAX: u32 = 1_000;
/// The largest share of a distribution that may lie below the least size and be drawn again.
pub const MAX_REDRAWN: f64 = 0.1;

impl LogNormal {
    fn new(median: u32, p99: u32, least: u32) -> Result<Self, PayloadError> {
        if median == 0 || p99 < median {
            return Err(PayloadError::Percentiles { median, p99 });
        }
        let sigma = (f64::from(p99) / f64::from(median)).ln() / Z_99;
        let center = f64::from(median);
        let most = at_most((center * (SIZE_REACH * sigma).exp()).round() as u64)?;
        let lowest = (center * (-SIZE_REACH * sigma).exp()).round() as u32;
        let sizes = Self {
            median: center,
            sigma,
            least: lowest.max(least),
            most,
        };
        let below = sizes.share_below(least);
        if below > MAX_REDRAWN {
            return Err(PayloadError::MostlyTooSmall {
                percent: (below * 100.0).round() as u32,
                least,
            });
        }
        Ok(sizes)
    }

    /// The share of the undivided distribution that is shorter than `size`, after rounding.
    fn share_below(&self, size: u32) -> f64 {
        let edge = (f64::from(size) - 0.5) / self.median;
        match (edge > 0.0, self.sigma > 0.0) {
            (false, _) => 0.0,
            (true, false) => f64::from(u8::from(edge > 1.0)),
            (true, true) => normal_below(edge.ln() / self.sigma),
        }
    }

    fn draw(&self, draws: &mut Draws) -> u32 {
        let size = |draws: &mut Draws| {
            let size = self.median * (self.sigma * draws.normal()).exp();
            size.round() as u32
        };
        let mut drawn = (0..DRAWS_MAX).map(|_| size(draws));
        let within = drawn.find(|size| (self.least..=self.most).contains(size));
        within.unwrap_or(self.least)
    }
}

/// The share of a standard normal distribution below `z`, by Simpson's rule; right to five decimals.
fn normal_below(z: f64) -> f64 {
    const STEPS: u32 = 200;
    let z = z.clamp(-8.0, 8.0);
    let density = |x: f64| (-x * x / 2.0).exp();
    let step = z / f64::from(STEPS);
    let weight = |n: u32| match n {
        0 | STEPS => 1.0,
        n if n % 2 == 1 => 4.0,
        _ => 2.0,
    };
    let sum: f64 = (0..=STEPS)
        .map(|n| weight(n) * density(f64::from(n) * step))
        .sum();
    (0.5 + sum * step / 3.0 / std::f64::consts::TAU.sqrt()).clamp(0.0, 1.0)
}

/// A mix whose stamps a consumer finds without knowing the kind of a message.
fn mixed(spec: &MixSpec) -> Result<Mix, PayloadError> {
    let mix = Mix::compile(spec)?.ok_or(PayloadError::EmptyMix)?;
    let mut anchors = mix.templates().map(Template::stamp_anchor);
    let first = anchors.next();
    let is_even = anchors.all(|anchor| Some(anchor) == first);
    drop(anchors);
    is_even.then_some(mix).ok_or(PayloadError::UnevenMix)
}

fn written(template: &Template, scope: &Scope<'_>, out: &mut Vec<u8>) -> Option<StampAt> {
    let offset = template.render(scope, out)?;
    Some(StampAt {
        offset,
        form: StampForm::Text30,
    })
}

fn at_most(size: u64) -> Result<u32, PayloadError> {
    match u32::try_from(size) {
        Ok(size) if size <= MAX_PAYLOAD => Ok(size),
        Ok(_) | Err(_) => Err(PayloadError::TooLarge(size)),
    }
}

/// The filler of one message; without the run's number, so that a seed reproduces it.
fn filler(scope: &Scope<'_>) -> Draws {
    let id = scope.id;
    let message = mix(scope.seed, u64::from(id.device.0) << 32 | u64::from(id.seq));
    Draws::new(message, u64::MAX - u64::from(id.stream.0))
}

fn sized(size: u32, is_stamped: bool, draws: &mut Draws, out: &mut Vec<u8>) -> Option<StampAt> {
    let offset = out.len();
    let size = size as usize;
    let stamp = if is_stamped { STAMP_BYTES } else { 0 };
    out.resize(offset + size, 0);
    let mut words = out[offset + stamp..].chunks_exact_mut(8);
    for word in words.by_ref() {
        word.copy_from_slice(&draws.bits().to_le_bytes());
    }
    let rest = words.into_remainder();
    rest.copy_from_slice(&draws.bits().to_le_bytes()[..rest.len()]);
    is_stamped.then_some(StampAt {
        offset,
        form: StampForm::Binary22,
    })
}

#[cfg(test)]
mod tests {
    use muster_model::{DeviceId, MessageId, RunId, StreamId};
    use proptest::prelude::*;

    use super::*;

    fn scope(seed: u64, seq: u32) -> Scope<'static> {
        Scope {
            seed,
            id: MessageId {
                run: RunId(1),
                device: DeviceId(2),
                stream: StreamId(3),
                seq,
            },
            due: Micros(5),
            wall_ms_at_t0: 0,
            name: "a",
            index: 0,
            tenant: "",
            columns: None,
            unique: None,
        }
    }

    fn payload(spec: &PayloadSpec) -> Payload {
        Payload::compile(spec).unwrap()
    }

    fn bytes(payload: &Payload, seed: u64, seq: u32) -> (Vec<u8>, Option<StampAt>) {
        let mut out = Vec::new();
        let stamp = payload.render(&scope(seed, seq), &mut out);
        (out, stamp)
    }

    fn any_payload() -> impl Strategy<Value = PayloadSpec> {
        prop_oneof![
            (0u32..3_000).prop_map(PayloadSpec::Size),
            (1u32..500, 0u32..5_000, any::<bool>()).prop_map(|(median, more, is_stamped)| {
                let median = if is_stamped { median + 1_000 } else { median };
                PayloadSpec::LogNormal {
                    median,
                    p99: median + more,
                    least: if is_stamped { STAMP_BYTES as u32 } else { 0 },
                }
            }),
            prop::collection::vec(any::<u8>(), 0..50).prop_map(|b| PayloadSpec::File(b.into())),
            Just(PayloadSpec::Template(
                "{\"v\":${normal:20:3},\"s\":\"${stamp}\"}".into()
            )),
        ]
    }

    /// The size of a message due at `due_s`, of 100 bytes as stated and of others in holds from 10 s and 20 s on.
    fn held_size(due_s: u64, least: u32) -> usize {
        let mut payload = payload(&PayloadSpec::Held { stated: 100, least });
        for (from, factor) in [(10, 2.5), (20, 0.1)] {
            payload.add_hold(Micros::from_secs(from), factor);
        }
        let scope = Scope {
            due: Micros::from_secs(due_s),
            ..scope(1, 2)
        };
        let mut out = Vec::new();
        let stamp = payload.render(&scope, &mut out);
        assert_eq!(stamp.is_some(), least as usize >= STAMP_BYTES);
        out.len()
    }

    #[test]
    fn a_size_follows_the_hold_of_the_message_whenever_it_is_rendered() {
        assert_eq!(
            [5, 10, 19, 20].map(|due| held_size(due, 22)),
            [100, 250, 250, 22]
        );
        assert_eq!(held_size(30, 1), 10);
    }

    proptest! {
        /// The same message has the same payload wherever it is appended, its length lies within
        /// the bounds, and its stamp lies within it and exists if the form is promised.
        #[test]
        fn a_payload_is_a_pure_function_within_bounds(spec in any_payload(), seed: u64, seq: u32) {
            let payload = payload(&spec);
            let (once, stamp) = bytes(&payload, seed, seq);
            let mut again = vec![7; 5];
            let moved = payload.render(&scope(seed, seq), &mut again);
            prop_assert_eq!(&once[..], &again[5..]);
            prop_assert_eq!(moved.map(|at| at.offset), stamp.map(|at| at.offset + 5));
            let (least, most) = payload.bounds(&Bounds { name: (1, 1), name_in_json: (1, 1), ..Bounds::default() });
            prop_assert!((least..=most).contains(&once.len()));
            prop_assert_eq!(stamp.map(|at| at.form), payload.stamp_form());
            if let Some(at) = stamp {
                prop_assert!(at.offset + at.form.size() <= once.len());
            }
        }
    }

    #[test]
    fn a_sized_payload_is_stamp_then_filler_of_its_message() {
        let payload = payload(&PayloadSpec::Size(100));
        let (first, stamp) = bytes(&payload, 1, 1);
        assert_eq!(
            stamp,
            Some(StampAt {
                offset: 0,
                form: StampForm::Binary22
            })
        );
        assert_eq!(first.len(), 100);
        assert!(first[..STAMP_BYTES].iter().all(|byte| *byte == 0));
        assert_ne!(first[STAMP_BYTES..], bytes(&payload, 1, 2).0[STAMP_BYTES..]);
        assert_ne!(first[STAMP_BYTES..], bytes(&payload, 2, 1).0[STAMP_BYTES..]);
    }

    #[test]
    fn log_normal_sizes_have_their_percentiles() {
        let payload = payload(&PayloadSpec::LogNormal {
            median: 200,
            p99: 4_096,
            least: 0,
        });
        let mut sizes: Vec<usize> = (0..50_000)
            .map(|seq| bytes(&payload, 1, seq).0.len())
            .collect();
        sizes.sort_unstable();
        // Within four standard errors of the quantiles: 0.9 % in rank, and 0.18 %.
        assert!(sizes[25_000 - 450] <= 200 && 200 <= sizes[25_000 + 450]);
        assert!(sizes[49_500 - 90] <= 4_096 && 4_096 <= sizes[49_500 + 90]);
    }

    #[test]
    fn sizes_below_the_carrier_are_drawn_again_or_refused() {
        let sizes = |median, p99, least| PayloadSpec::LogNormal { median, p99, least };
        let drawn = |spec: &PayloadSpec| -> Vec<usize> {
            let payload = payload(spec);
            (0..5_000)
                .map(|seq| bytes(&payload, 1, seq).0.len())
                .collect()
        };
        // Without a stamp in it, a payload has the size that was asked for.
        let small = drawn(&sizes(5, 10, 0));
        assert!(small.iter().all(|size| (1..=22).contains(size)));
        assert!(small.iter().filter(|size| **size <= 5).count() > 2_000);
        // 4.5 % lie below 22 bytes: they are spread over the others, and not put onto 22.
        let stamped = payload(&sizes(200, 4_096, 22));
        assert!(
            (0.04..0.05).contains(&stamped.redrawn()),
            "{}",
            stamped.redrawn()
        );
        let stamped = drawn(&sizes(200, 4_096, 22));
        assert!(stamped.iter().all(|size| *size >= 22));
        assert!(stamped.iter().filter(|size| **size == 22).count() < 40);
        assert_eq!(
            Payload::compile(&sizes(5, 10, 22)).unwrap_err(),
            PayloadError::MostlyTooSmall {
                percent: 100,
                least: 22
            }
        );
        assert!(Payload::compile(&sizes(22, 22, 22)).is_ok());
    }

    #[test]
    fn impossible_payloads_are_refused() {
        let refused = |spec| Payload::compile(&spec).unwrap_err();
        assert_eq!(
            refused(PayloadSpec::LogNormal {
                median: 9,
                p99: 8,
                least: 0
            }),
            PayloadError::Percentiles { median: 9, p99: 8 }
        );
        assert_eq!(
            refused(PayloadSpec::Size(u32::MAX)),
            PayloadError::TooLarge(4_294_967_295)
        );
        assert!(matches!(
            refused(PayloadSpec::LogNormal {
                median: 1,
                p99: u32::MAX,
                least: 0
            }),
            PayloadError::TooLarge(_)
        ));
        assert!(matches!(
            refused(PayloadSpec::Template("${stamp".into())),
            PayloadError::Template(_)
        ));
    }
}
