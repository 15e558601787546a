//! The ninth byte of a uuid, which begins with the bits `10` in all that are made today.
//!
//! The values it cannot have tell other ids, and no id at all, without a byte more. The
//! compiler only sees that in a list of all values that it can have.

/// A byte from `80` to `bf`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[rustfmt::skip]
pub(super) enum UuidNinthByte {
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
const ALL: [UuidNinthByte; 64] = [
    UuidNinthByte::X80, UuidNinthByte::X81, UuidNinthByte::X82, UuidNinthByte::X83,
    UuidNinthByte::X84, UuidNinthByte::X85, UuidNinthByte::X86, UuidNinthByte::X87,
    UuidNinthByte::X88, UuidNinthByte::X89, UuidNinthByte::X8a, UuidNinthByte::X8b,
    UuidNinthByte::X8c, UuidNinthByte::X8d, UuidNinthByte::X8e, UuidNinthByte::X8f,
    UuidNinthByte::X90, UuidNinthByte::X91, UuidNinthByte::X92, UuidNinthByte::X93,
    UuidNinthByte::X94, UuidNinthByte::X95, UuidNinthByte::X96, UuidNinthByte::X97,
    UuidNinthByte::X98, UuidNinthByte::X99, UuidNinthByte::X9a, UuidNinthByte::X9b,
    UuidNinthByte::X9c, UuidNinthByte::X9d, UuidNinthByte::X9e, UuidNinthByte::X9f,
    UuidNinthByte::Xa0, UuidNinthByte::Xa1, UuidNinthByte::Xa2, UuidNinthByte::Xa3,
    UuidNinthByte::Xa4, UuidNinthByte::Xa5, UuidNinthByte::Xa6, UuidNinthByte::Xa7,
    UuidNinthByte::Xa8, UuidNinthByte::Xa9, UuidNinthByte::Xaa, UuidNinthByte::Xab,
    UuidNinthByte::Xac, UuidNinthByte::Xad, UuidNinthByte::Xae, UuidNinthByte::Xaf,
    UuidNinthByte::Xb0, UuidNinthByte::Xb1, UuidNinthByte::Xb2, UuidNinthByte::Xb3,
    UuidNinthByte::Xb4, UuidNinthByte::Xb5, UuidNinthByte::Xb6, UuidNinthByte::Xb7,
    UuidNinthByte::Xb8, UuidNinthByte::Xb9, UuidNinthByte::Xba, UuidNinthByte::Xbb,
    UuidNinthByte::Xbc, UuidNinthByte::Xbd, UuidNinthByte::Xbe, UuidNinthByte::Xbf,
];

impl UuidNinthByte {
    /// The byte, if it is one of these.
    pub(super) fn new(byte: u8) -> Option<UuidNinthByte> {
        ALL.get(usize::from(byte.checked_sub(0x80)?)).copied()
    }

    /// It as a number.
    pub(super) fn byte(self) -> u8 {
        self as u8
    }
}
