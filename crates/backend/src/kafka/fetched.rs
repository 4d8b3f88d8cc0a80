//! The queue in which the records of all partitions wait, taken many at a time.
//!
//! The crate takes one record a call, for which it allocates and reads the clock three times. What
//! takes many is librdkafka's own, and deaf to all but records: so they have a queue of their own, and
//! errors, assignments and statistics stay in the consumer's. Why: `docs/adr/0057-records-by-batches.md`.

#![expect(
    unsafe_code,
    reason = "librdkafka hands over pointers: to its queue, which lives as long as the client that is \
              held beside it, and to a record, which lives as long as the call that hands it over"
)]

use std::any::Any;
use std::ffi::{CStr, CString, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::{ptr, slice};

use muster_net::Waker;
use rdkafka::bindings;
use rdkafka::client::ClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{IsError, KafkaError};
use rdkafka::message::BorrowedMessage;
use rdkafka::topic_partition_list::TopicPartitionList;
use rdkafka::types::{RDKafka, RDKafkaMessage, RDKafkaQueue};

use super::listener::Listener;

/// The queue of one consumer.
pub(crate) struct Fetched {
    queue: *mut RDKafkaQueue,
    /// Called when the queue is no longer empty; ours to free.
    waker: *mut Waker,
    consumer: Arc<BaseConsumer<Listener>>,
}

// SAFETY: every function of librdkafka that takes a queue locks it.
unsafe impl Send for Fetched {}
// SAFETY: as above.
unsafe impl Sync for Fetched {}

impl Fetched {
    /// An empty queue, in which nothing waits before [`Fetched::gather`].
    pub(crate) fn new(consumer: Arc<BaseConsumer<Listener>>, waker: Waker) -> Self {
        let waker = Box::into_raw(Box::new(waker));
        // SAFETY: the client lives, since the consumer does, and the waker until the queue has forgotten it.
        let queue = unsafe {
            let queue = bindings::rd_kafka_queue_new(consumer.client().native_ptr());
            bindings::rd_kafka_queue_cb_event_enable(queue, Some(wake), waker.cast());
            queue
        };
        Self {
            queue,
            waker,
            consumer,
        }
    }

    /// From now on the records of these partitions wait here. One of which the library knows nothing
    /// keeps them in the consumer's queue.
    pub(crate) fn gather(&self, partitions: &TopicPartitionList) {
        for partition in partitions.elements() {
            let Ok(topic) = CString::new(partition.topic()) else {
                continue;
            };
            let client = self.consumer.client().native_ptr();
            // SAFETY: client and queue live; the name is copied; the partition's queue is counted, so that
            // only our hold of it ends.
            unsafe {
                let (topic, number) = (topic.as_ptr(), partition.partition());
                let own = bindings::rd_kafka_queue_get_partition(client, topic, number);
                if !own.is_null() {
                    bindings::rd_kafka_queue_forward(own, self.queue);
                    bindings::rd_kafka_queue_destroy(own);
                }
            }
        }
    }

    /// Hands over the records that wait, at most so many; whether more may wait. The listener hears
    /// what could not be fetched.
    pub(crate) fn take(&self, most: usize, each: impl FnMut(&Record<'_>)) -> bool {
        let mut taking = Taking {
            each,
            left: most,
            listener: self.consumer.context(),
            panic: None,
        };
        let opaque = ptr::from_mut(&mut taking).cast();
        let hand = hand_of(&taking);
        // SAFETY: the queue lives; `hand` is called within this call only, with what `opaque` points to.
        unsafe { bindings::rd_kafka_consume_callback_queue(self.queue, 0, Some(hand), opaque) };
        if let Some(panic) = taking.panic {
            resume_unwind(panic);
        }
        taking.left == 0
    }
}

impl Drop for Fetched {
    fn drop(&mut self) {
        // SAFETY: queue and client live; the library frees what waits, and calls the waker no more before that
        // is freed, which was made by `Box::into_raw`.
        unsafe {
            bindings::rd_kafka_queue_cb_event_enable(self.queue, None, ptr::null_mut());
            bindings::rd_kafka_queue_destroy(self.queue);
            drop(Box::from_raw(self.waker));
        }
    }
}

/// A record, as long as it is looked at.
pub(crate) struct Record<'a>(&'a RDKafkaMessage);

impl<'a> Record<'a> {
    /// One that the crate took.
    pub(crate) fn of(message: &'a BorrowedMessage<'_>) -> Self {
        // SAFETY: the message is valid for as long as it is borrowed.
        Self(unsafe { &*message.ptr() })
    }

    /// The name of its topic, of which brokers allow ASCII only.
    pub(crate) fn topic(&self) -> &'a str {
        // SAFETY: the record holds its topic, which holds its name, closed by a zero.
        let name = unsafe { CStr::from_ptr(bindings::rd_kafka_topic_name(self.0.rkt)) };
        name.to_str().unwrap_or_default()
    }

    /// Its key; empty if there is none.
    pub(crate) fn key(&self) -> &'a [u8] {
        // SAFETY: so long is the key.
        unsafe { bytes(self.0.key, self.0.key_len) }
    }

    /// Its value; empty if there is none.
    pub(crate) fn payload(&self) -> &'a [u8] {
        // SAFETY: so long is the payload.
        unsafe { bytes(self.0.payload, self.0.len) }
    }

    /// As the library has it.
    pub(crate) fn message(&self) -> &'a RDKafkaMessage {
        self.0
    }
}

