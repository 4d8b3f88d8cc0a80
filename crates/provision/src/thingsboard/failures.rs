//! Refusals of ThingsBoard in words, each with its remedy.

use muster_platform::board_rest::{ErrorCode, Failure};

use crate::ProvisionError;
use crate::rest::{Answer, NOT_FOUND};

/// The answer to a method that a path does not have (RFC 9110 section 15.5.6).
const NO_METHOD: u16 = 405;

/// The error for an answer that is no.
pub(super) fn refused(answer: &Answer) -> ProvisionError {
    let failure: Option<Failure> = serde_json::from_str(answer.text()).ok();
    let code = failure.as_ref().and_then(|failure| failure.error_code);
    if is_lacking(answer.status, code) {
        return ProvisionError::Lacks {
            call: answer.call.clone(),
            status: answer.status,
            remedy: without(&answer.call),
        };
    }
    let (Some(failure), Some(code)) = (failure, code) else {
        return answer.refused();
    };
    ProvisionError::Refused {
        call: answer.call.clone(),
        status: answer.status,
        said: words(&failure, code),
        remedy: remedy(answer.status, code),
    }
}

/// Returns true if the token of the call has expired, or its session has ended.
pub(super) fn is_expired(answer: &Answer) -> bool {
    answer.status == 401 && code_of(answer) == Some(ErrorCode::TOKEN_EXPIRED)
}

/// Returns true if a name or a token is taken, or a field is wrong.
pub(super) fn is_bad_request(answer: &Answer) -> bool {
    answer.status == 400 && code_of(answer) == Some(ErrorCode::BAD_REQUEST)
}

fn code_of(answer: &Answer) -> Option<ErrorCode> {
    let failure: Failure = serde_json::from_str(answer.text()).ok()?;
    failure.error_code
}

/// An unknown path is answered by the web server, which knows no codes.
fn is_lacking(status: u16, code: Option<ErrorCode>) -> bool {
    (status == NOT_FOUND && code.is_none()) || status == NO_METHOD
}

fn words(failure: &Failure, code: ErrorCode) -> String {
    let limit = failure.limit.map(|limit| format!(", the limit is {limit}"));
    format!(
        "`{}` ({code}){}",
        failure.message,
        limit.unwrap_or_default()
    )
}

fn remedy(status: u16, code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::AUTHENTICATION | ErrorCode::CREDENTIALS_EXPIRED => {
            "give the login of a tenant's administrator by `provision.user` and `provision.password`"
        }
        ErrorCode::TOKEN_EXPIRED => {
            "give `provision.user` and `provision.password`, whose token is renewed in time"
        }
        ErrorCode::PERMISSION_DENIED => {
            "give the login of a tenant's administrator: others may not change devices and rule chains"
        }
        ErrorCode::ENTITIES_LIMIT => {
            "raise the limit in the tenant's profile, or remove others; what was created until now is \
             recorded"
        }
        ErrorCode::TOO_MANY_REQUESTS => {
            "lower `provision.rate`, or raise the limit of REST requests in the tenant's profile"
        }
        _ if status >= 500 => {
            "look into ThingsBoard's own log; what was created until now is recorded, and the same can be \
             tried again"
        }
        _ => "look into ThingsBoard's own documentation of this call",
    }
}

/// The remedy where a server has no such call.
fn without(call: &str) -> &'static str {
    if call.contains("/api/auth/") {
        "look whether `provision.url` is the address of ThingsBoard's web interface"
    } else if call.contains("/bulk_import") {
        "remove `provision.bulk`: devices are then created by single calls"
    } else if call.contains("/api/ruleChain") {
        "remove `provision.count`: devices and load need no rule chain"
    } else if call.contains("/api/plugins/telemetry") {
        "counts and stored values cannot be read there; devices and load need no such call"
    } else {
        "create the devices by other means, and write `provision: { mode: none }`"
    }
}
