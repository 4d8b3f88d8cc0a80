//! The sockets on which processes of this machine listen, as Linux lists them (proc(5)).

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A protocol of sockets: its files in `/proc/PID/net`, and the state of a socket that takes messages. Only the first file
/// may be missing for a process that runs.
#[derive(Debug)]
pub(crate) struct Table {
    files: [&'static str; 2],
    listening: &'static str,
}

/// Connections: the state is `TCP_LISTEN`.
pub(crate) static TCP: Table = Table {
    files: ["tcp6", "tcp"],
    listening: "0A",
};
/// Datagrams: a bound socket has the state `TCP_CLOSE`, one that is connected another.
pub(crate) static UDP: Table = Table {
    files: ["udp6", "udp"],
    listening: "07",
};

/// The process groups among `leaders` whose processes listen on a port, by one look at all processes.
pub(crate) fn listening_groups(leaders: &BTreeSet<u32>, port: u16, table: &Table) -> BTreeSet<u32> {
    let mut of_networks = BTreeMap::new();
    let mut groups = BTreeSet::new();
    for pid in processes() {
        let wanted = group_of(pid).filter(|group| leaders.contains(group));
        let Some(group) = wanted.filter(|group| !groups.contains(group)) else {
            continue;
        };
        let process = Path::new("/proc").join(pid.to_string());
        let network = fs::read_link(process.join("ns/net")).unwrap_or_else(|_| process.clone());
        let of_port = match of_networks.entry(network) {
            Entry::Occupied(read) => read.into_mut(),
            Entry::Vacant(unread) => match sockets(&process, port, table) {
                Some(sockets) => unread.insert(sockets),
                None => continue,
            },
        };
        if !of_port.is_empty() && held(&process).any(|socket| of_port.contains(&socket)) {
            groups.insert(group);
        }
    }
    groups
}

/// The processes of this machine.
pub(crate) fn processes() -> impl Iterator<Item = u32> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The group of a process: the third field behind its name, which may hold blanks.
fn group_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, behind) = stat.rsplit_once(')')?;
    behind.split_whitespace().nth(2)?.parse().ok()
}

/// Inodes of the sockets that listen on a port, in the network of a process; none if the process has ended.
fn sockets(process: &Path, port: u16, table: &Table) -> Option<BTreeSet<u64>> {
    let read = |file| fs::read_to_string(process.join("net").join(file)).ok();
    let [of_version_6, of_version_4] = table.files.map(read);
    // Without IPv6 there is no first file.
    let texts = [of_version_6.unwrap_or_default(), of_version_4?];
    let lines = texts.iter().flat_map(|text| text.lines());
    let sockets = lines.filter_map(|line| listening(line, port, table.listening));
    Some(sockets.collect())
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
        let listens = |leader: u32, port, table| {
            let leaders = BTreeSet::from([leader, u32::MAX]);
            let groups = listening_groups(&leaders, port, table);
            assert!(!groups.contains(&u32::MAX));
            groups.contains(&leader)
        };
        let tcp = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = tcp.local_addr().expect("it is bound").port();
        assert!(listens(own, port, &TCP) && !listens(u32::MAX - 1, port, &TCP));
        drop(tcp);
        assert!(!listens(own, port, &TCP));
        let udp = UdpSocket::bind("[::1]:0").expect("a port");
        let port = udp.local_addr().expect("it is bound").port();
        assert!(listens(own, port, &UDP) && !listens(own, port, &TCP));
    }

    #[test]
    fn a_process_that_ended_has_no_list_of_sockets() {
        let of = |pid: u32| sockets(&Path::new("/proc").join(pid.to_string()), 1, &TCP);
        assert!(of(std::process::id()).is_some());
        assert_eq!(of(u32::MAX), None);
    }
}
