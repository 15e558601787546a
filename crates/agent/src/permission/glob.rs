//! Text with stars, against text that may have holes.

/// A character, or any text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GlobUnit {
    /// This one.
    Char(char),
    /// Any text, also none.
    Any,
}

/// A text with stars.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GlobPattern {
    units: Vec<GlobUnit>,
    /// Ends in ` *`: what stands before it may also stand alone.
    alone: bool,
}

impl GlobPattern {
    /// A star is any text; a backslash before it makes it a star.
    pub fn read(text: &str) -> GlobPattern {
        let mut units = Vec::new();
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '*' => units.push(GlobUnit::Any),
                '\\' if chars.peek() == Some(&'*') => {
                    chars.next();
                    units.push(GlobUnit::Char('*'));
                }
                c => units.push(GlobUnit::Char(c)),
            }
        }
        GlobPattern {
            units,
            alone: false,
        }
    }

    /// The same for commands: `:*` at the end is ` *`, which begins a new word.
    pub fn command(text: &str) -> GlobPattern {
        let mut pattern = match text.strip_suffix(":*") {
            Some(start) => GlobPattern::read(&format!("{start} *")),
            None => GlobPattern::read(text),
        };
        pattern.alone = pattern
            .units
            .ends_with(&[GlobUnit::Char(' '), GlobUnit::Any]);
        pattern
    }

    /// Whether it is one text only.
    pub fn is_exact(&self) -> bool {
        !self.units.contains(&GlobUnit::Any)
    }

    /// Whether nothing is known behind the text it begins with.
    pub fn is_start(&self) -> bool {
        let known = self.units.iter().position(|unit| *unit == GlobUnit::Any);
        known.is_none_or(|at| at + 1 == self.units.len())
    }

    /// Whether a text fits.
    pub fn fits(&self, text: &str) -> bool {
        // Most texts differ in their first letters.
        if !text.starts_with(self.start().trim_end_matches(' ')) {
            return false;
        }
        let units: Vec<GlobUnit> = text.chars().map(GlobUnit::Char).collect();
        self.could_fit(&units)
    }

    /// Whether a text with holes fits for some content of the holes.
    pub fn could_fit(&self, text: &[GlobUnit]) -> bool {
        let short = self.units.len().saturating_sub(2);
        meet(&self.units, text) || (self.alone && meet(&self.units[..short], text))
    }

    /// Whether a text fits from some word or some name of a path on.
    pub fn fits_behind(&self, text: &str) -> bool {
        let units: Vec<GlobUnit> = text.chars().map(GlobUnit::Char).collect();
        [' ', '/']
            .into_iter()
            .any(|mark| self.could_fit_behind(&units, mark))
    }

    /// The same for a text with holes.
    pub fn could_fit_behind(&self, text: &[GlobUnit], mark: char) -> bool {
        let mut units = vec![GlobUnit::Any, GlobUnit::Char(mark)];
        units.extend(&self.units);
        let longer = GlobPattern {
            units,
            alone: self.alone,
        };
        longer.could_fit(text)
    }

    /// The plain text it begins with.
    pub fn start(&self) -> String {
        let known = self.units.iter().map_while(|unit| match unit {
            GlobUnit::Char(c) => Some(c),
            GlobUnit::Any => None,
        });
        known.collect()
    }
}

/// Whether some text fits both. Takes as many steps as the product of their lengths.
fn meet(one: &[GlobUnit], other: &[GlobUnit]) -> bool {
    let mut row = vec![false; other.len() + 1];
    row[0] = true;
    for at in 0..=one.len() {
        let mut next = vec![false; other.len() + 1];
        for to in 0..=other.len() {
            if !row[to] {
                continue;
            }
            let (a, b) = (one.get(at), other.get(to));
            if a == Some(&GlobUnit::Any) {
                next[to] = true;
            }
            // Either side's hole swallows what the other has.
            if b.is_some() && (a == Some(&GlobUnit::Any) || b == Some(&GlobUnit::Any)) {
                row[to + 1] = true;
            }
            if b == Some(&GlobUnit::Any) && a.is_some() {
                next[to] = true;
            }
            if let (Some(GlobUnit::Char(a)), Some(GlobUnit::Char(b))) = (a, b)
                && a == b
            {
                next[to + 1] = true;
            }
        }
        if at == one.len() {
            return row[other.len()];
        }
        row = next;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, text: &str) -> bool {
        GlobPattern::command(pattern).fits(text)
    }

    #[test]
    fn a_star_is_any_text_with_spaces() {
        assert!(fits("git * main", "git push origin main"));
        assert!(!fits("git * main", "git push origin mains"));
        assert!(fits("*", "anything at all"));
    }

    #[test]
    fn a_star_behind_a_space_begins_a_new_word() {
        assert!(fits("ls *", "ls -la"));
        assert!(fits("ls *", "ls"));
        assert!(!fits("ls *", "lsof"));
        assert!(fits("ls*", "lsof"));
    }

    #[test]
    fn a_colon_and_star_at_the_end_is_the_same() {
        assert!(fits("npm run test:*", "npm run test"));
        assert!(fits("npm run test:*", "npm run test -- x"));
        assert!(!fits("npm run test:*", "npm run tests"));
        assert!(!fits("npm run test:*", "npm run test:unit"));
    }

    #[test]
    fn without_a_star_only_the_same_text_fits() {
        assert!(fits("npm test", "npm test"));
        assert!(!fits("npm test", "npm test x"));
        assert!(fits(r"ls \*", "ls *"));
        assert!(!fits(r"ls \*", "ls a"));
    }

    #[test]
    fn a_hole_could_be_anything() {
        let text = |text: &str| -> Vec<GlobUnit> {
            text.chars()
                .map(|c| match c {
                    '?' => GlobUnit::Any,
                    c => GlobUnit::Char(c),
                })
                .collect()
        };
        let push = GlobPattern::command("git push *");
        assert!(push.could_fit(&text("git?")));
        assert!(push.could_fit(&text("?")));
        assert!(push.could_fit(&text("g?h x")));
        assert!(!push.could_fit(&text("git status ?")));
        assert!(!push.could_fit(&text("ls?")));
    }

    #[test]
    fn long_texts_with_many_stars_end() {
        let pattern = GlobPattern::read(&"*a".repeat(300));
        assert!(!pattern.fits(&"a".repeat(299)));
        assert!(pattern.fits(&"a".repeat(10_000)));
    }
}
