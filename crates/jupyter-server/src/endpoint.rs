//! Connects to the server of a record, and proves that the process of the record is at the other end.
//!
//! The port of a server that was killed may belong to any other process, also of another user. So the connection is opened
//! first, without a byte sent; then the listening socket must be one that the process of the record has open. Linux reports
//! both in `/proc`. For a Unix socket the kernel reports the process directly.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::record::ServerRecord;

/// A connection to a server.
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// Why there is no connection.
#[derive(Debug)]
pub(crate) enum ConnectError {
    /// The process of the record is not the server at this address: the record is stale.
    Stale,
    /// The system does not report which process has a port.
    NotVerifiable,
    /// The server does not accept connections.
    Io(io::Error),
}

/// Connects to the server of a record.
pub(crate) fn connect(record: &ServerRecord, timeout: Duration) -> Result<Stream, ConnectError> {
    if !record.sock.as_os_str().is_empty() {
        let stream = UnixStream::connect(&record.sock).map_err(|_| ConnectError::Stale)?;
        verify_unix_peer(&stream, record.pid)?;
        return Ok(Stream::Unix(stream));
    }
    if !cfg!(target_os = "linux") {
        return Err(ConnectError::NotVerifiable);
    }
    let listeners = listeners(record.port);
    let own = socket_inodes(record.pid).ok_or(ConnectError::Stale)?;
    let listener = listeners.iter().find(|(_, inode)| own.contains(inode));
    let (address, _) = listener.ok_or(ConnectError::Stale)?;
    let address = SocketAddr::new(reachable(*address), record.port);
    let stream = TcpStream::connect_timeout(&address, timeout).map_err(ConnectError::Io)?;
    // Again, now that the connection exists: every socket that could have accepted it belongs to the process.
    let accepting = accepting_inodes(record.port, address.ip());
    let own = socket_inodes(record.pid).ok_or(ConnectError::Stale)?;
    if accepting.is_empty() || !accepting.iter().all(|inode| own.contains(inode)) {
        return Err(ConnectError::Stale);
    }
    Ok(Stream::Tcp(stream))
}

/// Whether all sockets that listen on a port of this machine's loopback address belong to a process. `None`: the system does
/// not report it.
pub fn owns_listener(pid: u32, port: u16) -> Option<bool> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let accepting = accepting_inodes(port, Ipv4Addr::LOCALHOST.into());
    let own = i32::try_from(pid).ok().and_then(socket_inodes);
    Some(own.is_some_and(|own| {
        !accepting.is_empty() && accepting.iter().all(|inode| own.contains(inode))
    }))
}

#[cfg(target_os = "linux")]
fn verify_unix_peer(stream: &UnixStream, pid: i32) -> Result<(), ConnectError> {
    let peer = rustix::net::sockopt::socket_peercred(stream).map_err(|_| ConnectError::Stale)?;
    if peer.pid.as_raw_nonzero().get() == pid && peer.uid == rustix::process::geteuid() {
        return Ok(());
    }
    Err(ConnectError::Stale)
}

#[cfg(not(target_os = "linux"))]
fn verify_unix_peer(_: &UnixStream, _: i32) -> Result<(), ConnectError> {
    Err(ConnectError::NotVerifiable)
}

/// The inodes of the sockets that a process has open; `None` if it is not a process of this user.
fn socket_inodes(pid: i32) -> Option<HashSet<u64>> {
    let entries = fs::read_dir(Path::new("/proc").join(pid.to_string()).join("fd")).ok()?;
    let inode = |entry: fs::DirEntry| {
        let target = fs::read_link(entry.path()).ok()?;
        let inode = target.to_str()?.strip_prefix("socket:[")?;
        inode.strip_suffix(']')?.parse().ok()
    };
    Some(entries.flatten().filter_map(inode).collect())
}

/// The listening sockets with this port: address and inode.
fn listeners(port: u16) -> Vec<(IpAddr, u64)> {
    ["/proc/self/net/tcp", "/proc/self/net/tcp6"]
        .into_iter()
        .filter_map(|path| fs::read_to_string(path).ok())
        .flat_map(|table| parse_listeners(&table, port))
        .collect()
}

/// The inodes of the sockets that accept connections to this address.
fn accepting_inodes(port: u16, address: IpAddr) -> Vec<u64> {
    listeners(port)
        .into_iter()
        .filter(|(listener, _)| listener.is_unspecified() || listener.to_canonical() == address)
        .map(|(_, inode)| inode)
        .collect()
}

/// The address at which a listener can be reached from this machine.
fn reachable(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(v4) if v4.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(v6) if v6.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        other => other,
    }
}

/// The listening sockets in a table of `/proc/net`.
fn parse_listeners(table: &str, port: u16) -> Vec<(IpAddr, u64)> {
    const LISTEN: &str = "0A";
    let parse = |line: &str| {
        // sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode
        let mut fields = line.split_ascii_whitespace();
        let (address, local_port) = fields.nth(1)?.rsplit_once(':')?;
        let is_listener = fields.nth(1)? == LISTEN;
        let inode = fields.nth(5)?.parse().ok()?;
        let matches = is_listener && u16::from_str_radix(local_port, 16).ok()? == port;
        matches.then_some((parse_address(address)?, inode))
    };
    table.lines().filter_map(parse).collect()
}

/// Parses an address: words of 32 bits in the byte order of the machine.
fn parse_address(text: &str) -> Option<IpAddr> {
    let word = |at: usize| {
        let digits = text.get(8 * at..8 * at + 8)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    match text.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?];
            let bytes: [u8; 16] = words.concat().try_into().ok()?;
            Some(Ipv6Addr::from(bytes).into())
        }
        _ => None,
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn own_pid() -> i32 {
        i32::try_from(std::process::id()).unwrap()
    }

    #[test]
    fn only_the_listening_process_owns_a_port() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(owns_listener(std::process::id(), port), Some(true));
        let mut other = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        assert_eq!(owns_listener(other.id(), port), Some(false));
        drop(listener);
        assert_eq!(owns_listener(std::process::id(), port), Some(false));
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn a_listener_of_this_process_is_found_by_its_port() {
        for address in ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else {
                continue;
            };
            let port = listener.local_addr().unwrap().port();
            let ip = listener.local_addr().unwrap().ip();
            let found = listeners(port);
            let own = socket_inodes(own_pid()).unwrap();
            let own: Vec<_> = found
                .iter()
                .filter(|(_, inode)| own.contains(inode))
                .collect();
            assert_eq!(own.len(), 1, "{address}");
            assert_eq!(own[0].0, ip);
            assert!(TcpStream::connect((reachable(ip), port)).is_ok());
        }
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn lines_of_the_table_are_parsed() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:22B8 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 x 100\n\
            1: 0100007F:22B8 0100007F:9C40 01 00000000:00000000 00:00000000 00000000  1000        0 4712 1 x 100\n\
            2: garbage\n";
        let expected = vec![(IpAddr::from(Ipv4Addr::LOCALHOST), 4711)];
        assert_eq!(parse_listeners(table, 8888), expected);
        assert_eq!(parse_listeners(table, 8889), []);
    }
}
