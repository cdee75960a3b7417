//! Lists that mostly have one entry.

use alloc::vec::Vec;

/// Entries in order. One alone needs no memory of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Several<T> {
    /// There is one where there are others.
    first: Option<T>,
    others: Vec<T>,
}

impl<T> Several<T> {
    /// A list of one.
    pub fn one(first: T) -> Self {
        Self { first: Some(first), others: Vec::new() }
    }

    /// Adds an entry behind the others.
    pub fn push(&mut self, entry: T) {
        match &mut self.first {
            Some(_) => self.others.push(entry),
            first => *first = Some(entry),
        }
    }

    /// Takes out the entries that are not to stay.
    pub fn retain(&mut self, mut stays: impl FnMut(&T) -> bool) {
        self.others.retain(&mut stays);
        if !self.first.as_ref().is_some_and(stays) {
            self.first = (!self.others.is_empty()).then(|| self.others.remove(0));
        }
    }

    /// The entries, in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.first.iter().chain(&self.others)
    }
}

impl<T> IntoIterator for Several<T> {
    type Item = T;
    type IntoIter = core::iter::Chain<core::option::IntoIter<T>, alloc::vec::IntoIter<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_in_order() {
        let mut several = Several::one('a');
        several.push('b');
        several.push('c');
        assert_eq!(several.iter().copied().collect::<Vec<_>>(), ['a', 'b', 'c']);
        assert_eq!(several.into_iter().collect::<Vec<_>>(), ['a', 'b', 'c']);
    }

    #[test]
    fn whoever_stays_keeps_the_order_and_more_may_come() {
        let left = |goes: &str| {
            let mut several = Several::one('a');
            "bcd".chars().for_each(|entry| several.push(entry));
            several.retain(|entry| !goes.contains(*entry));
            several.push('e');
            several.into_iter().collect::<alloc::string::String>()
        };
        assert_eq!(["", "a", "c", "ab", "abcd"].map(left), ["abcde", "bcde", "abde", "cde", "e"]);
    }
}
