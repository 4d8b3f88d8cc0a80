//! What a message carries: a pure function of the seed, the message's id and its due instant, so
//! that no payload is ever kept for a retransmission.

use std::sync::Arc;

use muster_model::{STAMP_BYTES, STAMP_TEXT, mix};
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
/// A log-normal size lies within so many deviations: 3 in 10 million would lie outside.
const SIZE_REACH: f64 = 5.0;

/// The payload of a stream, as the plan carries it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum PayloadSpec {
    /// The source text of a template.
    Template(String),
    /// So many bytes: a binary stamp, if it fits, then seeded filler.
    Size(u32),
    /// As `Size`, of log-normally distributed length.
    LogNormal {
        /// Half of the payloads are shorter.
        median: u32,
        /// 99 % of the payloads are shorter.
        p99: u32,
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

/// Where in the output a stamp is to be written, and in which form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StampAt {
    /// The offset of its first byte in the output.
    pub offset: usize,
    /// How it is written.
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

/// Why a payload cannot be rendered.
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
    /// A mix of nothing.
    #[error("a mix of messages has no kind with a share above 0")]
    EmptyMix,
    /// A mix whose kinds carry a stamp in different ways.
    #[error(
        "the messages of a mix do not all have `${{stamp}}` behind the same text, by which it is found"
    )]
    UnevenMix,
}

#[derive(Debug, Clone)]
enum Body {
    Template(Template),
    Size(u32),
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
            PayloadSpec::LogNormal { median, p99 } => {
                Body::LogNormal(LogNormal::new(*median, *p99)?)
            }
            PayloadSpec::File(bytes) => {
                at_most(bytes.len() as u64)?;
                Body::File(Arc::clone(bytes))
            }
            PayloadSpec::Mix(spec) => Body::Mix(mixed(spec)?),
        };
        Ok(Self { body })
    }

    /// Appends the payload of one message. Returns where its stamp belongs; none if it has no room
    /// for one.
    pub fn render(&self, scope: &Scope<'_>, out: &mut Vec<u8>) -> Option<StampAt> {
        match &self.body {
            Body::Template(template) => written(template, scope, out),
            Body::Mix(mix) => written(mix.template(scope), scope, out),
            Body::Size(size) => sized(*size, &mut filler(scope), out),
            Body::LogNormal(sizes) => {
                let mut draws = filler(scope);
                sized(sizes.draw(&mut draws), &mut draws, out)
            }
            Body::File(bytes) => {
                out.extend_from_slice(bytes);
                None
            }
        }
    }

    /// The least and greatest length, in bytes.
    #[must_use]
    pub fn bounds(&self, bounds: &Bounds<'_>) -> (usize, usize) {
        match &self.body {
            Body::Template(template) => template.size_bounds(bounds),
            Body::Size(size) => (*size as usize, *size as usize),
            Body::LogNormal(sizes) => (sizes.least as usize, sizes.most as usize),
            Body::File(bytes) => (bytes.len(), bytes.len()),
            Body::Mix(mix) => mix.bounds(bounds),
        }
    }

    /// The form of the stamp that every payload has room for; none if some or all have none.
    #[must_use]
    pub fn stamp_form(&self) -> Option<StampForm> {
        match &self.body {
            Body::Template(_) | Body::Mix(_) => self.stamp_anchor().map(|_| StampForm::Text30),
            Body::Size(size) => (*size as usize >= STAMP_BYTES).then_some(StampForm::Binary22),
            Body::LogNormal(_) => Some(StampForm::Binary22),
            Body::File(_) => None,
        }
    }

    /// Whether it is text, in which a stamp is 30 characters.
    #[must_use]
    pub fn is_text(&self) -> bool {
        matches!(self.body, Body::Template(_) | Body::Mix(_))
    }

    /// The ticks of `${unique_ms}` in milliseconds, the longest if there are several; none if no message
    /// has one.
    #[must_use]
    pub fn unique_step(&self) -> Option<u32> {
        match &self.body {
            Body::Template(template) => template.unique_step(),
            Body::Mix(mix) => mix.templates().filter_map(Template::unique_step).max(),
            Body::Size(_) | Body::LogNormal(_) | Body::File(_) => None,
        }
    }

    /// The template, if it is one.
    #[must_use]
    pub fn template(&self) -> Option<&Template> {
        match &self.body {
            Body::Template(template) => Some(template),
            Body::Size(_) | Body::LogNormal(_) | Body::File(_) | Body::Mix(_) => None,
        }
    }

    /// The fixed text directly before the stamp of a payload that is text
    /// ([`Template::stamp_anchor`]); none if it has none, or is no text.
    #[must_use]
    pub fn stamp_anchor(&self) -> Option<&str> {
        match &self.body {
            Body::Template(template) => template.stamp_anchor(),
            Body::Mix(mix) => mix.templates().next()?.stamp_anchor(),
            Body::Size(_) | Body::LogNormal(_) | Body::File(_) => None,
        }
    }
}

