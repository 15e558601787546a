//! One pass over a text that finds the anchors of all rules.
//!
//! Each anchor is represented by its rarest three bytes. Three bytes in a row are a number;
//! whether that number belongs to any anchor is one look into a small table, and no look
//! depends on the one before, which is what makes it faster than an automaton. Only where
//! the table says yes are anchors compared in full.

use std::collections::HashMap;

/// The size of the table, as a power of two: a byte for each number.
const BITS: u32 = 15;

/// Anchors, without regard to ASCII case.
#[derive(Debug)]
pub(super) struct AnchorSearch {
    list: Vec<Box<[u8]>>,
    /// For each number the group of anchors that may be there, or 0. Small enough to stay in
    /// the cache.
    table: Box<[u8; 1 << BITS]>,
    /// The anchors of all groups, one group after the other.
    places: Vec<AnchorEntry>,
    /// Where each group begins in that list, and where the last one ends.
    groups: [u16; GROUPS + 2],
}

/// How many groups there are: as many as a byte can tell apart, without 0.
const GROUPS: usize = 255;

/// An anchor, as three of its bytes stand for it.
#[derive(Debug)]
struct AnchorEntry {
    which: u16,
    len: u16,
    /// How far behind the anchor's start the three bytes are.
    offset: u16,
    /// Its first bytes in the one case, and which bits of a word they are: these tell nearly
    /// all that are none.
    head: u64,
    mask: u64,
}

