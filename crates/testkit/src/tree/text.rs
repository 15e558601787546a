//! Texts to fill transcripts with: prose, code, logs, Chinese, base64.
//!
//! Made once from the seed and already escaped for JSON, so that a text of any
//! size is a slice of a pool and the generator runs at the speed of copying.
//! Words repeat the way words do (a few are everywhere), so that searching and
//! compressing behave as on real transcripts; they mean nothing.

use crate::random::Random;

/// What a text looks like.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Sentences, with some Markdown.
    Prose,
    /// Lines of programs.
    Code,
    /// The output of tools, with colours.
    Log,
    /// Chinese, some of it written as `\u` escapes.
    Chinese,
    /// The data of an image.
    Base64,
}

/// The pools.
pub struct Text {
    pools: [Pool; 5],
}

/// Escaped text, and the places where it may be cut.
#[derive(Default)]
struct Pool {
    bytes: Vec<u8>,
    cuts: Vec<usize>,
}

impl Text {
    /// Pools of about `size` bytes each.
    pub fn new(seed: u64, size: usize) -> Text {
        let mut random = Random::new(seed ^ 0x7e87);
        let words = Words::new(&mut random);
        let lines: [fn(&Words, &mut Random) -> String; 5] = [prose, code, log, chinese, base64];
        Text {
            pools: lines.map(|line| Pool::fill(size, &words, &mut random, line)),
        }
    }

    /// About `size` bytes of text, escaped, without the quotes around it.
    pub fn slice(&self, random: &mut Random, kind: Kind, size: u64) -> &[u8] {
        let pool = &self.pools[kind as usize];
        let longest = pool.bytes.len() as u64 / 2;
        let size = size.min(longest) as usize;
        let first = random.below(pool.cuts.len() as u64 / 2) as usize;
        let start = pool.cuts[first];
        let after = pool.cuts.partition_point(|&cut| cut < start + size);
        let end = pool.cuts[after.max(first + 1).min(pool.cuts.len() - 1)];
        // A text does not end with the line break that separates it from the next.
        let text = &pool.bytes[start..end];
        text.strip_suffix(b"\\n").unwrap_or(text)
    }
}

impl Pool {
    fn fill(
        size: usize,
        words: &Words,
        random: &mut Random,
        line: fn(&Words, &mut Random) -> String,
    ) -> Pool {
        let mut pool = Pool::default();
        while pool.bytes.len() < size || pool.cuts.len() < 4 {
            pool.cuts.push(pool.bytes.len());
            pool.bytes.extend_from_slice(line(words, random).as_bytes());
        }
        pool.cuts.push(pool.bytes.len());
        pool
    }
}

/// A vocabulary in which the first words are drawn far more often.
struct Words(Vec<String>);

const FREQUENT: &[&str] = &[
    "the", "a", "to", "is", "in", "of", "it", "and", "file", "test", "not", "this", "error",
    "line", "value", "read", "write", "change", "call", "name", "list", "session", "turn", "parse",
    "type", "check", "should",
];

impl Words {
    fn new(random: &mut Random) -> Words {
        let mut words: Vec<String> = FREQUENT.iter().map(|&word| word.to_owned()).collect();
        let (starts, middles) = (
            [
                "b", "d", "f", "gr", "k", "l", "m", "n", "p", "r", "s", "st", "t", "v",
            ],
            ["a", "e", "i", "o", "u", "ai"],
        );
        let ends = ["", "n", "r", "s", "l"];
        while words.len() < 6000 {
            let syllables = random.range(1, 4);
            let syllable = |random: &mut Random| {
                [
                    *random.pick(&starts),
                    *random.pick(&middles),
                    *random.pick(&ends),
                ]
                .concat()
            };
            words.push((0..syllables).map(|_| syllable(random)).collect());
        }
        Words(words)
    }

    fn word(&self, random: &mut Random) -> &str {
        // The cube of an even draw favours the front of the list.
        let draw = random.unit();
        &self.0[(draw * draw * draw * self.0.len() as f64) as usize]
    }

