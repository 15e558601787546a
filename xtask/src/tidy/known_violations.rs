//! The list of violations that are known, which only shrinks.
//!
//! A line is `check file count reason`; `#` begins a comment.

use std::collections::BTreeMap;
use std::path::Path;

/// Where the list is.
pub(super) const PATH: &str = "xtask/src/tidy/known_violations.txt";

/// How many violations each check may find in each file, and why.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct KnownViolations {
    comment: String,
    listed: BTreeMap<(String, String), (usize, String)>,
}

impl KnownViolations {
    /// Reads the list.
    pub fn read(path: &Path) -> Result<KnownViolations, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        KnownViolations::parse(&text)
    }

    fn parse(text: &str) -> Result<KnownViolations, String> {
        let mut known = KnownViolations::default();
        for (index, line) in text.lines().enumerate() {
            if line.starts_with('#') || line.trim().is_empty() {
                known.comment.push_str(line);
                known.comment.push('\n');
                continue;
            }
            let wrong = || {
                format!(
                    "{PATH}:{}: not `check file count reason`: {line}",
                    index + 1
                )
            };
            let mut words = line.split_whitespace();
            let (check, file) = words.next().zip(words.next()).ok_or_else(wrong)?;
            let count = words.next().and_then(|word| word.parse().ok());
            let count = count.filter(|count| *count > 0).ok_or_else(wrong)?;
            let reason = words.collect::<Vec<_>>().join(" ");
            if reason.is_empty() {
                return Err(wrong());
            }
            let key = (check.to_owned(), file.to_owned());
            known.listed.insert(key, (count, reason));
        }
        Ok(known)
    }

    /// How many violations of a check a file may have.
    pub fn allowed(&self, check: &str, file: &str) -> usize {
        let key = (check.to_owned(), file.to_owned());
        self.listed.get(&key).map_or(0, |(count, _)| *count)
    }

    /// Check, file and count of everything that is listed.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &str, usize)> {
        let listed = self.listed.iter();
        listed.map(|((check, file), (count, _))| (check.as_str(), file.as_str(), *count))
    }

    /// The same list without what is gone. Nothing is added.
    pub fn shrunk_to(mut self, counts: &BTreeMap<(String, String), usize>) -> KnownViolations {
        self.listed.retain(|key, (count, _)| {
            *count = (*count).min(counts.get(key).copied().unwrap_or(0));
            *count > 0
        });
        self
    }

    /// Writes the list.
    pub fn write(&self, path: &Path) -> Result<(), String> {
        std::fs::write(path, self.to_text()).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn to_text(&self) -> String {
        let mut text = self.comment.clone();
        for ((check, file), (count, reason)) in &self.listed {
            text.push_str(&format!("{check} {file} {count} {reason}\n"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_shrinks_and_never_grows() {
        let text = "# about\nedges a.rs 3 old\nedges b.rs 1 old too\n";
        let known = KnownViolations::parse(text).unwrap();
        let now = |file: &str, count| (("edges".to_owned(), file.to_owned()), count);
        let counts = BTreeMap::from([now("a.rs", 2), now("c.rs", 5)]);
        let shrunk = known.shrunk_to(&counts);
        assert_eq!(shrunk.to_text(), "# about\nedges a.rs 2 old\n");
        assert_eq!(shrunk.allowed("edges", "c.rs"), 0);
    }

    #[test]
    fn every_known_violation_has_a_reason() {
        assert!(KnownViolations::parse("edges a.rs 3\n").is_err());
        assert!(KnownViolations::parse("edges a.rs many why\n").is_err());
    }
}
