//! About how many tokens something takes, where nobody has counted.
//!
//! One rule for all: four bytes are a token. That is right to a few percent for Latin prose and
//! for code, somewhat low for scripts of three bytes a character; and a size is known of texts
//! that stay in their file.

use crate::block::BlockKind;
use crate::session::BlockRecord;

/// An image or a document takes about this much, whatever the size of its file.
pub const IMAGE: u64 = 1_500;

/// Of so many bytes.
pub fn of_bytes(bytes: usize) -> u64 {
    bytes.div_ceil(4) as u64
}

/// Of a text.
pub fn of_text(text: &str) -> u64 {
    of_bytes(text.len())
}

/// Of a block.
pub fn of_block(block: &BlockRecord) -> u64 {
    match block.kind {
        BlockKind::Image | BlockKind::Document => IMAGE,
        _ => of_bytes(block.body().len),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_bytes_are_a_token_and_a_part_of_one_is_one() {
        assert_eq!(
            ["", "a", "abcd", "abcde", "ééé"].map(of_text),
            [0, 1, 1, 2, 2]
        );
    }
}
