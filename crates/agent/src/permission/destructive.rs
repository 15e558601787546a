//! The guard for what would destroy a disk or a system: asked about in every mode, also in
//! `bypassPermissions`, and past every rule that allows. Removal has its own file, `remove`.

use std::path::{Path, PathBuf};

use super::bash::{known_text, raw_path};
use super::path::ResolvedPath;
use super::shell_parser::{ShellWord, ShellWordPart};
use super::{PermissionPolicy, PermissionReason};

/// Programs that make or take away file systems and partitions.
const FORMATTING: &[&str] = &[
    "blkdiscard",
    "cfdisk",
    "cgdisk",
    "fdisk",
    "gdisk",
    "lvremove",
    "mkdosfs",
    "mke2fs",
    "mkntfs",
    "mkswap",
    "parted",
    "pvcreate",
    "pvremove",
    "sfdisk",
    "sgdisk",
    "vgremove",
    "wipefs",
    "nwipe",
    "scrub",
];

/// Programs that do so with one of these words.
const FORMATTING_WITH: &[(&str, &[&str])] = &[
    ("badblocks", &["-w"]),
    (
        "cryptsetup",
        &["luksformat", "erase", "lukserase", "reencrypt", "format"],
    ),
    (
        "diskutil",
        &["erase", "partition", "delete", "zero", "random", "secure"],
    ),
    (
        "hdparm",
        &["security", "trim-sector", "write-sector", "fwdownload"],
    ),
    ("mdadm", &["zero-superblock", "create", "-c"]),
    ("nvme", &["format", "sanitize", "write"]),
    ("zfs", &["destroy"]),
    ("zpool", &["destroy", "create", "labelclear"]),
];

/// Whether such a program only looks: one option that says so, and at most a device.
fn looks_only(program: &str, texts: &[String]) -> bool {
    const ASKING: &[&str] = &["--help", "--version"];
    const LISTING: &[&str] = &["-l", "--list", "-p", "--print", "-V", "-h"];
    let makes = program.starts_with("mk") || program.starts_with("newfs");
    match texts {
        [option] if ASKING.contains(&option.as_str()) => true,
        [option] => !makes && LISTING.contains(&option.as_str()),
        [option, device] if !makes && !device.starts_with('-') => {
            LISTING.contains(&option.as_str()) || device == "print"
        }
        _ => false,
    }
}

/// Programs that change who may do what with files.
const RIGHTS: &[&str] = &["chmod", "chown", "chgrp", "chattr", "setfacl", "restorecon"];

/// Whether a program changes who may do what with files.
pub(super) fn changes_rights(program: &str) -> bool {
    RIGHTS.contains(&program)
}

/// Whether a program takes a whole disk or file whatever it is given.
pub(super) fn is_grave(program: &str) -> bool {
    FORMATTING.contains(&program)
        || OVERWRITING.contains(&program)
        || IMAGING.contains(&program)
        || ["dd", "dcfldd"].contains(&program)
        || program.starts_with("mkfs")
        || program.starts_with("newfs")
}

/// Programs that read and write images of disks: a device among their words may be written.
const IMAGING: &[&str] = &[
    "bmaptool",
    "dc3dd",
    "debugfs",
    "e2image",
    "ntfsclone",
    "partclone",
    "pv",
    "qemu-img",
    "xfs_copy",
    "xfs_repair",
];

/// Programs all of whose operands are written.
const OVERWRITING: &[&str] = &["tee", "shred", "truncate", "sponge", "wipe", "srm"];

/// Programs whose last operand is written.
const COPYING: &[&str] = &[
    "cp",
    "mv",
    "install",
    "rsync",
    "ln",
    "ddrescue",
    "dd_rescue",
    "scp",
];

/// Devices that everybody writes to.
fn is_harmless_device(path: &Path) -> bool {
    const NAMES: &[&str] = &[
        "null", "zero", "full", "random", "urandom", "stdin", "stdout", "stderr", "fd", "shm",
        "pts", "ptmx", "tcp", "udp", "console",
    ];
    let Ok(below) = path.strip_prefix("/dev") else {
        return false;
    };
    let first = below.components().next();
    let name = first.map(|name| name.as_os_str().to_string_lossy().into_owned());
    name.is_some_and(|name| NAMES.contains(&name.as_str()) || name.starts_with("tty"))
}

