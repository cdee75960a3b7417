//! Things that are on their way, by small number.

use std::ops::{Index, IndexMut};

/// A vector whose places are used again, the one freed last first.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    places: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    pub(crate) fn insert(&mut self, item: T) -> u32 {
        if let Some(index) = self.free.pop() {
            self.places[index as usize] = Some(item);
            return index;
        }
        self.places.push(Some(item));
        u32::try_from(self.places.len() - 1).expect("fewer than 2³² things are on their way")
    }

    pub(crate) fn remove(&mut self, index: u32) -> T {
        self.free.push(index);
        self.places[index as usize].take().expect("it is taken out once")
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.places.len() == self.free.len()
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;

    fn index(&self, index: u32) -> &T {
        self.places[index as usize].as_ref().expect("it is there")
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, index: u32) -> &mut T {
        self.places[index as usize].as_mut().expect("it is there")
    }
}
