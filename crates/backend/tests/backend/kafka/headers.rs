//! Records with headers whose names are no text, which anybody may write who may write the topic.

#![expect(
    unsafe_code,
    reason = "only librdkafka's own call writes a header with such a name"
)]

use std::ffi::CString;

use rdkafka::bindings::{rd_kafka_producev, rd_kafka_resp_err_t, rd_kafka_vtype_t};
use rdkafka::producer::Producer;

use super::rig::Mock;
use crate::rig::PATIENCE;

/// Writes a record of nobody's with a header of that name before one that is text.
pub(crate) fn publish_named(mock: &Mock, topic: &str, name: &[u8]) {
    let text = |bytes: &[u8]| CString::new(bytes).unwrap();
    let (topic, name, plain) = (text(topic.as_bytes()), text(name), text(b"status"));
    let (body, value) = (b"{}", b"200");
    // SAFETY: each tag has the arguments that rdkafka.h has behind it, all of which outlive the call, which
    // copies the headers, and the body by RD_KAFKA_MSG_F_COPY.
    let said = unsafe {
        rd_kafka_producev(
            mock.producer.client().native_ptr(),
            rd_kafka_vtype_t::RD_KAFKA_VTYPE_TOPIC as i32,
            topic.as_ptr(),
            rd_kafka_vtype_t::RD_KAFKA_VTYPE_MSGFLAGS as i32,
            rdkafka::bindings::RD_KAFKA_MSG_F_COPY,
            rd_kafka_vtype_t::RD_KAFKA_VTYPE_VALUE as i32,
            body.as_ptr(),
            body.len(),
            rd_kafka_vtype_t::RD_KAFKA_VTYPE_HEADER as i32,
            name.as_ptr(),
            value.as_ptr(),
            value.len(),
            rd_kafka_vtype_t::RD_KAFKA_VTYPE_HEADER as i32,
            plain.as_ptr(),
            value.as_ptr(),
            value.len(),
            rd_kafka_vtype_t::RD_KAFKA_VTYPE_END as i32,
        )
    };
    assert_eq!(said, rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR);
    mock.producer.flush(PATIENCE).unwrap();
}
