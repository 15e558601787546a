//! One pass over a text that finds the anchors of all rules.
//!
//! Each anchor is represented by its rarest three bytes. Three bytes in a row are a number;
//! whether that number belongs to any anchor is one look into a small table, and no look
//! depends on the one before, which is what makes it faster than an automaton. Only where
//! the table says yes are anchors compared in full.

/// The size of the table, as a power of two: a byte for each number.
const BITS: u32 = 15;

/// Anchors, without regard to ASCII case.
#[derive(Debug)]
pub(super) struct Anchors {
    list: Vec<Box<[u8]>>,
    /// For each number 1 if an anchor may be there. Small enough to stay in the cache.
    table: Box<[u8; 1 << BITS]>,
    /// The anchors of each number that is set, by number.
    places: Vec<Place>,
    /// Where the anchors of each number begin in that list.
    starts: Box<[u16; (1 << BITS) + 1]>,
}

/// An anchor, as three of its bytes stand for it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    number: u16,
    which: u16,
    /// How far behind the anchor's start the three bytes are.
    offset: u8,
    len: u8,
    /// Its first and its last byte, in the one case: they tell most that are none.
    ends: [u8; 2],
}

impl Anchors {
    /// Anchors of three bytes or more, in lower case. Shorter ones would be everywhere;
    /// they are never found, and neither are some of more than 255 bytes.
    pub(super) fn new<'a>(anchors: impl Iterator<Item = &'a str>) -> Anchors {
        let list: Vec<Box<[u8]>> = anchors.map(|anchor| anchor.as_bytes().into()).collect();
        let mut table = Box::new([0; 1 << BITS]);
        let mut places = Vec::with_capacity(list.len());
        for (which, anchor) in list.iter().enumerate() {
            let Some((offset, number)) = rarest(anchor) else {
                continue;
            };
            let (Ok(which), Ok(len)) = (u16::try_from(which), u8::try_from(anchor.len())) else {
                continue;
            };
            table[usize::from(number)] = 1;
            places.push(Place {
                number,
                which,
                offset: offset as u8,
                len,
                ends: [0, anchor.len() - 1].map(|at| anchor[at] | BOTH_CASES as u8),
            });
        }
        places.sort_unstable();
        let mut starts = Box::new([0; (1 << BITS) + 1]);
        let mut below = 0;
        for (number, start) in starts.iter_mut().enumerate() {
            while places
                .get(below)
                .is_some_and(|place| usize::from(place.number) < number)
            {
                below += 1;
            }
            *start = below as u16;
        }
        Anchors {
            list,
            table,
            places,
            starts,
        }
    }

    /// Calls with the number, the start and the end of each anchor in the text.
    pub(super) fn each(&self, bytes: &[u8], mut call: impl FnMut(usize, usize, usize)) {
        let mut at = 0;
        // Eight bytes hold six times three bytes in a row.
        while let Some(word) = bytes[at..].first_chunk::<8>() {
            let word = u64::from_le_bytes(*word) | BOTH_CASES;
            let look = |step: u32| self.table[number((word >> (8 * step)) as u32)];
            if look(0) | look(1) | look(2) | look(3) | look(4) | look(5) != 0 {
                for step in (0..6).filter(|step| look(*step) != 0) {
                    self.compare(bytes, at + step as usize, &mut call);
                }
            }
            at += 6;
        }
        for (step, three) in bytes[at..].array_windows().enumerate() {
            if self.table[number_of(three)] != 0 {
                self.compare(bytes, at + step, &mut call);
            }
        }
    }

    /// Compares the anchors whose three bytes may be here.
    fn compare(&self, bytes: &[u8], at: usize, call: &mut impl FnMut(usize, usize, usize)) {
        let Some(three) = bytes[at..].first_chunk::<3>() else {
            return;
        };
        let number = number_of(three);
        let here = usize::from(self.starts[number])..usize::from(self.starts[number + 1]);
        for place in &self.places[here] {
            let Some(start) = at.checked_sub(usize::from(place.offset)) else {
                continue;
            };
            let end = start + usize::from(place.len);
            let Some([first, .., last]) = bytes.get(start..end) else {
                continue;
            };
            if [first, last].map(|byte| byte | BOTH_CASES as u8) != place.ends {
                continue;
            }
            let which = usize::from(place.which);
            if bytes[start..end].eq_ignore_ascii_case(&self.list[which]) {
                call(which, start, end);
            }
        }
    }
}

