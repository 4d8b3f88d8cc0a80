//! Bounded channels to and from the thread of a loop.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError};

/// A thread's ends of two channels: orders come in when the loop's waker is called, letters go out
/// to one reader of many threads, who knows each by its number.
#[derive(Debug)]
pub struct Mailbox<I, O> {
    number: usize,
    orders: Receiver<I>,
    letters: SyncSender<(usize, O)>,
}

impl<I, O> Mailbox<I, O> {
    /// The mailbox of thread `number`.
    pub fn new(number: usize, orders: Receiver<I>, letters: SyncSender<(usize, O)>) -> Self {
        Self {
            number,
            orders,
            letters,
        }
    }

    /// The next order, if one has come.
    pub fn next_order(&self) -> Option<I> {
        self.orders.try_recv().ok()
    }

    /// Posts a letter; false if the reader was so far behind that it had to be waited for. If
    /// nobody reads any more, the letter is dropped.
    pub fn post(&self, letter: O) -> bool {
        match self.letters.try_send((self.number, letter)) {
            Ok(()) | Err(TrySendError::Disconnected(_)) => true,
            Err(TrySendError::Full(letter)) => {
                let _ = self.letters.send(letter);
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;

    /// Of so many letters some find a reader that is behind, however the two threads take turns.
    #[test]
    fn a_reader_who_is_behind_is_waited_for_and_loses_nothing() {
        const LETTERS: u32 = 10_000;
        let (letters, reader) = sync_channel(1);
        let mailbox = Mailbox::<(), u32>::new(7, sync_channel(1).1, letters);
        assert!(mailbox.post(0));
        let writer = std::thread::spawn(move || {
            (1..LETTERS).for_each(|letter| _ = mailbox.post(letter));
        });
        assert!(reader.iter().eq((0..LETTERS).map(|letter| (7, letter))));
        writer.join().unwrap();
    }

    #[test]
    fn a_letter_without_a_reader_does_not_hold_its_writer_up() {
        let (letters, reader) = sync_channel(1);
        drop(reader);
        let mailbox = Mailbox::<(), u32>::new(0, sync_channel(1).1, letters);
        assert!(mailbox.post(1) && mailbox.post(2));
    }
}
