//! Topics that end in the number of a request.

/// Purpose of such a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    AttributesRequest,
    AttributesResponse,
    RpcRequest,
    RpcResponse,
}

/// A topic with its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Numbered<'a> {
    pub(super) kind: Kind,
    /// Part in front of the number.
    pub(super) stem: &'a str,
    /// From 0 to the greatest that the platform takes for one, 2^31 - 1.
    pub(super) number: u32,
}

/// Parts in front of the number: the long form, the short one, and the short one of JSON for any
/// device profile.
pub(super) const STEMS: [(&str, Kind); 12] = [
    ("v1/devices/me/attributes/request/", Kind::AttributesRequest),
    ("v2/a/req/", Kind::AttributesRequest),
    ("v2/a/req/j/", Kind::AttributesRequest),
    (
        "v1/devices/me/attributes/response/",
        Kind::AttributesResponse,
    ),
    ("v2/a/res/", Kind::AttributesResponse),
    ("v2/a/res/j/", Kind::AttributesResponse),
    ("v1/devices/me/rpc/request/", Kind::RpcRequest),
    ("v2/r/req/", Kind::RpcRequest),
    ("v2/r/req/j/", Kind::RpcRequest),
    ("v1/devices/me/rpc/response/", Kind::RpcResponse),
    ("v2/r/res/", Kind::RpcResponse),
    ("v2/r/res/j/", Kind::RpcResponse),
];

impl<'a> Numbered<'a> {
    pub(super) fn of(topic: &'a str) -> Option<Self> {
        let (_, digits) = topic.rsplit_once('/')?;
        let stem = &topic[..topic.len() - digits.len()];
        let (_, kind) = STEMS.into_iter().find(|(known, _)| *known == stem)?;
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let number: i32 = is_number.then(|| digits.parse().ok())??;
        Some(Self {
            kind,
            stem,
            number: number.unsigned_abs(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_is_known_by_its_stem_and_a_number_that_the_platform_takes() {
        for (stem, kind) in STEMS {
            for number in [0, 17, 2_147_483_647] {
                let topic = format!("{stem}{number}");
                let expected = Numbered { kind, stem, number };
                assert_eq!(Numbered::of(&topic), Some(expected), "{topic}");
            }
            for stray in ["", "x", "-1", "+1", "2147483648", "1/2", "j"] {
                let topic = format!("{stem}{stray}");
                assert_eq!(Numbered::of(&topic), None, "{topic}");
            }
        }
        assert_eq!(Numbered::of("v1/devices/me/telemetry"), None);
    }
}
