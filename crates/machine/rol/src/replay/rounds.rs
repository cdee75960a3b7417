//! Fresh ids for each round through recorded files.

/// How far ids move on from round to round: as far as those of one round reach.
///
/// Level-1 ids have 32 bits. They wrap within the files as in a run, and go on from round to round as if there had been no wrap. Where
/// each is the low half of the global id, as Weir writes it, it stays so.
#[derive(Clone, Debug, Default)]
pub(super) struct Rounds {
    seen: Option<Seen>,
}

/// What the ids of the events so far were.
#[derive(Clone, Debug)]
struct Seen {
    global_min: u64,
    global_max: u64,
    /// The last level-1 id, unwrapped, from that of the first event on.
    lvl1_last: i64,
    lvl1_min: i64,
    lvl1_max: i64,
    first_lvl1: u32,
    are_linked: bool,
}

impl Rounds {
    /// One more event.
    pub(super) fn add(&mut self, global_id: u64, lvl1_id: u32) {
        let is_linked = global_id as u32 == lvl1_id;
        let seen = self.seen.get_or_insert(Seen {
            global_min: global_id,
            global_max: global_id,
            lvl1_last: 0,
            lvl1_min: 0,
            lvl1_max: 0,
            first_lvl1: lvl1_id,
            are_linked: is_linked,
        });
        seen.are_linked &= is_linked;
        seen.global_min = seen.global_min.min(global_id);
        seen.global_max = seen.global_max.max(global_id);
        let last = seen.first_lvl1.wrapping_add(seen.lvl1_last as u32);
        seen.lvl1_last += i64::from(lvl1_id.wrapping_sub(last).cast_signed());
        seen.lvl1_min = seen.lvl1_min.min(seen.lvl1_last);
        seen.lvl1_max = seen.lvl1_max.max(seen.lvl1_last);
    }

    /// What is added to global ids and level-1 ids in a round, counted from 0.
    pub(super) fn advance(&self, round: u64) -> (u64, u32) {
        let Some(seen) = &self.seen else { return (0, 0) };
        let reach = (seen.global_max - seen.global_min).wrapping_add(1);
        let global = reach.wrapping_mul(round);
        if seen.are_linked {
            return (global, global as u32);
        }
        let reach = (seen.lvl1_max - seen.lvl1_min) as u64 + 1;
        (global, reach.wrapping_mul(round) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(ids: &[(u64, u32)]) -> Rounds {
        let mut rounds = Rounds::default();
        ids.iter().for_each(|&(global, lvl1)| rounds.add(global, lvl1));
        rounds
    }

    #[test]
    fn level1_ids_that_wrap_go_on_as_if_they_had_not() {
        let wrapping: Vec<_> =
            (0..10_u64).map(|i| ((1 << 32) - 4 + i, (u32::MAX - 3).wrapping_add(i as u32))).collect();
        assert_eq!(rounds(&wrapping).advance(3), (30, 30), "the low half of the global id stays it");
        let others: Vec<_> = (0..10_u64).map(|i| (100 + 2 * i, (u32::MAX - 3).wrapping_add(i as u32))).collect();
        assert_eq!(rounds(&others).advance(3), (57, 30));
        let backwards: Vec<_> = others.iter().rev().copied().collect();
        assert_eq!(rounds(&backwards).advance(1), (19, 10));
    }

    #[test]
    fn a_round_begins_as_it_was_recorded() {
        assert_eq!(rounds(&[(5, 7), (9, 8)]).advance(0), (0, 0));
        assert_eq!(rounds(&[(5, 5)]).advance(2), (2, 2), "one event moves on by one");
        assert_eq!(Rounds::default().advance(9), (0, 0));
    }
}
