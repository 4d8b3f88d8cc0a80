//! An agent at the end of two pipes: orders come in, news go out.

use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::Duration;

use muster_conduct::Order;

use crate::agent::ORDERS_MAX;
use crate::{Agent, Assignment, FrameError, News, read_frame, write_frame};

/// Time that the worker waits for news before it looks for orders again.
const WAIT: Duration = Duration::from_millis(20);

/// Serves as a worker: reads its assignment and then orders from `input`, writes news to `out`.
/// It ends when its work is done, or when the controller's end of the pipe is gone.
///
/// # Errors
/// [`FrameError`] if the pipe to the controller fails.
pub fn serve(mut input: impl Read + Send + 'static, mut out: impl Write) -> Result<(), FrameError> {
    let Some(assignment) = read_frame::<Assignment>(&mut input)? else {
        return Ok(());
    };
    let mut agent = match Agent::start(assignment, None) {
        Ok(agent) => agent,
        Err(error) => return write_frame(&mut out, &News::Lost(error.to_string())),
    };
    let orders = read_orders(input);
    loop {
        loop {
            match orders.try_recv() {
                Ok(order) => agent.order(order),
                Err(TryRecvError::Empty) => break,
                // The controller died: a worker dies with it.
                Err(TryRecvError::Disconnected) => return Ok(()),
            }
        }
        let Some(news) = agent.next(WAIT) else {
            continue;
        };
        let is_last = matches!(news, News::Ended(_) | News::Lost(_));
        write_frame(&mut out, &news)?;
        if is_last {
            return Ok(());
        }
    }
}

fn read_orders(mut input: impl Read + Send + 'static) -> Receiver<Order> {
    let (orders, inbox) = sync_channel(ORDERS_MAX);
    std::thread::spawn(move || {
        while let Ok(Some(order)) = read_frame::<Order>(&mut input) {
            if orders.send(order).is_err() {
                return;
            }
        }
    });
    inbox
}
