//! Frames as they come: data is passed on in place, control frames are collected (RFC 6455
//! section 5).

use super::Fault;
use super::frame::{CONTROL_MAX, ControlKind, HEAD_MAX, Head, Kind, Rules, mask, turned};

/// Bytes that came, while they are turned in place: behind `to` and before `from` lies what is no
/// longer needed.
#[derive(Debug)]
pub(super) struct Cut<'a> {
    bytes: &'a mut [u8],
    from: usize,
    /// One behind the last plain byte.
    to: usize,
}

impl<'a> Cut<'a> {
    /// The first `held` bytes are plain already.
    #[inline]
    pub(super) const fn new(bytes: &'a mut [u8], held: usize) -> Self {
        Self {
            bytes,
            from: held,
            to: held,
        }
    }

    #[inline]
    pub(super) fn rest(&self) -> &[u8] {
        &self.bytes[self.from..]
    }

    /// `count` bytes of the rest are read and not needed again.
    #[inline]
    pub(super) const fn skip(&mut self, count: usize) {
        self.from += count;
    }

    #[inline]
    pub(super) const fn plain(&self) -> usize {
        self.to
    }

    /// Unmasks the next `count` bytes and sets them behind the plain ones.
    #[inline]
    fn pass(&mut self, count: usize, key: [u8; 4]) {
        let until = self.from + count;
        if key != [0; 4] {
            mask(&mut self.bytes[self.from..until], key);
        }
        self.bytes.copy_within(self.from..until, self.to);
        self.from = until;
        self.to += count;
    }
}

/// A control frame, whole or in part.
#[derive(Debug, Clone)]
pub(super) struct Control {
    pub(super) kind: ControlKind,
    length: u8,
    have: u8,
    bytes: [u8; CONTROL_MAX],
}

impl Control {
    const fn new(kind: ControlKind, length: u8) -> Self {
        Self {
            kind,
            length,
            have: 0,
            bytes: [0; CONTROL_MAX],
        }
    }

    pub(super) fn body(&self) -> &[u8] {
        &self.bytes[..usize::from(self.have)]
    }

    /// Takes what there is of the payload; whether it is complete.
    fn fill(&mut self, cut: &mut Cut<'_>) -> bool {
        let at = usize::from(self.have);
        let count = usize::from(self.length - self.have).min(cut.rest().len());
        self.bytes[at..at + count].copy_from_slice(&cut.rest()[..count]);
        self.have += count as u8;
        cut.skip(count);
        self.have == self.length
    }
}

#[derive(Debug)]
pub(super) struct Reader {
    /// A control frame that has come in part.
    control: Option<Box<Control>>,
    /// Bytes of the data frame that have not come.
    left: u32,
    /// The key of the frame's next byte.
    key: [u8; 4],
    maximum: u32,
    /// The head of a frame that has come in part.
    head: [u8; HEAD_MAX],
    head_length: u8,
    is_masked: bool,
    /// True if the last data frame was not the last of its message.
    in_message: bool,
}

impl Reader {
    pub(super) const fn new(is_masked: bool, maximum: u32) -> Self {
        Self {
            control: None,
            left: 0,
            key: [0; 4],
            maximum,
            head: [0; HEAD_MAX],
            head_length: 0,
            is_masked,
            in_message: false,
        }
    }

    /// Returns true if the peer is a client, whose frames are masked.
    #[inline]
    pub(super) const fn is_masked(&self) -> bool {
        self.is_masked
    }

    pub(super) const fn set_maximum(&mut self, maximum: u32) {
        self.maximum = maximum;
    }

    /// Reads until the next control frame is complete; none when the bytes are used up.
    #[inline]
    pub(super) fn advance(&mut self, cut: &mut Cut<'_>) -> Result<Option<Control>, Fault> {
        if let Some(control) = self.control.take() {
            let Some(control) = self.collect(*control, cut) else {
                return Ok(None);
            };
            return Ok(Some(control));
        }
        loop {
            self.pass(cut);
            if self.left > 0 {
                return Ok(None);
            }
            let Some(head) = self.head(cut)? else {
                return Ok(None);
            };
            self.key = head.key;
            match head.kind {
                Kind::Data { is_last } => {
                    self.in_message = !is_last;
                    self.left = head.length;
                }
                Kind::Control(kind) => {
                    return Ok(self.collect(Control::new(kind, head.length as u8), cut));
                }
            }
        }
    }

    /// Passes on what there is of a data frame.
    #[inline]
    fn pass(&mut self, cut: &mut Cut<'_>) {
        let count = (self.left as usize).min(cut.rest().len());
        cut.pass(count, self.key);
        self.key = turned(self.key, count);
        self.left -= count as u32;
    }

    /// The head of the next frame, once it is complete; its part is kept until then.
    #[inline]
    fn head(&mut self, cut: &mut Cut<'_>) -> Result<Option<Head>, Fault> {
        let rules = Rules {
            is_masked: self.is_masked,
            in_message: self.in_message,
            maximum: self.maximum,
        };
        if self.head_length == 0
            && let Some((head, size)) = Head::read(cut.rest(), rules)?
        {
            cut.skip(size);
            return Ok(Some(head));
        }
        self.resume_head(cut, rules)
    }

    /// Adds to the kept part of a head byte by byte: it is seldom cut, and at most 14 bytes.
    #[cold]
    fn resume_head(&mut self, cut: &mut Cut<'_>, rules: Rules) -> Result<Option<Head>, Fault> {
        while let Some(&byte) = cut.rest().first() {
            cut.skip(1);
            self.head[usize::from(self.head_length)] = byte;
            self.head_length += 1;
            let part = &self.head[..usize::from(self.head_length)];
            if let Some((head, _)) = Head::read(part, rules)? {
                self.head_length = 0;
                return Ok(Some(head));
            }
        }
        Ok(None)
    }

    /// A control frame once it is complete; until then it is boxed, since hardly any is ever cut.
    fn collect(&mut self, mut control: Control, cut: &mut Cut<'_>) -> Option<Control> {
        if !control.fill(cut) {
            self.control = Some(Box::new(control));
            return None;
        }
        mask(&mut control.bytes[..usize::from(control.length)], self.key);
        Some(control)
    }
}
