//! The terminal itself: taken over while the run goes on, and always given back.

use std::io::{self, Stdout};
use std::time::Duration;

use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use crossterm::{cursor, execute};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;

use muster_result::Live;

use crate::Screen;

/// The live screen on the terminal of the process.
///
/// While it is open the terminal is in raw mode, so that Ctrl-C is a key and no signal:
/// [`Dashboard::request`] has to be asked. Dropping it restores the terminal.
pub struct Dashboard {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    screen: Screen,
}

/// A request of the user, made by a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// End the run as if by SIGINT: Ctrl-C, or q.
    Interrupt,
}

impl Dashboard {
    /// Takes over the terminal.
    ///
    /// # Errors
    /// If standard output is no terminal, or one that does not obey; it is then as it was.
    pub fn open() -> io::Result<Self> {
        enable_raw_mode()?;
        let opened = execute!(io::stdout(), EnterAlternateScreen, cursor::Hide)
            .and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())));
        match opened {
            Ok(terminal) => Ok(Self {
                terminal,
                screen: Screen::default(),
            }),
            Err(error) => {
                restore();
                Err(error)
            }
        }
    }

    /// Draws how the run stands.
    ///
    /// # Errors
    /// If the terminal cannot be written.
    pub fn show(&mut self, live: &Live) -> io::Result<()> {
        self.screen.note(live);
        self.terminal.draw(|frame| self.screen.draw(live, frame))?;
        Ok(())
    }

    /// Returns the user's request since the last call; never waits.
    ///
    /// # Errors
    /// If the terminal cannot be read.
    pub fn request(&mut self) -> io::Result<Option<Request>> {
        let mut asked = None;
        while event::poll(Duration::ZERO)? {
            if let Event::Key(key) = event::read()? {
                asked = asked.or_else(|| request_of(&key));
            }
        }
        Ok(asked)
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives the terminal back. A failure here has no place to be reported: the screen is the terminal.
fn restore() {
    let _ = execute!(io::stdout(), cursor::Show, LeaveAlternateScreen);
    let _ = disable_raw_mode();
}

fn request_of(key: &KeyEvent) -> Option<Request> {
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    let is_interrupt = (key.code == KeyCode::Char('c') && is_control)
        || (key.code == KeyCode::Char('q') && !is_control);
    (is_interrupt && key.kind == KeyEventKind::Press).then_some(Request::Interrupt)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_c_and_q_end_the_run_and_nothing_else_does() {
        let key = |symbol, modifiers| request_of(&KeyEvent::new(KeyCode::Char(symbol), modifiers));
        assert_eq!(key('c', KeyModifiers::CONTROL), Some(Request::Interrupt));
        assert_eq!(key('q', KeyModifiers::NONE), Some(Request::Interrupt));
        assert_eq!(key('c', KeyModifiers::NONE), None);
        assert_eq!(key('x', KeyModifiers::CONTROL), None);
    }
}
