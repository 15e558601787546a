//! A list that is nearly always short: the lines of a message.

use std::hash::{Hash, Hasher};
use std::ops::{Deref, DerefMut};

use super::Index;

/// Numbers in order; up to three of them take no heap.
#[derive(Clone, Debug)]
pub struct Few(Held);

#[derive(Clone, Debug)]
enum Held {
    Near(u8, [Index; NEAR]),
    Far(Vec<Index>),
}

const NEAR: usize = 3;

impl Few {
    /// Adds a number at the end.
    pub fn push(&mut self, at: Index) {
        match &mut self.0 {
            Held::Near(count, near) => match near.get_mut(usize::from(*count)) {
                Some(place) => {
                    *place = at;
                    *count += 1;
                }
                None => {
                    let mut far = near.to_vec();
                    far.push(at);
                    self.0 = Held::Far(far);
                }
            },
            Held::Far(far) => far.push(at),
        }
    }
}

impl Default for Few {
    fn default() -> Few {
        Few(Held::Near(0, [0; NEAR]))
    }
}

impl Deref for Few {
    type Target = [Index];

    fn deref(&self) -> &[Index] {
        match &self.0 {
            Held::Near(count, near) => &near[..usize::from(*count)],
            Held::Far(far) => far,
        }
    }
}

impl DerefMut for Few {
    fn deref_mut(&mut self) -> &mut [Index] {
        match &mut self.0 {
            Held::Near(count, near) => &mut near[..usize::from(*count)],
            Held::Far(far) => far,
        }
    }
}

impl PartialEq for Few {
    fn eq(&self, other: &Few) -> bool {
        **self == **other
    }
}

impl Eq for Few {}

impl Hash for Few {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl<'a> IntoIterator for &'a Few {
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
        let mut few = Few::default();
        for count in 0..10 {
            assert_eq!(few.to_vec(), (0..count).collect::<Vec<_>>());
            few.push(count);
        }
        few[9] = 7;
        assert_eq!(few.last(), Some(&7));
        assert!(size_of::<Few>() <= 24);
    }
}