/// # Safety
/// Where it is not null, so many bytes are there, as long as the result is used.
unsafe fn bytes<'a>(at: *const c_void, length: usize) -> &'a [u8] {
    if at.is_null() {
        return &[];
    }
    // SAFETY: so it is promised above.
    unsafe { slice::from_raw_parts(at.cast(), length) }
}

/// One turn of taking.
struct Taking<'a, F> {
    each: F,
    left: usize,
    listener: &'a Listener,
    /// What went wrong in `each`, and must not pass through the library.
    panic: Option<Box<dyn Any + Send>>,
}

impl<F: FnMut(&Record<'_>)> Taking<'_, F> {
    /// Takes one record, or what came in its place; whether it was the last of this turn.
    fn take(&mut self, message: &RDKafkaMessage) -> bool {
        self.left = self.left.saturating_sub(1);
        let done = catch_unwind(AssertUnwindSafe(|| {
            if message.err.is_error() {
                // SAFETY: the message is valid, and keeps what it says, closed by a zero.
                let why = unsafe { CStr::from_ptr(bindings::rd_kafka_message_errstr(message)) };
                let error = KafkaError::MessageConsumption(message.err.into());
                self.listener.error(error, &why.to_string_lossy());
            } else {
                (self.each)(&Record(message));
            }
        }));
        self.panic = done.err();
        self.panic.is_some() || self.left == 0
    }
}

type Hand = unsafe extern "C" fn(*mut RDKafkaMessage, *mut c_void);

/// The function that the library is to call with such a turn.
fn hand_of<F: FnMut(&Record<'_>)>(_: &Taking<'_, F>) -> Hand {
    hand::<F>
}

/// # Safety
/// `message` is one that the library hands over and frees afterwards, `taking` a [`Taking`] of the same `F`.
unsafe extern "C" fn hand<F: FnMut(&Record<'_>)>(
    message: *mut RDKafkaMessage,
    taking: *mut c_void,
) {
    // SAFETY: so it is promised above; the library keeps what was not handed over when it is told to yield.
    unsafe {
        let taking = &mut *taking.cast::<Taking<'_, F>>();
        if taking.take(&*message) {
            bindings::rd_kafka_yield(ptr::null_mut());
        }
    }
}

unsafe extern "C" fn wake(_: *mut RDKafka, waker: *mut c_void) {
    // SAFETY: it is the waker that the queue was given, and lives longer than the queue knows it.
    unsafe { &*waker.cast::<Waker>() }.wake();
}