/// Whether a file is a device or a switch of the kernel.
fn is_device(place: &ResolvedPath) -> bool {
    if is_harmless_device(&place.written) {
        return false;
    }
    place.forms().any(|path| {
        (path.starts_with("/dev") && path != Path::new("/dev") && !is_harmless_device(path))
            || ["/sys", "/proc/sys", "/proc/sysrq-trigger"]
                .iter()
                .any(|folder| path.starts_with(folder))
    })
}

/// Whether a path is the root, a folder of the system, or one right below those that programs and
/// their settings lie in.
pub(super) fn is_system(path: &Path) -> bool {
    const HOLDING: &[&str] = &[
        "/bin", "/boot", "/etc", "/lib", "/lib32", "/lib64", "/sbin", "/usr", "/System", "/Library",
    ];
    let depth = path.components().count();
    let above = path.parent().unwrap_or(Path::new("/"));
    (depth <= 2 && path != Path::new("/tmp"))
        || (depth == 3 && HOLDING.iter().any(|folder| above == Path::new(folder)))
}

impl PermissionPolicy {
    /// Why running a program with these operands must be asked about.
    pub(super) fn guard_machine(
        &self,
        program: &str,
        operands: &[ShellWord],
        cwds: Option<&[PathBuf]>,
    ) -> Option<PermissionReason> {
        let texts: Vec<String> = operands.iter().map(known_text).collect();
        let looks = looks_only(program, &texts);
        let formats = FORMATTING.contains(&program)
            || program.starts_with("mkfs")
            || program.starts_with("newfs");
        let with = FORMATTING_WITH.iter().find(|(name, _)| *name == program);
        let formats_so = with.is_some_and(|(_, words)| {
            let lower = texts.iter().map(|text| text.to_lowercase());
            lower
                .into_iter()
                .any(|text| words.iter().any(|word| text.contains(word)))
        });
        if (formats && !looks && !operands.is_empty()) || formats_so {
            let text = format!("`{program}` can erase a disk");
            return Some(PermissionReason::new(text));
        }
        let is_operand = |word: &&ShellWord| !known_text(word).starts_with('-');
        if RIGHTS.contains(&program) {
            return self.guard_rights(program, operands, &texts, cwds);
        }
        if program == "dd" || program == "dcfldd" {
            return operands
                .iter()
                .filter(|word| known_text(word).starts_with("of="))
                .find_map(|word| match &known_text(word)[3..] {
                    "" if word.is_open() => {
                        let text = format!("cannot resolve the device {} in advance", word.raw);
                        Some(PermissionReason::new(text))
                    }
                    path => self.guard_device(path, &word.raw, cwds),
                });
        }
        if IMAGING.contains(&program.split('.').next().unwrap_or_default()) {
            return operands.iter().find_map(|word| {
                let text = known_text(word);
                let path = text.split_once('=').map_or(&*text, |(_, path)| path);
                self.guard_device(path, &word.raw, cwds)
            });
        }
        let removes_sources = texts
            .iter()
            .any(|text| text.starts_with("--remove-f") || text.starts_with("--remove-s"));
        if ["tar", "rsync"].contains(&program) && removes_sources
            || program == "git" && texts.iter().any(|text| text == "clean")
        {
            let paths = operands.iter().filter(is_operand);
            let named =
                paths.filter(|word| raw_path_or_known(word).starts_with(['/', '~', '.', '$']));
            let mut taken = named.filter_map(|word| self.critical_place(word, cwds));
            if let Some(taken) = taken.next() {
                return Some(PermissionReason::new(format!(
                    "`{program}` would remove what is in {taken}"
                )));
            }
        }
        let written: Vec<&ShellWord> = match () {
            () if OVERWRITING.contains(&program) => operands.iter().filter(is_operand).collect(),
            () if COPYING.contains(&program) => {
                let last = operands.iter().rev().find(is_operand);
                let named = operands
                    .iter()
                    .filter(|word| known_text(word).contains("/dev/"));
                last.into_iter()
                    .chain(named.filter(|word| !is_operand(word)))
                    .collect()
            }
            () => return None,
        };
        let device = written
            .iter()
            .find_map(|word| self.guard_device(&raw_path_or_known(word), &word.raw, cwds));
        if device.is_some() {
            return device;
        }
        let plain: Vec<&ShellWord> = operands.iter().filter(is_operand).collect();
        let (last, sources) = plain.split_last()?;
        match program {
            "mv" => sources.iter().find_map(|word| {
                let taken = self.critical_place(word, cwds)?;
                Some(PermissionReason::new(format!(
                    "moving {} would move {taken}",
                    word.raw
                )))
            }),
            "rsync" if texts.iter().any(|text| text.starts_with("--del")) => {
                let taken = self.critical_place(last, cwds)?;
                let text = format!("rsync would delete files in {taken}");
                Some(PermissionReason::new(text))
            }
            _ => None,
        }
    }

