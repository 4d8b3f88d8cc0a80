//! Owners of the sockets and timers of a loop.

/// Bits of a tag below the place of its driver.
const PLACE_SHIFT: u32 = 29;
/// Bit of a tag that stands for a socket which links share.
const OF_SOCKET: u32 = 1 << 28;
/// Bits of the index of a link or of a shared socket.
const INDEX: u32 = OF_SOCKET - 1;

/// The most drivers that a loop can hold.
pub(crate) const DRIVERS_MAX: usize = 1 << (u32::BITS - PLACE_SHIFT);

/// The tags of one driver's sockets, which are the tokens of its timers too.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tags {
    place: u32,
}

/// Owner of a socket or a timer within its driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    Link(u32),
    SharedSocket(u32),
}

impl Tags {
    /// The tags of the driver at a place of its loop.
    pub(crate) const fn new(place: usize) -> Self {
        Self {
            place: (place as u32) << PLACE_SHIFT,
        }
    }

    pub(crate) const fn link(self, link: u32) -> u32 {
        self.place | link
    }

    pub(crate) const fn socket(self, socket: u32) -> u32 {
        self.place | OF_SOCKET | socket
    }
}

impl Owner {
    #[inline]
    pub(crate) const fn of(tag: u32) -> Self {
        match tag & OF_SOCKET {
            0 => Self::Link(tag & INDEX),
            _ => Self::SharedSocket(tag & INDEX),
        }
    }
}

/// The place of the driver that a tag belongs to.
#[inline]
pub(crate) const fn place_of(tag: u32) -> usize {
    (tag >> PLACE_SHIFT) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_names_its_driver_and_its_owner_there() {
        for place in [0, 1, DRIVERS_MAX - 1] {
            for index in [0, 1, INDEX] {
                let tags = Tags::new(place);
                let (link, socket) = (tags.link(index), tags.socket(index));
                assert_eq!([place_of(link), place_of(socket)], [place; 2]);
                assert_eq!(Owner::of(link), Owner::Link(index));
                assert_eq!(Owner::of(socket), Owner::SharedSocket(index));
            }
        }
    }
}
