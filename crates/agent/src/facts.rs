//! The facts file: each thread fills its own pages and one thread writes them, so that no
//! device waits for a disk.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use muster_conduct::FactWriter;
use muster_measure::{FACTS_HEADER, encode_fact};
use muster_model::Fact;

/// Bytes of a page: some 800 facts.
const PAGE_BYTES: usize = 64 << 10;
/// Pages that may wait for the disk: 32 MiB, seconds of a busy run. A page that finds no room is
/// not written; this is reported and makes the run invalid.
const PAGES_MAX: usize = 512;

/// The facts file of a process, shared by all its threads.
#[derive(Debug)]
pub struct FactsLog {
    /// None is the end.
    pages: SyncSender<Option<String>>,
    counter: Arc<FactCounter>,
    writer: JoinHandle<io::Result<()>>,
}

/// Reason for which the file does not hold every fact.
#[derive(Debug, thiserror::Error)]
pub enum FactsError {
    /// More facts were reported than were wanted.
    #[error("{0} facts beyond the most that was asked for; raise --facts-max")]
    Beyond(u64),
    /// The disk was too slow, or stood still.
    #[error("{0} facts that the disk did not take in time; write them to a faster one")]
    Missed(u64),
    /// The disk failed.
    #[error("the facts after a write that failed: {0}")]
    Broken(#[from] io::Error),
    /// The writing thread is gone.
    #[error("the facts after the thread that writes them ended")]
    Gone,
}

/// Numbers of facts: the most to be written, those that came, and those that were missed.
#[derive(Debug)]
pub(crate) struct FactCounter {
    most: u64,
    noted: AtomicU64,
    missed: AtomicU64,
}

impl FactsLog {
    /// A log that has its heading; at most `most` facts are written to it.
    ///
    /// # Errors
    /// If the heading cannot be written, or the system gives no thread.
    pub fn new(mut out: Box<dyn Write + Send>, most: u64) -> io::Result<Self> {
        out.write_all(FACTS_HEADER.as_bytes())?;
        let (pages, filled) = sync_channel(PAGES_MAX);
        let writer = std::thread::Builder::new()
            .name("facts".to_owned())
            .spawn(move || write_pages(&filled, out))?;
        let counter = Arc::new(FactCounter {
            most,
            noted: AtomicU64::new(0),
            missed: AtomicU64::new(0),
        });
        Ok(Self {
            pages,
            counter,
            writer,
        })
    }

    /// Waits until all facts of the threads are written; call when they have ended.
    ///
    /// # Errors
    /// [`FactsError`] if not every fact is there.
    pub fn close(self) -> Result<(), FactsError> {
        // A writer that failed does not listen any more, and says why below.
        let _ = self.pages.send(None);
        self.writer.join().map_err(|_| FactsError::Gone)??;
        match (self.counter.missed(), self.counter.beyond()) {
            (0, 0) => Ok(()),
            (0, beyond) => Err(FactsError::Beyond(beyond)),
            (missed, _) => Err(FactsError::Missed(missed)),
        }
    }

    /// Writer for the facts of one thread.
    pub(crate) fn pen(&self) -> Box<dyn FactWriter> {
        Box::new(Pen {
            page: String::new(),
            facts: 0,
            pages: self.pages.clone(),
            counter: Arc::clone(&self.counter),
        })
    }

    /// Numbers of facts, for who watches over the process.
    pub(crate) fn counter(&self) -> Arc<FactCounter> {
        Arc::clone(&self.counter)
    }
}

impl FactCounter {
    /// Facts that were wanted and could not be written.
    pub(crate) fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }

    fn beyond(&self) -> u64 {
        self.noted.load(Ordering::Relaxed).saturating_sub(self.most)
    }

    /// Claims room for one more fact, and returns whether there was any.
    fn claim(&self) -> bool {
        self.noted.fetch_add(1, Ordering::Relaxed) < self.most
    }
}

/// The page that one thread is filling.
#[derive(Debug)]
struct Pen {
    page: String,
    facts: u64,
    pages: SyncSender<Option<String>>,
    counter: Arc<FactCounter>,
}

impl FactWriter for Pen {
    fn note(&mut self, fact: &Fact) {
        if !self.counter.claim() {
            return;
        }
        encode_fact(fact, &mut self.page);
        self.facts += 1;
        if self.page.len() >= PAGE_BYTES {
            let page = self.take_page();
            let is_taken = self.pages.try_send(page).is_ok();
            self.account(is_taken);
        }
    }
}