    /// Whether a path is a folder of the system or holds a home. A project right below the root is
    /// none, if it is no folder that every system has.
    pub(super) fn is_machine(&self, path: &Path) -> bool {
        const EVERYWHERE: &[&str] = &[
            "/",
            "/Applications",
            "/Library",
            "/System",
            "/Users",
            "/bin",
            "/boot",
            "/dev",
            "/etc",
            "/home",
            "/lib",
            "/lib32",
            "/lib64",
            "/media",
            "/mnt",
            "/opt",
            "/proc",
            "/root",
            "/run",
            "/sbin",
            "/srv",
            "/sys",
            "/usr",
            "/var",
        ];
        let is_work = self
            .work
            .iter()
            .any(|folder| path == folder.written || path == folder.real);
        let is_own = is_work && !EVERYWHERE.iter().any(|folder| path == Path::new(folder));
        self.home.starts_with(path) || (is_system(path) && !is_own)
    }

    /// The word, if it is the path of a folder of the system or of one that holds a home.
    pub(super) fn names_machine(&self, word: &ShellWord) -> Option<String> {
        let text = raw_path_or_known(word);
        let is_path = text.starts_with(['/', '~']);
        is_path.then(|| self.critical_place(word, None))?
    }

    /// Which folder of the system, or that holds a home, a word names.
    fn critical_place(&self, word: &ShellWord, cwds: Option<&[PathBuf]>) -> Option<String> {
        let text = raw_path_or_known(word);
        let text = match word.is_open() {
            true => text
                .rfind('/')
                .map_or(String::new(), |slash| text[..=slash].to_owned()),
            false => text,
        };
        if text.is_empty() {
            // What is not known yet could be anything; a plain pattern lies where one stands.
            let is_hole = word.raw.trim_start_matches('"').starts_with(['$', '`']);
            return is_hole.then(|| word.raw.clone());
        }
        let here = std::slice::from_ref(&self.project);
        cwds.unwrap_or(here).iter().find_map(|cwd| {
            let place = ResolvedPath::of(&text, cwd, &self.home);
            let found = place.forms().any(|path| self.is_machine(path));
            found.then(|| place.written.display().to_string())
        })
    }

    fn guard_rights(
        &self,
        program: &str,
        operands: &[ShellWord],
        texts: &[String],
        cwds: Option<&[PathBuf]>,
    ) -> Option<PermissionReason> {
        let recursive = texts.iter().any(|text| {
            text.starts_with("--rec") || (text.starts_with('-') && text.contains(['R', 'r']))
        });
        let operands = operands.iter().zip(texts);
        for (word, text) in operands.filter(|(_, text)| !text.starts_with('-')) {
            let Some(taken) = self.critical_place(word, cwds) else {
                continue;
            };
            // Without `-R` only what is named is changed; a variable is mostly a mode or a file.
            if recursive || (!word.is_open() && (text.starts_with('/') || text.starts_with('~'))) {
                let all = if recursive { "all of " } else { "" };
                let text = format!("`{program}` would change {all}{taken}");
                return Some(PermissionReason::new(text));
            }
        }
        None
    }

    /// Why writing to a file must be asked about: it is a device.
    pub(super) fn guard_device(
        &self,
        text: &str,
        raw: &str,
        cwds: Option<&[PathBuf]>,
    ) -> Option<PermissionReason> {
        if text.is_empty() {
            return None;
        }
        let here = std::slice::from_ref(&self.project);
        let found = cwds.unwrap_or(here).iter().any(|cwd| {
            // `/dev/` before something that is not known yet could be any device.
            let place = match text.ends_with('/') {
                true => ResolvedPath::of(&format!("{text}x"), cwd, &self.home),
                false => ResolvedPath::of(text, cwd, &self.home),
            };
            is_device(&place)
        });
        found.then(|| {
            PermissionReason::new(format!("{raw} is a device: writing to it can erase a disk"))
        })
    }
}

/// The path of a word, or what is known of it.
fn raw_path_or_known(word: &ShellWord) -> String {
    let path = raw_path(word);
    match (path.is_empty(), word.pieces.as_slice()) {
        (false, _) => path,
        (true, [ShellWordPart::Home, ShellWordPart::Text(rest), ..]) => format!("~{rest}"),
        (true, _) => known_text(word),
    }
}
