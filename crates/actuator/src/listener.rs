//! The sockets on which processes of this machine listen, as Linux lists them (proc(5)).

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A protocol of sockets: its files in `/proc/PID/net`, and the state of a socket that takes messages.
#[derive(Debug)]
pub(crate) struct Table {
    files: [&'static str; 2],
    listening: &'static str,
}

/// Connections: the state is `TCP_LISTEN`.
pub(crate) static TCP: Table = Table {
    files: ["tcp", "tcp6"],
    listening: "0A",
};
/// Datagrams: a bound socket has the state `TCP_CLOSE`, one that is connected another.
pub(crate) static UDP: Table = Table {
    files: ["udp", "udp6"],
    listening: "07",
};

/// Returns whether a process of a process group listens on a port.
pub(crate) fn group_listens(leader: u32, port: u16, table: &Table) -> bool {
    members(leader).any(|pid| {
        let process = Path::new("/proc").join(pid.to_string());
        let of_port = sockets(&process, port, table);
        !of_port.is_empty() && held(&process).any(|socket| of_port.contains(&socket))
    })
}

/// The processes of a process group.
fn members(leader: u32) -> impl Iterator<Item = u32> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(move |pid| group_of(*pid) == Some(leader))
}

/// The group of a process: the third field behind its name, which may hold blanks.
fn group_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, behind) = stat.rsplit_once(')')?;
    behind.split_whitespace().nth(2)?.parse().ok()
}

/// Inodes of the sockets that listen on a port, in the network of a process.
fn sockets(process: &Path, port: u16, table: &Table) -> BTreeSet<u64> {
    let texts = table.files.iter();
    let texts = texts.filter_map(|file| fs::read_to_string(process.join("net").join(file)).ok());
    let listening = |line: &str| listening(line, port, table.listening);
    let sockets = texts.flat_map(|text| text.lines().filter_map(listening).collect::<Vec<_>>());
    sockets.collect()
}

/// The inode of a line: its second field is the local address, the fourth the state, the tenth the inode.
fn listening(line: &str, port: u16, state: &str) -> Option<u64> {
    let mut fields = line.split_whitespace();
    let (_, local) = fields.nth(1)?.rsplit_once(':')?;
    let is_here = u16::from_str_radix(local, 16).ok()? == port && fields.nth(1)? == state;
    fields.nth(5).filter(|_| is_here)?.parse().ok()
}

/// Inodes of the sockets that a process has open; none if it is another user's.
fn held(process: &Path) -> impl Iterator<Item = u64> {
    let files = fs::read_dir(process.join("fd")).into_iter().flatten();
    files.flatten().filter_map(|file| {
        let target = fs::read_link(file.path()).ok()?;
        let inode = target.to_str()?.strip_prefix("socket:[")?;
        inode.strip_suffix(']')?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};

    use super::*;

    #[test]
    fn only_the_group_that_holds_a_socket_listens_on_its_port() {
        let own = group_of(std::process::id()).expect("a group");
        let tcp = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = tcp.local_addr().expect("it is bound").port();
        assert!(group_listens(own, port, &TCP) && !group_listens(u32::MAX, port, &TCP));
        drop(tcp);
        assert!(!group_listens(own, port, &TCP));
        let udp = UdpSocket::bind("[::1]:0").expect("a port");
        let port = udp.local_addr().expect("it is bound").port();
        assert!(group_listens(own, port, &UDP) && !group_listens(own, port, &TCP));
    }
}
