//! Standard output without tokens: the last look at what is printed.
//!
//! Texts of sessions are masked where they are read. Names are not all from there: the folder
//! of a project, the path of a file, a branch may hold a token as well. Whole lines are looked
//! at before they leave, for tokens of known forms and known values alone.

use std::io::{self, Write};

use unspool_model::edit::redact::Redactor;

/// More than this without the end of a line is looked at as it is.
const LONGEST: usize = 8 << 20;

/// A writer that masks what goes through it.
#[derive(Debug)]
pub struct MaskedOutput<W: Write> {
    out: W,
    /// What has not ended its line yet.
    waiting: Vec<u8>,
    /// `None` if everything may be seen. Made when the first line leaves: a command that prints
    /// nothing does not wait for it.
    masker: Option<LazyMasker>,
}

/// Gives the masker, which is made when it is first asked for.
pub type LazyMasker = fn() -> &'static Redactor;

impl<W: Write> MaskedOutput<W> {
    /// A writer before another one.
    pub fn new(out: W, masker: Option<LazyMasker>) -> MaskedOutput<W> {
        MaskedOutput {
            out,
            waiting: Vec::new(),
            masker,
        }
    }

    fn pass(&mut self, end: usize) -> io::Result<()> {
        let rest = self.waiting.split_off(end);
        let lines = std::mem::replace(&mut self.waiting, rest);
        let Some(masker) = self.masker else {
            return self.out.write_all(&lines);
        };
        if lines.is_empty() {
            return Ok(());
        }
        let masker = masker();
        if masker.places_of_text(&lines).is_empty() {
            return self.out.write_all(&lines);
        }
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            // JSON stays JSON.
            let masked = match line.first() {
                Some(b'{' | b'[') => masker.value(line),
                _ => masker.file(line),
            };
            let masked = masked.as_ref().map_or(line, |masked| &masked.bytes);
            self.out.write_all(masked)?;
        }
        Ok(())
    }
}

impl<W: Write> Write for MaskedOutput<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.masker.is_none() {
            return self.out.write(bytes);
        }
        let before = self.waiting.len();
        self.waiting.extend_from_slice(bytes);
        match bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => self.pass(before + end + 1)?,
            None if self.waiting.len() > LONGEST => self.pass(self.waiting.len())?,
            None => {}
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pass(self.waiting.len())?;
        self.out.flush()
    }
}

impl<W: Write> Drop for MaskedOutput<W> {
    fn drop(&mut self) {
        // As a buffered writer does; who wants to know of errors flushes.
        let _ = self.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets;

    #[test]
    fn tokens_are_masked_however_the_bytes_come() {
        let token = ["ghp_", "x7Qb9ZpLm2", "Rt4VbN8cKd", "3Wf6HsJy1T", "g5Ue0i"].concat();
        let text = format!("a /home/{token}/x\n{{\"path\":\"/home/{token}\"}}\nlast {token}");
        for size in [1, 7, 1000] {
            let mut bytes = Vec::new();
            let mut out = MaskedOutput::new(&mut bytes, Some(secrets::name_masker));
            for piece in text.as_bytes().chunks(size) {
                out.write_all(piece).unwrap();
            }
            out.flush().unwrap();
            drop(out);
            let masked = text.replace(&token, "[REDACTED:github-pat]");
            assert_eq!(String::from_utf8(bytes).unwrap(), masked);
        }
    }
}
