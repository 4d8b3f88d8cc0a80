//! Several datagrams with one system call: `sendmmsg` and `recvmmsg`, which rustix does not have.
//!
//! Reasons against others' wrappers: `docs/adr/0013-udp-by-batches.md`.

#![expect(
    unsafe_code,
    reason = "the kernel is handed arrays of pointers; each points into memory that is borrowed \
              for the whole call, with its true length"
)]

use std::mem::MaybeUninit;
use std::ptr;

use libc::{c_int, c_uint, c_void, iovec, mmsghdr, msghdr};
use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::io::Errno;

use super::address::NAME_MAX;
use super::inbox::{Arrival, CONTROL_MAX, Inbox, ROOM};
use super::outbox::Outgoing;

/// Most datagrams of one call: beyond some tens the call costs no less for each.
pub(crate) const BATCH_MAX: usize = 32;

/// `SO_MEMINFO` of `asm-generic/socket.h`, which libc does not have for every target.
const SO_MEMINFO: c_int = 55;
/// Numbers that it gives (`linux/sock_diag.h`).
const MEMINFO_VARS: usize = 9;

type Headers = [MaybeUninit<mmsghdr>; BATCH_MAX];
type Pieces = [MaybeUninit<iovec>; BATCH_MAX];

/// Sends datagrams, at most [`BATCH_MAX`]: how many the kernel took, from the first. An error is of
/// the first one.
pub(crate) fn send_many<'a>(
    fd: BorrowedFd<'_>,
    datagrams: impl Iterator<Item = Outgoing<'a>>,
) -> Result<usize, Errno> {
    let mut pieces: Pieces = [const { MaybeUninit::uninit() }; BATCH_MAX];
    let mut headers: Headers = [const { MaybeUninit::uninit() }; BATCH_MAX];
    let mut count = 0;
    for (datagram, (piece, header)) in datagrams.zip(pieces.iter_mut().zip(&mut headers)) {
        let piece = piece.write(iovec {
            iov_base: datagram.bytes.as_ptr().cast_mut().cast(),
            iov_len: datagram.bytes.len(),
        });
        let name = match datagram.name {
            [] => (ptr::null_mut(), 0),
            name => (name.as_ptr().cast_mut().cast(), name.len()),
        };
        header.write(message(name, piece, (ptr::null_mut(), 0)));
        count += 1;
    }
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // SAFETY: the first `count` headers are initialised and point at names, pieces and bytes that
    // are borrowed until this function returns; the kernel writes to none of them but `msg_len`.
    let taken = unsafe {
        libc::sendmmsg(
            fd.as_raw_fd(),
            headers.as_mut_ptr().cast(),
            count as c_uint,
            flags as _,
        )
    };
    counted(taken)
}

impl Inbox {
    /// Reads datagrams into the rooms from the first, at most `most`: how many came. Fewer than
    /// `most` means that the socket has been emptied. `wants_names` asks who sent them.
    pub(crate) fn receive(
        &mut self,
        fd: BorrowedFd<'_>,
        most: usize,
        wants_names: bool,
    ) -> Result<usize, Errno> {
        let mut pieces: Pieces = [const { MaybeUninit::uninit() }; BATCH_MAX];
        let mut headers: Headers = [const { MaybeUninit::uninit() }; BATCH_MAX];
        let most = most.min(BATCH_MAX);
        let rooms = self.bytes.chunks_exact_mut(ROOM).zip(&mut self.arrivals);
        let arrays = pieces.iter_mut().zip(&mut headers);
        for ((bytes, arrival), (piece, header)) in rooms.zip(arrays).take(most) {
            let piece = piece.write(iovec {
                iov_base: bytes.as_mut_ptr().cast(),
                iov_len: bytes.len(),
            });
            let name = if wants_names {
                (arrival.name.as_mut_ptr().cast(), NAME_MAX)
            } else {
                (ptr::null_mut(), 0)
            };
            let control = (arrival.control.0.as_mut_ptr().cast(), CONTROL_MAX);
            header.write(message(name, piece, control));
        }
        // SAFETY: the first `most` headers are initialised and point at rooms of `self`, which is
        // borrowed mutably until this function returns, each with its true length.
        let came = unsafe {
            libc::recvmmsg(
                fd.as_raw_fd(),
                headers.as_mut_ptr().cast(),
                most as c_uint,
                libc::MSG_DONTWAIT as _,
                ptr::null_mut(),
            )
        };
        let count = counted(came)?.min(most);
        for (header, arrival) in headers[..count].iter().zip(&mut self.arrivals) {
            // SAFETY: it is one of the first `most`, which were initialised above.
            arrival.note(unsafe { header.assume_init_ref() });
        }
        Ok(count)
    }
}

impl Arrival {
    fn note(&mut self, header: &mmsghdr) {
        self.len = (header.msg_len as usize).min(ROOM);
        self.name_len = (header.msg_hdr.msg_namelen as usize).min(NAME_MAX);
        self.control_len = header.msg_hdr.msg_controllen.min(CONTROL_MAX);
    }
}

/// Returns how many datagrams a socket has dropped for want of room since it was created, if known.
pub(crate) fn dropped(fd: BorrowedFd<'_>) -> Option<u32> {
    let mut vars = [0_u32; MEMINFO_VARS];
    let mut len = size_of_val(&vars) as libc::socklen_t;
    // SAFETY: `vars` has the length that `len` says and both are borrowed mutably for the call; any
    // bytes are numbers.
    let done = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_MEMINFO,
            vars.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    let is_there = done == 0 && len as usize == size_of_val(&vars);
    is_there.then(|| vars[libc::SK_MEMINFO_DROPS as usize])
}

/// A header over one piece.
fn message(
    name: (*mut c_void, usize),
    piece: *mut iovec,
    control: (*mut c_void, usize),
) -> mmsghdr {
    // SAFETY: all of its fields are numbers and pointers, for which zero is a value; some C
    // libraries have padding among them, so that it cannot be written field by field.
    let mut header: msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    header.msg_name = name.0;
    header.msg_namelen = name.1 as _;
    header.msg_iov = piece;
    header.msg_iovlen = 1;
    header.msg_control = control.0;
    header.msg_controllen = control.1 as _;
    mmsghdr {
        msg_hdr: header,
        msg_len: 0,
    }
}

fn counted(result: c_int) -> Result<usize, Errno> {
    usize::try_from(result).map_err(|_| {
        let errno = std::io::Error::last_os_error().raw_os_error();
        Errno::from_raw_os_error(errno.unwrap_or(libc::EIO))
    })
}