impl StampForm {
    /// Its length in bytes.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::Binary22 => STAMP_BYTES,
            Self::Text30 => STAMP_TEXT,
        }
    }
}

/// Sizes of a log-normal distribution, cut off below the stamp and beyond [`SIZE_REACH`].
#[derive(Debug, Clone)]
struct LogNormal {
    median: f64,
    sigma: f64,
    least: u32,
    most: u32,
}

impl LogNormal {
    fn new(median: u32, p99: u32) -> Result<Self, PayloadError> {
        if median == 0 || p99 < median {
            return Err(PayloadError::Percentiles { median, p99 });
        }
        let sigma = (f64::from(p99) / f64::from(median)).ln() / Z_99;
        let median = f64::from(median);
        let most = at_most((median * (SIZE_REACH * sigma).exp()).round() as u64)?;
        let least = (median * (-SIZE_REACH * sigma).exp()).round() as u32;
        let stamp = STAMP_BYTES as u32;
        Ok(Self {
            median,
            sigma,
            least: least.max(stamp),
            most: most.max(stamp),
        })
    }

    fn draw(&self, draws: &mut Draws) -> u32 {
        let size = self.median * (self.sigma * draws.normal()).exp();
        (size.round() as u32).clamp(self.least, self.most)
    }
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

fn sized(size: u32, draws: &mut Draws, out: &mut Vec<u8>) -> Option<StampAt> {
    let offset = out.len();
    let size = size as usize;
    let stamp = if size < STAMP_BYTES { 0 } else { STAMP_BYTES };
    out.resize(offset + size, 0);
    let mut words = out[offset + stamp..].chunks_exact_mut(8);
    for word in words.by_ref() {
        word.copy_from_slice(&draws.bits().to_le_bytes());
    }
    let rest = words.into_remainder();
    rest.copy_from_slice(&draws.bits().to_le_bytes()[..rest.len()]);
    (stamp > 0).then_some(StampAt {
        offset,
        form: StampForm::Binary22,
    })
}

#[cfg(test)]
mod tests {
    use muster_model::{DeviceId, MessageId, Micros, RunId, StreamId};
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
            (1u32..500, 0u32..5_000).prop_map(|(median, more)| PayloadSpec::LogNormal {
                median,
                p99: median + more
            }),
            prop::collection::vec(any::<u8>(), 0..50).prop_map(|b| PayloadSpec::File(b.into())),
            Just(PayloadSpec::Template(
                "{\"v\":${normal:20:3},\"s\":\"${stamp}\"}".into()
            )),
        ]
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
            let (least, most) = payload.bounds(&Bounds { name: (1, 1), ..Bounds::default() });
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
    fn impossible_payloads_are_refused() {
        let refused = |spec| Payload::compile(&spec).unwrap_err();
        assert_eq!(
            refused(PayloadSpec::LogNormal { median: 9, p99: 8 }),
            PayloadError::Percentiles { median: 9, p99: 8 }
        );
        assert_eq!(
            refused(PayloadSpec::Size(u32::MAX)),
            PayloadError::TooLarge(4_294_967_295)
        );
        assert!(matches!(
            refused(PayloadSpec::LogNormal {
                median: 1,
                p99: u32::MAX
            }),
            PayloadError::TooLarge(_)
        ));
        assert!(matches!(
            refused(PayloadSpec::Template("${stamp".into())),
            PayloadError::Template(_)
        ));
    }
}
