//! The ninth byte of a uuid, which begins with the bits `10` in all that are made today.
//!
//! The values it cannot have tell other ids, and no id at all, without a byte more. The
//! compiler only sees that in a list of all values that it can have.

/// A byte from `80` to `bf`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[rustfmt::skip]
pub(super) enum Ninth {
    X80 = 0x80, X81, X82, X83, X84, X85, X86, X87,
    X88, X89, X8A, X8B, X8C, X8D, X8E, X8F,
    X90, X91, X92, X93, X94, X95, X96, X97,
    X98, X99, X9A, X9B, X9C, X9D, X9E, X9F,
    XA0, XA1, XA2, XA3, XA4, XA5, XA6, XA7,
    XA8, XA9, XAA, XAB, XAC, XAD, XAE, XAF,
    XB0, XB1, XB2, XB3, XB4, XB5, XB6, XB7,
    XB8, XB9, XBA, XBB, XBC, XBD, XBE, XBF,
}

#[rustfmt::skip]
const ALL: [Ninth; 64] = [
    Ninth::X80, Ninth::X81, Ninth::X82, Ninth::X83,
    Ninth::X84, Ninth::X85, Ninth::X86, Ninth::X87,
    Ninth::X88, Ninth::X89, Ninth::X8A, Ninth::X8B,
    Ninth::X8C, Ninth::X8D, Ninth::X8E, Ninth::X8F,
    Ninth::X90, Ninth::X91, Ninth::X92, Ninth::X93,
    Ninth::X94, Ninth::X95, Ninth::X96, Ninth::X97,
    Ninth::X98, Ninth::X99, Ninth::X9A, Ninth::X9B,
    Ninth::X9C, Ninth::X9D, Ninth::X9E, Ninth::X9F,
    Ninth::XA0, Ninth::XA1, Ninth::XA2, Ninth::XA3,
    Ninth::XA4, Ninth::XA5, Ninth::XA6, Ninth::XA7,
    Ninth::XA8, Ninth::XA9, Ninth::XAA, Ninth::XAB,
    Ninth::XAC, Ninth::XAD, Ninth::XAE, Ninth::XAF,
    Ninth::XB0, Ninth::XB1, Ninth::XB2, Ninth::XB3,
    Ninth::XB4, Ninth::XB5, Ninth::XB6, Ninth::XB7,
    Ninth::XB8, Ninth::XB9, Ninth::XBA, Ninth::XBB,
    Ninth::XBC, Ninth::XBD, Ninth::XBE, Ninth::XBF,
];

impl Ninth {
    /// The byte, if it is one of these.
    pub(super) fn new(byte: u8) -> Option<Ninth> {
        ALL.get(usize::from(byte.checked_sub(0x80)?)).copied()
    }

    /// It as a number.
    pub(super) fn byte(self) -> u8 {
        self as u8
    }
}
