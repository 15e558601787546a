//! Server-sent events: bytes in, events out, however the bytes are cut.

/// Makes events of bytes.
#[derive(Debug, Default)]
pub struct SseParser {
    line: Vec<u8>,
    data: String,
    has_data: bool,
    /// The last byte was a carriage return, whose line feed may follow.
    returned: bool,
    begun: bool,
}

impl SseParser {
    /// Takes the next bytes, and hands out the data of each event that is now complete.
    pub fn feed(&mut self, bytes: &[u8], mut each: impl FnMut(&str)) {
        for &byte in bytes {
            let after_return = std::mem::take(&mut self.returned);
            match byte {
                b'\n' if after_return => {}
                b'\n' => self.end_line(&mut each),
                b'\r' => {
                    self.returned = true;
                    self.end_line(&mut each);
                }
                _ => self.line.push(byte),
            }
        }
    }

    fn end_line(&mut self, each: &mut impl FnMut(&str)) {
        let line = std::mem::take(&mut self.line);
        let mut line = line.as_slice();
        if !std::mem::replace(&mut self.begun, true) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            if std::mem::take(&mut self.has_data) {
                each(&self.data);
            }
            self.data.clear();
            return;
        }
        // Names of events repeat what the data says, and comments say nothing.
        let Some(value) = line.strip_prefix(b"data") else {
            return;
        };
        let value = match value {
            [] => value,
            [b':', b' ', rest @ ..] => rest,
            [b':', rest @ ..] => rest,
            _ => return,
        };
        if self.has_data {
            self.data.push('\n');
        }
        self.has_data = true;
        self.data.push_str(&String::from_utf8_lossy(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(pieces: &[&[u8]]) -> Vec<String> {
        let mut parser = SseParser::default();
        let mut out = Vec::new();
        for piece in pieces {
            parser.feed(piece, |data| out.push(data.to_owned()));
        }
        out
    }

    const STREAM: &str = "\u{feff}event: a\r\ndata: {\"x\":\"ü日\"}\r\n\r\n: ping\n\ndata: 1\ndata:2\n\n\
        event: empty\n\nid: 7\rdata\r\rdatax: no\n\ndata: unended";

    #[test]
    fn events_are_the_same_however_the_bytes_are_cut() {
        let bytes = STREAM.as_bytes();
        let whole = events(&[bytes]);
        assert_eq!(whole, ["{\"x\":\"ü日\"}", "1\n2", ""]);
        for first in 0..=bytes.len() {
            let (a, b) = bytes.split_at(first);
            assert_eq!(events(&[a, b]), whole, "cut at {first}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(events(&single), whole);
    }
}
