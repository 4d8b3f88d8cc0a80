//! The queue in which the records of all partitions wait, taken many at a time.
//!
//! The crate `rdkafka` takes one record a call, for which it allocates and reads the clock three times.
//! A function of librdkafka takes many records from a queue, but nothing else. Records therefore have
//! a separate queue; errors, assignments and statistics stay in the consumer's queue. Why: `docs/adr/0016-kafka-records-in-batches.md`.

#![expect(
    unsafe_code,
    reason = "librdkafka hands over pointers: to its queue, which lives as long as the client in the \
              same struct, and to a record, which lives as long as the call that hands it over"
)]

use std::any::Any;
use std::ffi::{CStr, CString, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::{ptr, slice};

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
    notifier: *mut Notifier,
    consumer: Arc<BaseConsumer<Listener>>,
}

/// Callback when something waits; called on threads of the library.
type Notifier = Box<dyn Fn() + Send + Sync>;

// SAFETY: every function of librdkafka that takes a queue locks it.
unsafe impl Send for Fetched {}
// SAFETY: as above.
unsafe impl Sync for Fetched {}

impl Fetched {
    /// An empty queue, in which nothing waits before [`Fetched::gather`].
    pub(crate) fn new(consumer: Arc<BaseConsumer<Listener>>, notifier: Notifier) -> Self {
        let notifier = Box::into_raw(Box::new(notifier));
        // SAFETY: the client lives, since the consumer does, and the notifier until the queue has forgotten it.
        let queue = unsafe {
            let queue = bindings::rd_kafka_queue_new(consumer.client().native_ptr());
            bindings::rd_kafka_queue_cb_event_enable(queue, Some(notify), notifier.cast());
            queue
        };
        Self {
            queue,
            notifier,
            consumer,
        }
    }

    /// Forwards the records of these partitions to this queue. A partition that the library does not
    /// know keeps its records in the consumer's queue.
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

