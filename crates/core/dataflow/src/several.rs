//! Lists that mostly have one entry.

use alloc::vec::Vec;

/// One entry or more, in order. One alone needs no memory of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Several<T> {
    first: T,
    others: Vec<T>,
}

impl<T> Several<T> {
    /// A list of one.
    pub(crate) fn one(first: T) -> Self {
        Self { first, others: Vec::new() }
    }

    /// Adds an entry behind the others.
    pub(crate) fn push(&mut self, entry: T) {
        self.others.push(entry);
    }

    /// The entries, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        core::iter::once(&self.first).chain(&self.others)
    }
}

impl<T> IntoIterator for Several<T> {
    type Item = T;
    type IntoIter = core::iter::Chain<core::iter::Once<T>, alloc::vec::IntoIter<T>>;

    fn into_iter(self) -> Self::IntoIter {
        core::iter::once(self.first).chain(self.others)
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
}