/// Makes letters of both cases the same, and other bytes no more different than they were.
const BOTH_CASES: u64 = 0x2020_2020_2020_2020;

/// A number for the lowest three bytes, whose cases are the same already. The factor leaves out
/// the fourth byte, and is one that gives few of the threes that code and prose are full of the
/// number of an anchor.
fn number(bytes: u32) -> usize {
    (bytes.wrapping_mul(0x0052_eba5 << 8) >> (32 - BITS)) as usize
}

fn number_of(three: &[u8; 3]) -> usize {
    number(u32::from_le_bytes([three[0], three[1], three[2], 0]) | BOTH_CASES as u32)
}

/// The three bytes of an anchor that are rarest in texts: where they are, and their number.
fn rarest(anchor: &[u8]) -> Option<(usize, u16)> {
    let cost = |three: &[u8; 3]| {
        let mut common = COMMON.as_chunks::<3>().0.iter();
        match common.position(|common| common == three) {
            Some(place) => (1, place as u32),
            None => (0, three.iter().map(|byte| commonness(*byte)).product()),
        }
    };
    let threes = anchor.array_windows::<3>().enumerate();
    let (offset, three) = threes.min_by_key(|(_, three)| cost(three))?;
    Some((offset, number_of(three) as u16))
}

/// The threes of anchors that code and prose are full of, one after the other, the most common
/// ones last: each is more than one in ten thousand.
const COMMON: &[u8] = b"\
    dentabatuali_paermginntomerinile_hoodesnfoes:oinlarrertoktacsigon_ickrceeciicethr_se\
    ureloguncspocorsecin_ntispaignttekensenrelaidblodarardcre_colicnchboo_in-reostroncloe\
    ardecastoke kelactryedirapappetashabasredinkntrasemapablcesaddpritaikeyiseunderaaulat\
    athoattharnetailpacarsencook.cofintrebleminecolescouunt_relautornespubordsysormnceock\
    dinnewcodackimeactdattimtchaceareratluetattensonwitritantakeivearterekinithypecalorkt\
    ypmaissaortlastrafroounndeatimatgen---endsagonttesplasesnteworpatcomestmesodeistateul\
    tindprohersiointverssiretresineasstrier conforandterturagelinextonetioessstrentionsum\
    ame";

/// How common a byte is in code and prose, roughly, from 1 to 26.
fn commonness(byte: u8) -> u32 {
    const LETTERS: &[u8] = b"zqjxkvbywgpfmucdlhrsnioate";
    let place = LETTERS.iter().position(|letter| *letter == byte);
    match place {
        Some(place) => place as u32 + 1,
        None if byte.is_ascii_digit() => 6,
        None => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(anchors: &[&str], text: &str) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        let all = Anchors::new(anchors.iter().copied());
        all.each(text.as_bytes(), |which, start, end| {
            assert_eq!(end - start, anchors[which].len());
            found.push((start, which));
        });
        found.sort_unstable();
        found
    }

    fn searched(anchors: &[&str], text: &str) -> Vec<(usize, usize)> {
        let text = text.to_ascii_lowercase();
        let starts =
            (0..text.len()).flat_map(|start| (0..anchors.len()).map(move |which| (start, which)));
        starts
            .filter(|(start, which)| {
                text.as_bytes()[*start..].starts_with(anchors[*which].as_bytes())
            })
            .collect()
    }

    #[test]
    fn anchors_that_overlap_are_all_found_at_both_ends_of_a_text() {
        let anchors = ["key", "monkey", "apikey", "key_", "eye"];
        let text = "KEYmonKeyApikey_eyekey";
        assert_eq!(found(&anchors, text), searched(&anchors, text));
        assert_eq!(found(&anchors, "ke"), []);
        assert_eq!(found(&anchors, ""), []);
    }

    proptest! {
        #[test]
        fn anchors_are_found_where_a_plain_search_finds_them(text in "[abAB:_/é]{0,40}") {
            let anchors = ["aba", "bab", "://", "ab_a", "abab", "a:b", "b/a", "__a"];
            prop_assert_eq!(found(&anchors, &text), searched(&anchors, &text));
        }
    }
}
