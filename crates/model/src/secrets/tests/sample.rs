//! Random texts that an expression matches.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, ClassBytes, Hir, HirKind};
use unspool_testkit::random::Random;

/// A text that the expression matches, if what stands around it allows.
pub(super) fn sample(regex: &str, random: &mut Random) -> String {
    let mut parser = ParserBuilder::new().unicode(false).utf8(false).build();
    let mut bytes = Vec::new();
    write(&parser.parse(regex).unwrap(), random, &mut bytes);
    String::from_utf8(bytes).unwrap()
}

/// Letters and digits.
pub(super) fn digits(count: usize, random: &mut Random) -> String {
    let letters: Vec<char> = ('0'..='9').chain('a'..='z').chain('A'..='Z').collect();
    (0..count).map(|_| *random.pick(&letters)).collect()
}

fn write(hir: &Hir, random: &mut Random, bytes: &mut Vec<u8>) {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => bytes.extend(&literal.0),
        HirKind::Class(Class::Bytes(class)) => bytes.push(pick(class, random)),
        HirKind::Class(Class::Unicode(class)) => {
            let ascii = class.to_byte_class().unwrap();
            bytes.push(pick(&ascii, random));
        }
        HirKind::Capture(capture) => write(&capture.sub, random, bytes),
        HirKind::Concat(parts) => parts.iter().for_each(|part| write(part, random, bytes)),
        HirKind::Alternation(parts) => write(random.pick(parts), random, bytes),
        HirKind::Repetition(repetition) => {
            let min = u64::from(repetition.min);
            let max = repetition.max.map_or(min + 8, u64::from).min(min + 8);
            for _ in 0..random.range(min, max + 1) {
                write(&repetition.sub, random, bytes);
            }
        }
    }
}

/// One of the class that can be printed, and a blank for those that must end a token.
fn pick(class: &ClassBytes, random: &mut Random) -> u8 {
    let all = class
        .ranges()
        .iter()
        .flat_map(|range| range.start()..=range.end());
    let all: Vec<u8> = all.filter(|byte| byte.is_ascii_graphic()).collect();
    let has = |byte: u8| {
        class
            .ranges()
            .iter()
            .any(|range| (range.start()..=range.end()).contains(&byte))
    };
    if has(b' ') && has(b'\n') || all.is_empty() {
        return if has(b' ') { b' ' } else { b'\n' };
    }
    *random.pick(&all)
}