impl AnchorSearch {
    /// Anchors of three bytes or more, in lower case. Shorter ones would be everywhere; they
    /// are never found.
    pub(super) fn new<'a>(anchors: impl Iterator<Item = &'a str>) -> AnchorSearch {
        let list: Vec<Box<[u8]>> = anchors.map(|anchor| anchor.as_bytes().into()).collect();
        let mut table = Box::new([0; 1 << BITS]);
        let mut grouped: Vec<(u8, AnchorEntry)> = Vec::with_capacity(list.len());
        let mut count = 0;
        let common = common_threes();
        for (which, anchor) in list.iter().enumerate() {
            let Some((offset, number)) = rarest(anchor, &common) else {
                continue;
            };
            let group = &mut table[number];
            if *group == 0 {
                *group = (count % GROUPS + 1) as u8;
                count += 1;
            }
            let (mut head, mut mask) = ([0; 8], [0; 8]);
            for (at, byte) in anchor.iter().take(8).enumerate() {
                (head[at], mask[at]) = (byte | BOTH_CASES as u8, u8::MAX);
            }
            let place = AnchorEntry {
                which: which as u16,
                len: anchor.len() as u16,
                offset: offset as u16,
                head: u64::from_le_bytes(head),
                mask: u64::from_le_bytes(mask),
            };
            grouped.push((*group, place));
        }
        grouped.sort_by_key(|(group, _)| *group);
        let below = |group: usize| grouped.partition_point(|(own, _)| usize::from(*own) < group);
        AnchorSearch {
            groups: std::array::from_fn(|group| below(group) as u16),
            places: grouped.into_iter().map(|(_, place)| place).collect(),
            list,
            table,
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
                for step in 0..6 {
                    let group = look(step);
                    if group != 0 {
                        self.compare(group, bytes, at + step as usize, &mut call);
                    }
                }
            }
            at += 6;
        }
        for (step, three) in bytes[at..].array_windows().enumerate() {
            let group = self.table[number_of(three)];
            if group != 0 {
                self.compare(group, bytes, at + step, &mut call);
            }
        }
    }

    /// Compares the anchors of a group, whose three bytes may be here.
    fn compare(
        &self,
        group: u8,
        bytes: &[u8],
        at: usize,
        call: &mut impl FnMut(usize, usize, usize),
    ) {
        let group = usize::from(group);
        let here = usize::from(self.groups[group])..usize::from(self.groups[group + 1]);
        for place in &self.places[here] {
            let Some(start) = at.checked_sub(usize::from(place.offset)) else {
                continue;
            };
            let rest = &bytes[start..];
            if let Some(word) = rest.first_chunk::<8>()
                && (u64::from_le_bytes(*word) | BOTH_CASES) & place.mask != place.head
            {
                continue;
            }
            let (which, len) = (usize::from(place.which), usize::from(place.len));
            let is_here = |here: &[u8]| here.eq_ignore_ascii_case(&self.list[which]);
            if rest.get(..len).is_some_and(is_here) {
                call(which, start, start + len);
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
fn rarest(anchor: &[u8], common: &HashMap<[u8; 3], u32>) -> Option<(usize, usize)> {
    let cost = |three: &[u8; 3]| match common.get(three) {
        Some(rank) => (1, *rank),
        None => (0, three.iter().map(|byte| commonness(*byte)).product()),
    };
    let threes = anchor.array_windows::<3>().enumerate();
    let (offset, three) = threes.min_by_key(|(_, three)| cost(three))?;
    Some((offset, number_of(three)))
}

/// The rank of each of [`COMMON`]. A map, because every command that prints waits for this.
fn common_threes() -> HashMap<[u8; 3], u32> {
    let threes = COMMON.as_chunks::<3>().0.iter().enumerate();
    threes.map(|(rank, three)| (*three, rank as u32)).collect()
}

/// The threes of anchors that are more than one in twenty thousand in code, prose, logs and
/// recorded sessions, one after the other, the most common ones last.
const COMMON: &[u8] = b"\
    penopeza sl ls(.auin:in(on(en(ar diu  uth(n =ve caccur us pamoduse = hubte-nkeeys_gethudacew_y_tv1.uthom/innfacnt-livficss_et-edsvisicotadedaifyck_ct_joisat\
    xt_eronise-skettiftiacceurluffabie_bel_car.0-gnaboxoffaccn_oscaskelimlabrivnvaedenatful\
    s_ece.egirs_nd:itlsanmakys_ge_erpespnpme_escoweblagntfonaceleliadanetnaroks_kehre-liops\
    itys.se_procpt_ercaidaleshiecreamairloufigs:/rogloondlve_tpshorgloe.ceci://ittflantose_\
    ray1.0lob_te_orth_loaick_loichabaps:etsato_enialocadisautctoriboryet_lai_sackettrn_tttp\
    orihttrtid_ipascurkergitboome_arkn_areroine_odleatuardecktac-rewaste_denefothrdarmernfo\
    st_biniseffe_pa_prrapspokedonfor_dexearspanchloglarpubsigermcoraliiniblorellaues: kelac\
    sysetahooe_atryle_ropdessencloostt_aronsectaitokaddapicrepriuncntimaikeyuregine_taulice\
    apptabminormin__likenailastimeeraablcoulicoketimsha_tount_se.co_inorkdecattockcesrcemap\
    arsinkordntrakes_ton_ataooknesundecothonewlibrittrefinharredre_ediantivencebleaceson_co\
    ed_tchkingenbasluelesartdinlasat_rattentoracttatigntteworcodoundatencpatmatpac_recaltra\
    erefrondeaseackplaortwitssaistendithintypesestypindnteultontsagherareasssioretatimesver\
    ---proinessiatetriturextonecomresodeforliner agestrtertioessconandenttesestionsumame";

/// How common a byte is in code and prose, roughly, from 1 to 27.
fn commonness(byte: u8) -> u32 {
    const LETTERS: &[u8] = b"zqjxkvbywgpfmucdlhrsnioate";
    let place = LETTERS.iter().position(|letter| *letter == byte);
    match place {
        Some(place) => place as u32 + 1,
        None if byte.is_ascii_digit() => 6,
        None if byte == b' ' => 27,
        None => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(anchors: &[&str], text: &str) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        let all = AnchorSearch::new(anchors.iter().copied());
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