    fn many(&self, random: &mut Random, count: u64) -> String {
        let words: Vec<&str> = (0..count).map(|_| self.word(random)).collect();
        words.join(" ")
    }
}

fn prose(words: &Words, random: &mut Random) -> String {
    let count = random.range(6, 30);
    let sentence = words.many(random, count);
    match random.below(8) {
        0 => format!("- **{}**: {sentence}\\n", words.word(random)),
        1 => format!(
            "See `{}_{}` for \\\"{sentence}\\\".\\n",
            words.word(random),
            words.word(random)
        ),
        2 => format!("## {sentence} — {}\\n\\n", words.word(random)),
        _ => format!("{sentence}.\\n"),
    }
}

fn code(words: &Words, random: &mut Random) -> String {
    let indent = "    ".repeat(random.below(4) as usize);
    let [a, b, c] = [(); 3].map(|()| words.word(random));
    let number = random.below(10_000);
    match random.below(8) {
        0 => format!("{indent}// {}\\n", words.many(random, 8)),
        1 => format!("{indent}fn {a}_{b}(&self, {c}: &str) -> Result<(), Error> {{\\n"),
        2 => format!("{indent}let {a} = self.{b}.{c}({number})?;\\n"),
        3 => format!("{indent}if {a} == \\\"{b}\\\" {{ return {c}; }}\\n"),
        4 => format!("{indent}}}\\n\\n"),
        5 => format!("{indent}assert_eq!({a}({number}), \\\"{b}\\\\n{c}\\\");\\n"),
        6 => format!("{indent}{a}:\\t{b}[{number}],\\n"),
        _ => format!("{indent}{a}.{b}(|{c}| {c} + {number});\\n"),
    }
}

fn log(words: &Words, random: &mut Random) -> String {
    let [a, b, c] = [(); 3].map(|()| words.word(random));
    let number = random.below(100_000);
    match random.below(6) {
        0 => format!("\\u001b[32m INFO\\u001b[0m {a}::{b}: {c} id={number:x}\\n"),
        1 => format!("   Compiling {a}-{b} v0.{}.{}\\n", number % 50, number % 7),
        2 => format!("test {a}::{b}_{c} ... ok\\n"),
        3 => format!(
            "src/{a}/{b}.rs:{}:{}: warning: unused `{c}`\\n",
            number % 900,
            number % 80
        ),
        4 => format!("-rw-r--r-- 1 dev dev {number:>8} {a}_{b}.{c}\\n"),
        _ => format!("C:\\\\{a}\\\\{b}.dll\\t0x{number:06x}\\n"),
    }
}

fn chinese(words: &Words, random: &mut Random) -> String {
    // The block of unified ideographs begins at 4E00; any of them will do.
    let mut text: String = (0..random.range(8, 40))
        .filter_map(|_| char::from_u32(0x4e00 + random.below(3000) as u32))
        .collect();
    if random.chance(10) {
        text = text
            .chars()
            .map(|c| format!("\\u{:04x}", u32::from(c)))
            .collect();
    }
    format!("{text} {}。\\n", words.word(random))
}

fn base64(_: &Words, random: &mut Random) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    (0..64)
        .map(|_| LETTERS[random.below(64) as usize] as char)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slice_is_valid_inside_a_json_string() {
        let text = Text::new(1, 20_000);
        let mut random = Random::new(2);
        for kind in [
            Kind::Prose,
            Kind::Code,
            Kind::Log,
            Kind::Chinese,
            Kind::Base64,
        ] {
            for size in [1, 100, 5000, 1_000_000] {
                let slice =
                    String::from_utf8(text.slice(&mut random, kind, size).to_vec()).unwrap();
                assert!(!slice.is_empty());
                assert!(
                    serde_json::from_str::<String>(&format!("\"{slice}\"")).is_ok(),
                    "{slice}"
                );
            }
        }
    }
}
