//! The events that a read-out system knows to be cleared.

use std::collections::BTreeSet;

use base::ids::EventId;
use dataflow::readout::cleared_ids::ClearedIds;
use proptest::prelude::*;

proptest! {
    #[test]
    fn behaves_as_an_ordered_set_of_limited_size(
        capacity in 0usize..20,
        stride in prop::sample::select(&[1_u64, 5, 100]),
        operations in prop::collection::vec((0..8u8, 0x3fff_fff0_u64..0x4000_0010), 0..200),
    ) {
        let mut cleared = ClearedIds::new(capacity);
        let mut model = BTreeSet::new();
        for (choice, number) in operations {
            let id = EventId(number * stride);
            match choice {
                0..=5 => {
                    if model.len() < capacity {
                        model.insert(id);
                    }
                    cleared.insert(id);
                }
                6 => {}
                _ => {
                    model = model.split_off(&id);
                    cleared.prune_older_than(id);
                }
            }
            cleared.check();
            prop_assert_eq!(cleared.contains(id), model.contains(&id));
        }
        for id in (0x3fff_fff0..0x4000_0010).map(|number| EventId(number * stride)) {
            prop_assert_eq!(cleared.contains(id), model.contains(&id));
        }
    }
}
