//! OTLP metrics over HTTP, as binary protocol buffers (opentelemetry-proto 1.x).
//!
//! The official exporter aggregates measurements by itself, drops without an account what it cannot deliver,
//! and brings ten crates. The messages that are needed have four kinds of fields, so they are written here.

mod wire;

use muster_model::percent;

use self::wire::Message;
use crate::identity::{Identity, VERSION};
use crate::push::{Credential, Receiver};
use crate::snapshot::{Point, Snapshot, Value};
use crate::table::{Kind, TABLE};
use crate::url::{AddressError, Url};

const EXAMPLE: &str = "http://127.0.0.1:4318";
/// Sums count since the begin of the run (`AGGREGATION_TEMPORALITY_CUMULATIVE`).
const CUMULATIVE: u64 = 2;
const NANOS_PER_MS: u64 = 1_000_000;

/// Reads the address of `--otlp`; `env` looks up a variable of the environment.
///
/// Without a path it is the base, to which `/v1/metrics` belongs (OTLP specification, OTLP/HTTP request).
pub(crate) fn receiver(
    text: &str,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Receiver, AddressError> {
    let url = Url::read("--otlp", text, EXAMPLE)?;
    if !url.query.is_empty() {
        let help = "set what the server needs in OTEL_EXPORTER_OTLP_HEADERS, such as `api-key=...`";
        return Err(AddressError::new(format!("--otlp {url} has a query"), help));
    }
    let path = if url.path.is_empty() {
        "/v1/metrics"
    } else {
        ""
    };
    let headers = env("OTEL_EXPORTER_OTLP_HEADERS").unwrap_or_default();
    Ok(Receiver {
        name: "the OTLP receiver",
        shown: url.to_string(),
        url: format!("{url}{path}"),
        media_type: "application/x-protobuf",
        credential: None,
        headers: read_headers(&headers)?,
        remedies: &[
            (401, "set the credential in OTEL_EXPORTER_OTLP_HEADERS"),
            (
                403,
                "set a credential that may write in OTEL_EXPORTER_OTLP_HEADERS",
            ),
            (
                404,
                "name the whole path of its OTLP/HTTP endpoint, such as http://127.0.0.1:4318/v1/metrics",
            ),
            (
                415,
                "name an endpoint of OTLP/HTTP with binary protocol buffers",
            ),
        ],
    })
}

/// Headers as OpenTelemetry writes them: `name=value`, separated by commas, values percent-encoded.
fn read_headers(text: &str) -> Result<Vec<(String, Credential)>, AddressError> {
    let pairs = text
        .split(',')
        .map(str::trim)
        .filter(|pair| !pair.is_empty());
    pairs.map(read_header).collect()
}

fn read_header(pair: &str) -> Result<(String, Credential), AddressError> {
    let wrong = |what: &str, help: &str| {
        AddressError::new(format!("OTEL_EXPORTER_OTLP_HEADERS {what}"), help)
    };
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let parts = pair.split_once('=');
    let parts = parts.map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim()));
    let parts = parts.filter(|(name, _)| !name.is_empty() && name.chars().all(is_of_name));
    let Some((name, value)) = parts else {
        let what = "holds something other than headers";
        return Err(wrong(what, "write it like `name=value,other=value`"));
    };
    let Some(value) = percent::decode(value) else {
        let what = format!("has broken percent-encoding in the value of `{name}`");
        return Err(wrong(
            &what,
            "write `%` as %25, and other bytes as `%` and two hexadecimal digits of UTF-8",
        ));
    };
    if !value.chars().all(|c| c == ' ' || c.is_ascii_graphic()) {
        let what = format!("has a character in the value of `{name}` that no header carries");
        return Err(wrong(&what, "keep to visible ASCII characters and spaces"));
    }
    let value = value.into_owned();
    Ok((name, Credential::new(value.clone(), vec![value])))
}

/// Writer of the requests of one run.
#[derive(Debug)]
pub(crate) struct Requests {
    identity: Identity,
}

impl Requests {
    pub(crate) const fn new(identity: Identity) -> Self {
        Self { identity }
    }

    /// An `ExportMetricsServiceRequest`, and the number of its data points. Requests behind each other are one
    /// request with the points of all.
    pub(crate) fn encode(&self, snapshot: &Snapshot) -> (Vec<u8>, u64) {
        let mut scope_metrics = Message::default();
        scope_metrics.message(1, &instrumentation());
        let mut points = 0;
        for metric in TABLE {
            let of = snapshot
                .points
                .iter()
                .filter(|point| point.metric == *metric);
            let of: Vec<&Point> = of.collect();
            if let Some(first) = of.first() {
                points += of.len() as u64;
                scope_metrics.message(2, &self.metric(first, &of, snapshot));
            }
        }
        let mut resource_metrics = Message::default();
        resource_metrics.message(1, &self.resource());
        resource_metrics.message(2, &scope_metrics);
        let mut request = Message::default();
        if points > 0 {
            request.message(1, &resource_metrics);
        }
        (request.into_bytes(), points)
    }

    /// Resource attributes: those of the semantic conventions for a service, and the run's own.
    fn resource(&self) -> Message {
        let of = &self.identity;
        let mut resource = Message::default();
        let own = [
            ("service.name", "muster"),
            ("service.version", VERSION),
            ("service.instance.id", &of.run),
            ("host.name", &of.host),
            ("muster.scenario", &of.scenario),
            ("muster.target", &of.target),
            ("muster.part", &of.part),
        ];
        for (name, value) in own.into_iter().filter(|(_, value)| !value.is_empty()) {
            resource.message(1, &attribute(name, value));
        }
        resource
    }

