//! The headers of a record, whatever their names are made of.
//!
//! The crate's own `Headers` takes a name for UTF-8 and panics where it is none, so that anybody who may
//! write a topic could end a run.

#![expect(
    unsafe_code,
    reason = "librdkafka hands out pointers into the message, which is borrowed for as long as they are used"
)]

use std::ffi::CStr;
use std::marker::PhantomData;
use std::ptr;
use std::slice;

use rdkafka::bindings::{
    rd_kafka_header_get_all, rd_kafka_headers_t, rd_kafka_message_headers, rd_kafka_resp_err_t,
};
use rdkafka::types::RDKafkaMessage;

use super::fetched::Record;

/// Each header's name and value, which may be none. Those with a name that is not UTF-8 are left out: neither
/// Muster nor a platform writes such.
pub(crate) fn headers<'a>(
    record: &Record<'a>,
) -> impl Iterator<Item = (&'a str, Option<&'a [u8]>)> + use<'a> {
    let all = Headers::of(record);
    let headers = (0..).map_while(move |at| all?.header(at));
    headers.filter_map(|(name, value)| Some((name.to_str().ok()?, value)))
}

/// The headers of a record, which is alive as long as they are looked at.
#[derive(Clone, Copy)]
struct Headers<'a> {
    list: ptr::NonNull<rd_kafka_headers_t>,
    record: PhantomData<&'a RDKafkaMessage>,
}

impl<'a> Headers<'a> {
    /// Returns the headers of a record that has any.
    fn of(record: &Record<'a>) -> Option<Self> {
        let mut list = ptr::null_mut();
        // SAFETY: the message is alive as long as its record, and keeps the list that is handed out.
        let said = unsafe { rd_kafka_message_headers(record.message(), &raw mut list) };
        let is_there = said == rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR;
        let list = ptr::NonNull::new(list).filter(|_| is_there)?;
        Some(Self {
            list,
            record: PhantomData,
        })
    }

    /// One of them; none behind the last.
    fn header(self, at: usize) -> Option<(&'a CStr, Option<&'a [u8]>)> {
        let (mut name, mut value, mut length) = (ptr::null(), ptr::null(), 0);
        // SAFETY: the list is the record's, which is alive; it is only read.
        let said = unsafe {
            rd_kafka_header_get_all(
                self.list.as_ptr(),
                at,
                &raw mut name,
                &raw mut value,
                &raw mut length,
            )
        };
        if said != rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR || name.is_null() {
            return None;
        }
        // SAFETY: the name ends with a zero, and lives as long as the record.
        let name = unsafe { CStr::from_ptr(name) };
        // SAFETY: a value that is there has so many bytes, and lives as long as the record.
        let bytes = || unsafe { slice::from_raw_parts(value.cast(), length) };
        Some((name, (!value.is_null()).then(bytes)))
    }
}
