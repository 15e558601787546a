//! What kind of disk a file is on: SQLite's write-ahead log needs memory that all its
//! processes share, which a disk behind a network cannot give.

use std::path::Path;

/// Whether a file is on a disk that other machines may write too, as far as the system
/// tells. Elsewhere than on Linux we rely on SQLite noticing.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub fn is_remote(path: &Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|disk| is_remote_kind(disk.f_type as u64))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub fn is_remote(_path: &Path) -> bool {
    false
}

/// The numbers by which Linux tells file systems apart.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn is_remote_kind(kind: u64) -> bool {
    const REMOTE: [(u64, &str); 11] = [
        (0x6969, "nfs"),
        (0x517B, "smb"),
        (0xFF53_4D42, "cifs"),
        (0xFE53_4D42, "smb2"),
        (0x0102_1997, "9p"),
        // May be anything, sshfs among it.
        (0x6573_5546, "fuse"),
        (0x5346_414F, "afs"),
        (0x6B41_4653, "afs of the kernel"),
        (0x7375_7245, "coda"),
        (0x00C3_6400, "ceph"),
        (0x0BD0_0BD0, "lustre"),
    ];
    // The number is signed and of 32 bits on some machines.
    REMOTE.iter().any(|(known, _)| *known == kind & 0xFFFF_FFFF)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_network_disk_is_known_by_its_number() {
        assert!(is_remote_kind(0x6969));
        assert!(is_remote_kind(0xFFFF_FFFF_FF53_4D42), "negative as i32");
        assert!(!is_remote_kind(0xEF53), "ext4");
        assert!(!is_remote(Path::new("/proc")));
        assert!(!is_remote(Path::new("/none/at/all")));
    }
}