    /// Hands over at most `most` of the records that wait. Returns true if more may wait. Errors go to
    /// the listener.
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
        // SAFETY: queue and client live; the library frees what waits, and calls the notifier no more before that
        // is freed, which was made by `Box::into_raw`.
        unsafe {
            bindings::rd_kafka_queue_cb_event_enable(self.queue, None, ptr::null_mut());
            bindings::rd_kafka_queue_destroy(self.queue);
            drop(Box::from_raw(self.notifier));
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

    /// The name of its topic; brokers allow ASCII only.
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
/// `at` is null or points to `length` bytes, which stay valid while the result is used.
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
    /// Panic in `each`, which must not pass through the library.
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
    // SAFETY: so it is promised above; the library keeps what was not handed over when it is notified to yield.
    unsafe {
        let taking = &mut *taking.cast::<Taking<'_, F>>();
        if taking.take(&*message) {
            bindings::rd_kafka_yield(ptr::null_mut());
        }
    }
}

/// # Safety
/// `notifier` is that of the queue.
unsafe extern "C" fn notify(_: *mut RDKafka, notifier: *mut c_void) {
    // SAFETY: so it is promised above; it is freed when the queue has forgotten it.
    let notifier = unsafe { &*notifier.cast::<Notifier>() };
    notifier();
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use rdkafka::config::ClientConfig;
    use rdkafka::error::KafkaResult;
    use rdkafka::mocking::MockCluster;
    use rdkafka::producer::{BaseProducer, BaseRecord, DefaultProducerContext, Producer};
    use rdkafka::topic_partition_list::Offset;

    use super::super::listener::{Callbacks, News};
    use super::*;

    const TOPIC: &str = "t";
    const PARTITIONS: i32 = 3;
    const EACH: usize = 40;
    const TURN: Duration = Duration::from_millis(100);
    /// A generous limit: only a hang reaches it.
    const TURNS: usize = 300;

    struct World {
        consumer: Arc<BaseConsumer<Listener>>,
        fetched: Fetched,
        callbacks: Callbacks,
        notified: Arc<AtomicUsize>,
        /// The last to end: a consumer takes its leave of it.
        _cluster: MockCluster<'static, DefaultProducerContext>,
    }

    /// Partitions with so many records each, about to be fetched from the first.
    fn world() -> World {
        let cluster = MockCluster::new(1).expect("a mock cluster");
        let made = cluster.create_topic(TOPIC, PARTITIONS, 1);
        made.expect("a topic");
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", cluster.bootstrap_servers());
        publish(&config);
        config
            .set("group.id", "g")
            .set("enable.partition.eof", "true");
        let (listener, callbacks) = Listener::new();
        let consumer: KafkaResult<BaseConsumer<Listener>> = config.create_with_context(listener);
        let consumer = Arc::new(consumer.expect("a consumer"));
        let notified = Arc::new(AtomicUsize::new(0));
        let notifying = Arc::clone(&notified);
        let notifier: Notifier = Box::new(move || {
            notifying.fetch_add(1, Ordering::Relaxed);
        });
        let mut from = TopicPartitionList::new();
        for partition in 0..PARTITIONS {
            let added = from.add_partition_offset(TOPIC, partition, Offset::Beginning);
            added.expect("an offset");
        }
        // As before each assignment of a run; else leaders are looked for half a minute later.
        for partition in 0..PARTITIONS {
            let ends = consumer.fetch_watermarks(TOPIC, partition, TURN * 100);
            assert_eq!(ends.expect("ends").1, EACH as i64);
        }
        let fetched = Fetched::new(Arc::clone(&consumer), notifier);
        fetched.gather(&from);
        consumer.assign(&from).expect("partitions");
        World {
            consumer,
            fetched,
            callbacks,
            notified,
            _cluster: cluster,
        }
    }

    fn publish(config: &ClientConfig) {
        let producer: BaseProducer = config.create().expect("a producer");
        for number in 0..EACH {
            for partition in 0..PARTITIONS {
                let payload = number.to_string();
                let record = BaseRecord::<str, str>::to(TOPIC).partition(partition);
                let sent = producer.send(record.key("k").payload(&payload));
                assert!(sent.is_ok());
            }
        }
        producer.flush(TURN * 100).expect("they are written");
    }

    /// The numbers by partition.
    type Taken = BTreeMap<i32, Vec<String>>;

    fn note(taken: &mut Taken, record: &Record<'_>) {
        let text = String::from_utf8_lossy(record.payload()).into_owned();
        taken.entry(record.0.partition).or_default().push(text);
        assert_eq!((record.topic(), record.key()), (TOPIC, &b"k"[..]));
    }

    fn count(taken: &Taken) -> usize {
        taken.values().map(Vec::len).sum()
    }

    fn all() -> Taken {
        let numbers: Vec<_> = (0..EACH).map(|number| number.to_string()).collect();
        (0..PARTITIONS).map(|it| (it, numbers.clone())).collect()
    }

    impl World {
        /// Takes up to so many at a time until it is so.
        fn take_until(&self, most: usize, taken: &mut Taken, is_so: impl Fn(&Taken) -> bool) {
            for _ in 0..TURNS {
                while self.fetched.take(most, |record| note(taken, record)) {}
                if is_so(taken) {
                    return;
                }
                let other = self.consumer.poll(TURN);
                assert!(other.is_none(), "a record is in the consumer's queue");
            }
            panic!("only {taken:?}");
        }
    }

    #[test]
    fn records_are_handed_over_in_the_order_of_their_partition_and_so_many_at_a_time() {
        let (world, mut taken) = (world(), Taken::new());
        for _ in 0..TURNS {
            let before = count(&taken);
            let has_more = world.fetched.take(7, |record| note(&mut taken, record));
            let came = count(&taken) - before;
            assert!(came <= 7 && (has_more || came < 7), "{came}");
            if taken == all() {
                assert!(world.notified.load(Ordering::Relaxed) > 0);
                return;
            }
            if !has_more {
                world.consumer.poll(TURN);
            }
        }
        panic!("only {taken:?}");
    }

    /// The end of a partition is notified as a refused fetch is: an error in the place of a record.
    #[test]
    fn an_error_in_the_place_of_a_record_is_heard_and_moves_no_position() {
        let (world, mut taken) = (world(), Taken::new());
        let ends = AtomicUsize::new(0);
        world.take_until(1_000, &mut taken, |_| {
            let news = std::iter::from_fn(|| world.callbacks.news.try_recv().ok());
            let came = news.filter(|news| matches!(news, News::Failed(..))).count();
            ends.fetch_add(came, Ordering::Relaxed) + came == PARTITIONS as usize
        });
        assert_eq!(taken, all());
        let positions = world.consumer.position().expect("positions");
        let after = Offset::Offset(EACH as i64);
        assert!(
            positions.elements().iter().all(|it| it.offset() == after),
            "{positions:?}"
        );
    }

    #[test]
    fn a_panic_passes_the_library_and_what_was_not_handed_over_stays() {
        let (world, mut taken) = (world(), Taken::new());
        let mut take_one = || {
            let turn = || {
                world.fetched.take(1_000, |record| {
                    note(&mut taken, record);
                    panic!("of the test's own making");
                })
            };
            catch_unwind(AssertUnwindSafe(turn)).is_err()
        };
        let is_caught = (0..TURNS).any(|_| take_one() || world.consumer.poll(TURN).is_some());
        assert!(is_caught);
        assert_eq!(count(&taken), 1);
        world.take_until(1_000, &mut taken, |taken| *taken == all());
    }
}
