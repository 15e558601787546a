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
    X88, X89, X8a, X8b, X8c, X8d, X8e, X8f,
    X90, X91, X92, X93, X94, X95, X96, X97,
    X98, X99, X9a, X9b, X9c, X9d, X9e, X9f,
    Xa0, Xa1, Xa2, Xa3, Xa4, Xa5, Xa6, Xa7,
    Xa8, Xa9, Xaa, Xab, Xac, Xad, Xae, Xaf,
    Xb0, Xb1, Xb2, Xb3, Xb4, Xb5, Xb6, Xb7,
    Xb8, Xb9, Xba, Xbb, Xbc, Xbd, Xbe, Xbf,
}

#[rustfmt::skip]
const ALL: [Ninth; 64] = [
    Ninth::X80, Ninth::X81, Ninth::X82, Ninth::X83,
    Ninth::X84, Ninth::X85, Ninth::X86, Ninth::X87,
    Ninth::X88, Ninth::X89, Ninth::X8a, Ninth::X8b,
    Ninth::X8c, Ninth::X8d, Ninth::X8e, Ninth::X8f,
    Ninth::X90, Ninth::X91, Ninth::X92, Ninth::X93,
    Ninth::X94, Ninth::X95, Ninth::X96, Ninth::X97,
    Ninth::X98, Ninth::X99, Ninth::X9a, Ninth::X9b,
    Ninth::X9c, Ninth::X9d, Ninth::X9e, Ninth::X9f,
    Ninth::Xa0, Ninth::Xa1, Ninth::Xa2, Ninth::Xa3,
    Ninth::Xa4, Ninth::Xa5, Ninth::Xa6, Ninth::Xa7,
    Ninth::Xa8, Ninth::Xa9, Ninth::Xaa, Ninth::Xab,
    Ninth::Xac, Ninth::Xad, Ninth::Xae, Ninth::Xaf,
    Ninth::Xb0, Ninth::Xb1, Ninth::Xb2, Ninth::Xb3,
    Ninth::Xb4, Ninth::Xb5, Ninth::Xb6, Ninth::Xb7,
    Ninth::Xb8, Ninth::Xb9, Ninth::Xba, Ninth::Xbb,
    Ninth::Xbc, Ninth::Xbd, Ninth::Xbe, Ninth::Xbf,
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
