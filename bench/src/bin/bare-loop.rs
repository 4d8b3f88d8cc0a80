//! The kernel's share: one thread, one epoll loop, MQTT packets as constants, nothing accounted.
//! Sends 100 bytes a message, one write each, timed as exactly as Muster; prints JSON. Rate 0 is
//! saturated: at QoS 1 a link sends on the answer, at QoS 0 links take turns. Else evenly paced.

use std::io::{Error, Result, Write, stdout};
use std::{net::SocketAddr, num::NonZeroU64, time::Duration};

use muster_bench::{SECOND_NS, arguments, now, p99, unless};
use nix::sys::socket::{setsockopt, sockopt::IpBindAddressNoPort};
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::{Errno, read, write};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with, sockopt};
use rustix::thread::set_current_timer_slack;
use rustix::time::ClockId::{Monotonic, ThreadCPUTime};

/// Handshakes under way, and links from one source address: as Muster's.
const PENDING: usize = 128;
const LINKS_PER_SOURCE: usize = 12_000;

struct Bare {
    epoll: OwnedFd,
    events: Vec<Event>,
    /// Each socket, with the bytes of its message under way that the kernel has taken.
    links: Vec<(OwnedFd, usize)>,
    packet: Vec<u8>,
}

fn main() -> Result<()> {
    let (to, [count, qos, rate, seconds]) = arguments("bare-loop ADDRESS LINKS QOS RATE SECONDS")?;
    let head = [0x30 | (qos as u8) << 1, 113 + 2 * qos as u8, 0, 11];
    let id = &[0, 1][..2 * qos as usize];
    let mut bare = Bare {
        epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
        events: Vec::with_capacity(1024),
        links: Vec::new(),
        packet: [&head[..], b"m/d-00000/t", id, &[b'x'; 100]].concat(),
    };
    set_current_timer_slack(NonZeroU64::new(1))?;
    bare.connect(to, count as usize)?;
    let (connect_cpu, begin) = (now(ThreadCPUTime), now(Monotonic));
    let (end, mut late) = (begin + seconds * SECOND_NS, Vec::new());
    let messages = match rate {
        0 => bare.saturated(end, qos)?,
        _ => bare.paced([begin, end, SECOND_NS / rate], &mut late)?,
    };
    let (cpu, wall) = (now(ThreadCPUTime) - connect_cpu, now(Monotonic) - begin);
    let p99 = p99(late);
    let connects = format!(r#""connects":{count},"connect_cpu_ns":{connect_cpu}"#);
    let sent = format!(r#""messages":{messages},"cpu_ns":{cpu},"wall_ns":{wall}"#);
    writeln!(stdout(), r#"{{{connects},{sent},"lateness_p99_ns":{p99}}}"#)
}

impl Bare {
    fn connect(&mut self, to: SocketAddr, count: usize) -> Result<()> {
        let mut connected = 0;
        while connected < count {
            while self.links.len() < count.min(connected + PENDING) {
                self.open(to, self.links.len(), count)?;
            }
            for at in 0..self.wait(SECOND_NS)? {
                let (index, welcome) = self.read_event(at)?;
                connected += usize::from(welcome);
                if !welcome {
                    let hello = b"\x10\x13\0\x04MQTT\x04\x02\0\0\0\x07b-";
                    let hello = [&hello[..], format!("{index:05}").as_bytes()].concat();
                    write(&self.links[index].0, &hello)?;
                }
            }
        }
        Ok(())
    }

    fn open(&mut self, to: SocketAddr, index: usize, count: usize) -> Result<()> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
        sockopt::set_tcp_nodelay(&fd, true)?;
        if count > LINKS_PER_SOURCE {
            let place = index % count.div_ceil(LINKS_PER_SOURCE) + 1;
            setsockopt(&fd, IpBindAddressNoPort, &true)?;
            bind(&fd, &SocketAddr::from(([127, 0, 0, place as u8], 0)))?;
        }
        unless(Errno::INPROGRESS, (), connect(&fd, &to))?;
        let events = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&self.epoll, &fd, EventData::new_u64(index as u64), events)?;
        self.links.push((fd, 0));
        Ok(())
    }

    fn saturated(&mut self, end: u64, qos: u64) -> Result<u64> {
        let mut messages = 0;
        while now(Monotonic) < end {
            let before = messages;
            if qos == 0 || messages == 0 {
                for index in 0..self.links.len() {
                    messages += self.send(index)?;
                }
            }
            for at in 0..self.wait(if messages == before { 1_000_000 } else { 0 })? {
                if let (index, true) = self.read_event(at)? {
                    messages += self.send(index)?;
                }
            }
        }
        Ok(messages)
    }

    fn paced(&mut self, [begin, end, period]: [u64; 3], late: &mut Vec<u64>) -> Result<u64> {
        for due in (begin..end).step_by(period as usize) {
            let mut taken = now(Monotonic);
            while taken < due {
                for at in 0..self.wait(due - taken)? {
                    self.read_event(at)?;
                }
                taken = now(Monotonic);
            }
            let index = late.len() % self.links.len();
            late.push(taken - due);
            while self.send(index)? == 0 {
                self.wait(1_000_000)?;
            }
        }
        Ok(late.len() as u64)
    }

    fn wait(&mut self, wait_ns: u64) -> Result<usize> {
        let wait = Duration::from_nanos(wait_ns).try_into().ok();
        self.events.clear();
        let room = rustix::buffer::spare_capacity(&mut self.events);
        Ok(epoll::wait(&self.epoll, room, wait.as_ref())?)
    }

    /// Returns the client of an event, and true if it sent bytes.
    fn read_event(&mut self, at: usize) -> Result<(usize, bool)> {
        let Event { flags, data } = self.events[at];
        let (index, has_input) = (data.u64() as usize, flags.contains(EventFlags::IN));
        if has_input && read(&self.links[index].0, &mut [0; 64])? == 0 {
            return Err(Error::other("the target closed a link"));
        }
        Ok((index, has_input))
    }

    /// 1 once the kernel has the whole message, else 0.
    fn send(&mut self, index: usize) -> Result<u64> {
        let (fd, written) = &mut self.links[index];
        let taken = unless(Errno::AGAIN, 0, write(fd, &self.packet[*written..]))?;
        *written = (*written + taken) % self.packet.len();
        Ok(u64::from(taken > 0 && *written == 0))
    }
}