impl Pen {
    fn take_page(&mut self) -> Option<String> {
        let next = String::with_capacity(PAGE_BYTES);
        Some(std::mem::replace(&mut self.page, next))
    }

    fn account(&mut self, is_taken: bool) {
        let facts = std::mem::take(&mut self.facts);
        if !is_taken {
            self.counter.missed.fetch_add(facts, Ordering::Relaxed);
        }
    }
}

impl Drop for Pen {
    /// The thread has done its work, so that the last page may wait for its room.
    fn drop(&mut self) {
        let page = self.take_page();
        let is_taken = self.pages.send(page).is_ok();
        self.account(is_taken);
    }
}

fn write_pages(filled: &Receiver<Option<String>>, mut out: impl Write) -> io::Result<()> {
    while let Ok(Some(page)) = filled.recv() {
        out.write_all(page.as_bytes())?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::Sender;

    use muster_model::{LinkEvent, LinkFact, LinkId, Micros};

    use super::*;

    /// A disk that can be seen, and that stands still while somebody holds it.
    #[derive(Clone, Default)]
    struct Disk(Arc<Mutex<String>>);

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let text = std::str::from_utf8(bytes).expect("facts are text");
            self.0.lock().expect("nobody panicked").push_str(text);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Disk {
        fn facts(&self) -> usize {
            let written = self.0.lock().expect("nobody panicked");
            written
                .lines()
                .filter(|line| !line.starts_with('#'))
                .count()
        }
    }

    fn fact(link: u32) -> Fact {
        Fact::Link(LinkFact {
            link: LinkId(link),
            at: Micros(u64::from(link)),
            event: LinkEvent::Connected { took: Micros(1) },
            by_us: false,
        })
    }

    fn log(disk: &Disk, most: u64) -> FactsLog {
        FactsLog::new(Box::new(disk.clone()), most).expect("a thread can be had")
    }

    #[test]
    fn every_fact_of_every_thread_is_written() {
        let disk = Disk::default();
        let log = log(&disk, u64::MAX);
        let (mut one, mut other) = (log.pen(), log.pen());
        for link in 0..10_000 {
            one.note(&fact(link));
            other.note(&fact(link));
        }
        drop((one, other));
        log.close().expect("every fact is there");
        assert_eq!(disk.facts(), 20_000);
    }

    #[test]
    fn facts_beyond_the_most_are_counted_and_not_written() {
        let disk = Disk::default();
        let log = log(&disk, 10);
        let mut pen = log.pen();
        (0..13).for_each(|link| pen.note(&fact(link)));
        drop(pen);
        assert_eq!(log.counter().missed(), 0);
        assert!(matches!(log.close(), Err(FactsError::Beyond(3))));
        assert_eq!(disk.facts(), 10);
    }

    #[test]
    fn a_disk_that_stands_still_holds_no_thread_up_and_every_fact_it_costs_is_counted() {
        let disk = Disk::default();
        let log = log(&disk, u64::MAX);
        let mut pen = log.pen();
        let stalled = disk.0.lock().expect("nobody panicked");
        let mut noted = 0;
        while log.counter().missed() == 0 {
            pen.note(&fact(noted));
            noted += 1;
        }
        drop(stalled);
        drop(pen);
        let missed = log.counter().missed();
        let closed = log.close();
        assert!(matches!(closed, Err(FactsError::Missed(count)) if count == missed));
        assert_eq!(disk.facts() as u64 + missed, u64::from(noted));
    }

    #[test]
    fn a_disk_that_fails_is_named() {
        struct Full(Sender<()>);
        impl Write for Full {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                if bytes.starts_with(b"#") {
                    return Ok(bytes.len());
                }
                let _ = self.0.send(());
                Err(io::Error::from(io::ErrorKind::StorageFull))
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (failed, has_failed) = std::sync::mpsc::channel();
        let log = FactsLog::new(Box::new(Full(failed)), u64::MAX).expect("a heading can be had");
        let mut pen = log.pen();
        pen.note(&fact(1));
        drop(pen);
        has_failed.recv().expect("the page was tried");
        assert!(matches!(log.close(), Err(FactsError::Broken(_))));
    }
}
