//! The time zone from its one file.
//!
//! Asked for a zone, the library of times first walks over the files of all zones, which takes
//! longer than most commands and ends the program where a folder cannot be closed. So its file is
//! read directly; where that is not as it usually is, the library is asked.

use std::io::Read;
use std::path::{Component, Path};

use jiff::tz::TimeZone;
use unspool_store::open;

/// Where systems keep zones.
const ZONES: &str = "/usr/share/zoneinfo";

/// The zone of this system; nothing if it is not where it usually is.
pub fn system() -> Option<TimeZone> {
    match std::env::var_os("TZ") {
        Some(name) => named(name.to_str()?),
        None => {
            let link = std::fs::read_link("/etc/localtime").ok()?;
            let link = link.to_str()?;
            let (_, name) = link.split_once("/zoneinfo/")?;
            read(Path::new("/etc/localtime"), name)
        }
    }
}

/// A zone by its name; nothing if it is not where it usually is.
pub fn named(name: &str) -> Option<TimeZone> {
    if name == "UTC" {
        return Some(TimeZone::UTC);
    }
    let mut parts = Path::new(name).components();
    let plain = !name.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)));
    let usual = std::env::var_os("TZDIR").is_none();
    let path = (plain && usual).then(|| Path::new(ZONES).join(name))?;
    read(&path, name)
}

fn read(path: &Path, name: &str) -> Option<TimeZone> {
    /// They have some thousand bytes.
    const MOST: u64 = 1 << 20;
    let (file, _) = open::open(path).ok()?;
    let mut bytes = Vec::new();
    file.take(MOST).read_to_end(&mut bytes).ok()?;
    TimeZone::tzif(name, &bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_from_its_file_is_the_one_that_the_library_knows() {
        for name in ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"] {
            // Not every system has these files.
            let (Some(ours), Ok(theirs)) = (named(name), TimeZone::get(name)) else {
                continue;
            };
            assert_eq!(ours.iana_name(), Some(name));
            for second in [0, 1_700_000_000, 1_720_000_000, 4_000_000_000] {
                let at = jiff::Timestamp::from_second(second).unwrap();
                assert_eq!(ours.to_offset(at), theirs.to_offset(at), "{name}");
            }
        }
    }

    #[test]
    fn what_is_no_name_of_a_zone_is_no_file() {
        for name in [
            "",
            "/etc/passwd",
            "../../../etc/passwd",
            "nowhere",
            "EST5EDT4,M3",
        ] {
            assert!(named(name).is_none(), "{name}");
        }
    }
}
