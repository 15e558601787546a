//! A list that is nearly always short: the lines of a message.

use std::hash::{Hash, Hasher};
use std::ops::{Deref, DerefMut};

use super::Index;

/// Numbers in order; up to three of them take no heap.
#[derive(Clone, Debug)]
pub struct ShortIndexList(IndexListRepr);

#[derive(Clone, Debug)]
enum IndexListRepr {
    Near(u8, [Index; NEAR]),
    Far(Vec<Index>),
}

const NEAR: usize = 3;

impl ShortIndexList {
    /// Adds a number at the end.
    pub fn push(&mut self, at: Index) {
        match &mut self.0 {
            IndexListRepr::Near(count, near) => match near.get_mut(usize::from(*count)) {
                Some(place) => {
                    *place = at;
                    *count += 1;
                }
                None => {
                    let mut far = near.to_vec();
                    far.push(at);
                    self.0 = IndexListRepr::Far(far);
                }
            },
            IndexListRepr::Far(far) => far.push(at),
        }
    }
}

impl Default for ShortIndexList {
    fn default() -> ShortIndexList {
        ShortIndexList(IndexListRepr::Near(0, [0; NEAR]))
    }
}

impl Deref for ShortIndexList {
    type Target = [Index];

    fn deref(&self) -> &[Index] {
        match &self.0 {
            IndexListRepr::Near(count, near) => &near[..usize::from(*count)],
            IndexListRepr::Far(far) => far,
        }
    }
}

impl DerefMut for ShortIndexList {
    fn deref_mut(&mut self) -> &mut [Index] {
        match &mut self.0 {
            IndexListRepr::Near(count, near) => &mut near[..usize::from(*count)],
            IndexListRepr::Far(far) => far,
        }
    }
}

impl PartialEq for ShortIndexList {
    fn eq(&self, other: &ShortIndexList) -> bool {
        **self == **other
    }
}

impl Eq for ShortIndexList {}

impl Hash for ShortIndexList {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl<'a> IntoIterator for &'a ShortIndexList {
    type Item = &'a Index;
    type IntoIter = std::slice::Iter<'a, Index>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_in_order_however_many_there_are() {
        let mut few = ShortIndexList::default();
        for count in 0..10 {
            assert_eq!(few.to_vec(), (0..count).collect::<Vec<_>>());
            few.push(count);
        }
        few[9] = 7;
        assert_eq!(few.last(), Some(&7));
        assert!(size_of::<ShortIndexList>() <= 24);
    }
}
