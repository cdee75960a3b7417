//! Sets of event ids.

use std::collections::BTreeMap;

/// A set of numbers, small where they follow one another: it keeps ranges.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IdSet {
    /// First to last, neither overlapping nor touching.
    ranges: BTreeMap<u64, u64>,
}

impl IdSet {
    /// Adds a number; `false` if it is there already.
    pub fn insert(&mut self, id: u64) -> bool {
        let before = self.ranges.range(..=id).next_back().map(|(first, last)| (*first, *last));
        let first = match before {
            Some((_, last)) if last >= id => return false,
            Some((first, last)) if last + 1 == id => first,
            _ => id,
        };
        let after = id.checked_add(1).and_then(|next| self.ranges.remove(&next));
        self.ranges.insert(first, after.unwrap_or(id));
        true
    }

    /// The ranges, rising, each from its first to its last number.
    pub fn ranges(&self) -> impl ExactSizeIterator<Item = (u64, u64)> + '_ {
        self.ranges.iter().map(|(first, last)| (*first, *last))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_ends_of_the_numbers_are_numbers() {
        let mut set = IdSet::default();
        assert!(set.insert(u64::MAX) && set.insert(0) && set.insert(u64::MAX - 1));
        assert!(!set.insert(u64::MAX) && !set.insert(0));
        assert_eq!(set.ranges().collect::<Vec<_>>(), [(0, 0), (u64::MAX - 1, u64::MAX)]);
    }

    proptest! {
        #[test]
        fn it_is_a_set_of_ranges_that_do_not_touch(ids in proptest::collection::vec(0..40_u64, 0..60)) {
            let (mut set, mut model) = (IdSet::default(), BTreeSet::new());
            for id in ids {
                prop_assert_eq!(set.insert(id), model.insert(id));
            }
            let all: Vec<u64> = set.ranges().flat_map(|(first, last)| first..=last).collect();
            prop_assert_eq!(all, model.into_iter().collect::<Vec<_>>());
            let ranges: Vec<_> = set.ranges().collect();
            prop_assert!(ranges.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0));
        }
    }
}
