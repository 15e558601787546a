//! Which user of this machine a connection belongs to, where the system tells.
//!
//! A ticket stands on the command line of the browser that is opened, where every user of the
//! machine can read it. So a ticket from somebody else opens nothing.

use std::net::{IpAddr, SocketAddr};

/// Whether a connection comes from another user of this machine. `false` where nobody knows.
#[cfg(target_os = "linux")]
pub fn is_other_user(peer: SocketAddr, local: SocketAddr) -> bool {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let tables = tables.map(|path| std::fs::read_to_string(path).unwrap_or_default());
    let owner = tables.iter().find_map(|table| owner_in(table, peer, local));
    let us = rustix::process::geteuid().as_raw();
    // The superuser may read everything anyway, and passes on connections from outside of a
    // virtual machine. Who cannot be found on this machine comes from another one.
    match owner {
        Some(owner) => owner != us && owner != 0,
        None => peer.ip().to_canonical().is_loopback() && !tables.concat().is_empty(),
    }
}

/// Whether a connection comes from another user of this machine. `false` where nobody knows.
#[cfg(not(target_os = "linux"))]
pub fn is_other_user(_peer: SocketAddr, _local: SocketAddr) -> bool {
    false
}

/// The user whose end of the connection is `peer`, in a table of the system.
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
fn owner_in(table: &str, peer: SocketAddr, local: SocketAddr) -> Option<u32> {
    let pairs = [
        (written(peer, false), written(local, false)),
        (written(peer, true), written(local, true)),
    ];
    let rows = table.lines().skip(1).map(str::split_whitespace);
    rows.filter_map(|mut row| {
        let ends = (row.nth(1)?, row.next()?);
        let fits = |(one, two): &(String, String)| ends == (one.as_str(), two.as_str());
        let owner = row.nth(4)?;
        pairs.iter().any(fits).then(|| owner.parse().ok())?
    })
    .next()
}

/// An end of a connection as the table has it; older addresses can stand as newer ones.
fn written(end: SocketAddr, as_newer: bool) -> String {
    let address = match (end.ip().to_canonical(), as_newer) {
        (IpAddr::V4(four), true) => IpAddr::V6(four.to_ipv6_mapped()),
        (other, _) => other,
    };
    let bytes = match address {
        IpAddr::V4(four) => four.octets().to_vec(),
        IpAddr::V6(six) => six.octets().to_vec(),
    };
    let word = |four: &[u8]| {
        let four: [u8; 4] = four.try_into().unwrap_or_default();
        format!("{:08X}", u32::from_ne_bytes(four))
    };
    let words: String = bytes.chunks(4).map(word).collect();
    format!("{words}:{:04X}", end.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn the_owner_of_the_other_end_is_found() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1E25 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1 1
   1: 0100007F:1E25 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 2 1
   2: 0100007F:C350 0100007F:1E25 01 00000000:00000000 00:00000000 00000000  1001        0 3 1
   3: 0000000000000000FFFF00000100007F:C351 0000000000000000FFFF00000100007F:1E25 01 00000000:00000000 00:00000000 00000000  1002        0 4 1
   4: 00000000000000000000000001000000:C352 00000000000000000000000001000000:1E25 01 00000000:00000000 00:00000000 00000000  1003        0 5 1
";
        let owner = |peer: &str, local: &str| {
            owner_in(table, peer.parse().unwrap(), local.parse().unwrap())
        };
        assert_eq!(owner("127.0.0.1:50000", "127.0.0.1:7717"), Some(1001));
        assert_eq!(owner("127.0.0.1:50001", "127.0.0.1:7717"), Some(1002));
        assert_eq!(owner("[::1]:50002", "[::1]:7717"), Some(1003));
        assert_eq!(owner("127.0.0.1:50002", "127.0.0.1:7717"), None);
        assert_eq!(owner("127.0.0.1:50000", "127.0.0.1:7718"), None);
        assert_eq!(
            owner_in("", "[::1]:1".parse().unwrap(), "[::1]:2".parse().unwrap()),
            None
        );
    }

    #[test]
    fn a_connection_of_our_own_is_no_other_users() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let local = listener.local_addr().unwrap();
        let stream = std::net::TcpStream::connect(local).unwrap();
        let (_here, peer) = listener.accept().unwrap();
        assert_eq!(stream.local_addr().unwrap(), peer);
        assert!(!is_other_user(peer, local));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn who_is_not_found_on_this_machine_is_a_stranger() {
        let [peer, local] = ["127.0.0.1:1", "127.0.0.1:2"].map(|end| end.parse().unwrap());
        assert!(is_other_user(peer, local));
    }
}
