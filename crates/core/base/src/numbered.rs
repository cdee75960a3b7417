//! What is in hand under a number that others answer with.

use alloc::vec::Vec;

/// Things by number, each found at once: the low bits of its number are its place.
///
/// Numbers rise, leaving out those whose place is taken, and 0. So none comes again before all others have.
#[derive(Debug)]
pub struct Numbered<T> {
    /// A power of two, at least twice as many as there are things.
    places: Vec<Option<(u32, T)>>,
    len: usize,
    last: u32,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self { places: Vec::new(), len: 0, last: 0 }
    }
}

impl<T> Numbered<T> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of the next thing.
    pub fn next_number(&mut self) -> u32 {
        if 2 * (self.len + 1) > self.places.len() {
            self.grow();
        }
        loop {
            self.last = self.last.wrapping_add(1);
            if self.last != 0 && self.places[self.place(self.last)].is_none() {
                return self.last;
            }
        }
    }

    /// Takes a thing in.
    ///
    /// # Panics
    /// If the number is not the last that was given.
    pub fn insert(&mut self, number: u32, thing: T) {
        assert!(number == self.last && !self.contains(number), "the number that was given for it");
        let place = self.place(number);
        self.places[place] = Some((number, thing));
        self.len += 1;
    }

    /// Whether there is one of this number.
    pub fn contains(&self, number: u32) -> bool {
        let place = self.places.get(self.place(number));
        place.and_then(Option::as_ref).is_some_and(|(of, _)| *of == number)
    }

    /// The one of this number.
    pub fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        let place = self.place(number);
        let (of, thing) = self.places.get_mut(place)?.as_mut()?;
        (*of == number).then_some(thing)
    }

    /// Takes out the one of this number.
    pub fn remove(&mut self, number: u32) -> Option<T> {
        let place = self.place(number);
        let (_, thing) = self.places.get_mut(place)?.take_if(|(of, _)| *of == number)?;
        self.len -= 1;
        Some(thing)
    }

    /// Drops those that are not to be kept.
    pub fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        self.places.iter_mut().for_each(|place| _ = place.take_if(|(_, thing)| !keep(thing)));
        self.len = self.iter().count();
    }

    /// Drops all.
    pub fn clear(&mut self) {
        self.retain(|_| false);
    }

    /// All of them, in the order of their places.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.places.iter().flatten().map(|(number, thing)| (*number, thing))
    }

    /// All of them, in the order of their places.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        self.places.iter_mut().flatten().map(|(number, thing)| (*number, thing))
    }

    fn place(&self, number: u32) -> usize {
        number as usize & self.places.len().wrapping_sub(1)
    }

    fn grow(&mut self) {
        let len = (2 * self.places.len()).max(PLACES_MIN);
        let before = core::mem::replace(&mut self.places, (0..len).map(|_| None).collect());
        for (number, thing) in before.into_iter().flatten() {
            let place = self.place(number);
            self.places[place] = Some((number, thing));
        }
    }
}

const PLACES_MIN: usize = 64;

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use super::*;
    use crate::random::Random;

    #[test]
    fn it_holds_what_a_map_holds_also_where_some_stay_for_long() {
        let (mut random, mut numbered, mut map) = (Random::new(3), Numbered::default(), BTreeMap::new());
        numbered.last = u32::MAX - 5_000;
        for turn in 0..20_000_u32 {
            let number = numbered.next_number();
            assert!(number != 0 && !map.contains_key(&number));
            numbered.insert(number, turn);
            map.insert(number, turn);
            while map.len() as u64 > random.below(300) {
                let some = random.below(map.len() as u64) as usize;
                let (&number, _) = map.iter().nth(some).unwrap();
                if turn.is_multiple_of(64) {
                    break;
                }
                assert_eq!(numbered.get_mut(number).copied(), map.get(&number).copied());
                assert_eq!(numbered.remove(number), map.remove(&number));
                assert!(!numbered.contains(number) && numbered.remove(number).is_none());
            }
            assert_eq!(numbered.len(), map.len());
        }
        assert!(numbered.places.len() <= 2048, "{}", numbered.places.len());
        numbered.retain(|turn| turn.is_multiple_of(2));
        map.retain(|_, turn| turn.is_multiple_of(2));
        let mut left: Vec<(u32, u32)> = numbered.iter().map(|(number, turn)| (number, *turn)).collect();
        left.sort_unstable();
        assert_eq!(left, map.into_iter().collect::<Vec<_>>());
        numbered.clear();
        assert_eq!((numbered.len(), numbered.iter_mut().count()), (0, 0));
    }
}