    fn metric(&self, first: &Point, points: &[&Point], snapshot: &Snapshot) -> Message {
        let metric = first.metric;
        let mut message = Message::default();
        message.text(1, &metric.otlp());
        message.text(2, metric.help);
        message.text(3, &metric.ucum());
        let mut data = Message::default();
        for point in points {
            self.data_points(point, snapshot, &mut data);
        }
        let field = match metric.kind {
            Kind::Gauge | Kind::Quantiles => 5,
            Kind::Counter => {
                data.number(2, CUMULATIVE);
                data.number(3, 1);
                7
            }
            Kind::Summary => 11,
        };
        message.message(field, &data);
        message
    }

    fn data_points(&self, point: &Point, snapshot: &Snapshot, data: &mut Message) {
        let at_ms = if point.metric.is_of_second() {
            snapshot.second_ms
        } else {
            snapshot.wall_ms
        };
        let new = || {
            let mut message = Message::default();
            message.fixed(2, self.identity.began_ms * NANOS_PER_MS);
            message.fixed(3, at_ms * NANOS_PER_MS);
            for (name, value) in point.labelled() {
                message.message(7, &attribute(name, value));
            }
            message
        };
        match &point.value {
            Value::Count(count) => {
                let mut message = new();
                message.fixed(6, *count);
                data.message(1, &message);
            }
            Value::Number(number) => {
                let mut message = new();
                message.double(4, *number);
                data.message(1, &message);
            }
            Value::Quantiles(quantiles) => {
                for (quantile, value) in quantiles {
                    let mut message = new();
                    message.message(7, &attribute("quantile", &quantile.to_string()));
                    message.double(4, *value);
                    data.message(1, &message);
                }
            }
            Value::Summary {
                quantiles,
                sum,
                count,
            } => {
                let mut message = new();
                message.fixed(4, *count);
                message.double(5, *sum);
                for (quantile, value) in quantiles {
                    let mut at = Message::default();
                    at.double(1, *quantile);
                    at.double(2, *value);
                    message.message(6, &at);
                }
                data.message(1, &message);
            }
        }
    }
}

fn instrumentation() -> Message {
    let mut scope = Message::default();
    scope.text(1, "muster");
    scope.text(2, VERSION);
    scope
}

/// A `KeyValue` with a text.
fn attribute(name: &str, value: &str) -> Message {
    let mut any = Message::default();
    any.text(1, value);
    let mut attribute = Message::default();
    attribute.text(1, name);
    attribute.message(2, &any);
    attribute
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table;

    fn receiver_of(text: &str, headers: &str) -> Result<Receiver, AddressError> {
        receiver(text, &|_| Some(headers.to_owned()))
    }

    #[test]
    fn an_address_without_a_path_is_the_base() {
        let base = receiver_of("http://h:4318", "").expect("an address");
        assert_eq!(base.url, "http://h:4318/v1/metrics");
        let whole = receiver_of("https://h/otlp/v1/metrics", "").expect("an address");
        assert_eq!(whole.url, "https://h/otlp/v1/metrics");
        assert!(receiver_of("http://h:4318?token=x", "").is_err());
    }

    #[test]
    fn headers_come_from_the_environment() {
        let given = receiver_of("http://h", "api-key=a%3Db, Other = c ").expect("headers");
        let headers = given.headers.iter();
        let headers: Vec<_> = headers
            .map(|(name, value)| (name.as_str(), value.header()))
            .collect();
        assert_eq!(headers, [("api-key", "a=b"), ("other", "c")]);
        for (wrong, words) in [
            ("a", "something other than headers; write it like"),
            ("=b", "something other than headers"),
            ("a b=c", "something other than headers"),
            (
                "a=%zz",
                "broken percent-encoding in the value of `a`; write `%` as %25",
            ),
            (
                "a=b%0Ac",
                "a character in the value of `a` that no header carries",
            ),
        ] {
            let error = receiver_of("http://h", wrong).expect_err(wrong);
            assert!(error.to_string().contains(words), "{error}");
        }
    }

    /// The bytes as a decoder of protocol buffers by their published definition reads them; e2e/metrics.sh has
    /// the rest of the messages read by the published classes for Python.
    #[test]
    fn a_counter_is_a_monotonic_cumulative_sum() {
        let identity = Identity {
            began_ms: 1,
            ..Identity::default()
        };
        let snapshot = Snapshot {
            wall_ms: 2,
            points: vec![Point::count(&table::LINKS_OPENED, &[], 3)],
            ..Snapshot::default()
        };
        let (request, points) = Requests::new(identity).encode(&snapshot);
        assert_eq!(points, 1);
        let mut sum = vec![0x3a, 0x21, 0x0a, 0x1b];
        sum.extend([&[0x11][..], &1_000_000u64.to_le_bytes()].concat());
        sum.extend([&[0x19][..], &2_000_000u64.to_le_bytes()].concat());
        sum.extend([&[0x31][..], &3u64.to_le_bytes()].concat());
        sum.extend([0x10, 2, 0x18, 1]);
        let is_in = request.windows(sum.len()).any(|part| part == sum);
        assert!(is_in, "{request:02x?}");
        let name = [&[0x0a, 19][..], b"muster.links.opened"].concat();
        assert!(request.windows(name.len()).any(|part| part == name));
    }

    #[test]
    fn nothing_to_report_is_an_empty_request() {
        let (request, points) = Requests::new(Identity::default()).encode(&Snapshot::default());
        assert_eq!((request.len(), points), (0, 0));
    }
}
