//! Attributes as bytes of protobuf, written once.
//!
//! A span has some forty attributes, and what all spans of a trace have in common is most of
//! them. As structs they would be built, measured at every level of nesting and copied for
//! each span; here they are written where they are going to be.

use prost::encoding::{encode_varint, encoded_len_varint};

/// Attributes of a span: its field 9, over and over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AttributeBuffer {
    pub(super) bytes: Vec<u8>,
}

// Field numbers and wire types of the messages involved.
const ATTRIBUTE: u8 = 9 << 3 | 2;
const KEY: u8 = 1 << 3 | 2;
const VALUE: u8 = 2 << 3 | 2;
const STRING: u8 = 1 << 3 | 2;
const BOOL: u8 = 2 << 3;
const INT: u8 = 3 << 3;
const DOUBLE: u8 = 4 << 3 | 1;
const ARRAY: u8 = 5 << 3 | 2;
const ITEM: u8 = 1 << 3 | 2;

/// The length of a field that says how long it is, its tag included.
pub(super) fn sized(len: usize) -> usize {
    1 + encoded_len_varint(len as u64) + len
}

/// Writes such a field.
pub(super) fn field(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    head(out, tag, bytes.len());
    out.extend_from_slice(bytes);
}

/// Writes the start of such a field.
pub(super) fn head(out: &mut Vec<u8>, tag: u8, len: usize) {
    out.push(tag);
    encode_varint(len as u64, out);
}

impl AttributeBuffer {
    /// A text. The name may come in two parts.
    pub(super) fn text(&mut self, key: impl AttributeName, value: &str) {
        self.open(key, sized(value.len()));
        field(&mut self.bytes, STRING, value.as_bytes());
    }

    /// A list of texts.
    pub(super) fn texts<'a>(
        &mut self,
        key: impl AttributeName,
        values: impl Iterator<Item = &'a str> + Clone,
    ) {
        let items = values.clone();
        let len: usize = items.map(|value| sized(sized(value.len()))).sum();
        self.open(key, sized(len));
        head(&mut self.bytes, ARRAY, len);
        for value in values {
            head(&mut self.bytes, ITEM, sized(value.len()));
            field(&mut self.bytes, STRING, value.as_bytes());
        }
    }

    /// A whole number.
    pub(super) fn number(&mut self, key: impl AttributeName, value: u64) {
        let value = value.min(i64::MAX as u64);
        self.open(key, 1 + encoded_len_varint(value));
        self.bytes.push(INT);
        encode_varint(value, &mut self.bytes);
    }

    /// A number.
    pub(super) fn float(&mut self, key: impl AttributeName, value: f64) {
        self.open(key, 9);
        self.bytes.push(DOUBLE);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// A truth.
    pub(super) fn truth(&mut self, key: impl AttributeName, value: bool) {
        self.open(key, 2);
        self.bytes.extend_from_slice(&[BOOL, u8::from(value)]);
    }

    /// Everything before a value of this length.
    fn open(&mut self, key: impl AttributeName, value: usize) {
        let (first, second) = key.parts();
        let name = first.len() + second.len();
        self.bytes.reserve(name + value + 24);
        head(&mut self.bytes, ATTRIBUTE, sized(name) + sized(value));
        head(&mut self.bytes, KEY, name);
        self.bytes.extend_from_slice(first.as_bytes());
        self.bytes.extend_from_slice(second.as_bytes());
        head(&mut self.bytes, VALUE, value);
    }
}

/// The name of an attribute, in one part or two.
pub(super) trait AttributeName {
    fn parts(&self) -> (&str, &str);
}

impl AttributeName for &str {
    fn parts(&self) -> (&str, &str) {
        (self, "")
    }
}

impl AttributeName for (&str, &str) {
    fn parts(&self) -> (&str, &str) {
        *self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry_proto::tonic::common::v1::any_value::Value;
    use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue};
    use opentelemetry_proto::tonic::trace::v1::Span;
    use prost::Message;

    fn attribute(key: &str, value: Value) -> KeyValue {
        KeyValue {
            key: key.to_owned(),
            value: Some(AnyValue { value: Some(value) }),
            ..KeyValue::default()
        }
    }

    #[test]
    fn the_bytes_are_those_of_the_structs() {
        let long = "日本".repeat(5000);
        let mut buffer = AttributeBuffer::default();
        buffer.text("a", "x");
        buffer.text(("prefix.", "key"), &long);
        buffer.text("empty", "");
        buffer.number("n", 300);
        buffer.number("most", u64::MAX);
        buffer.float("f", 0.25);
        buffer.truth("t", true);
        buffer.texts("list", ["one", "", "three"].into_iter());
        let text = |text: &str| Value::StringValue(text.to_owned());
        let items = ["one", "", "three"].map(|item| AnyValue {
            value: Some(text(item)),
        });
        let span = Span {
            attributes: vec![
                attribute("a", text("x")),
                attribute("prefix.key", text(&long)),
                attribute("empty", text("")),
                attribute("n", Value::IntValue(300)),
                attribute("most", Value::IntValue(i64::MAX)),
                attribute("f", Value::DoubleValue(0.25)),
                attribute("t", Value::BoolValue(true)),
                attribute(
                    "list",
                    Value::ArrayValue(ArrayValue {
                        values: items.to_vec(),
                    }),
                ),
            ],
            ..Span::default()
        };
        assert_eq!(buffer.bytes, span.encode_to_vec());
    }
}
