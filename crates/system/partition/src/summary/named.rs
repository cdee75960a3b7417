//! Counters as the summary tells them: each by its name.

use std::collections::BTreeMap;
use std::ops::Deref;

use dataflow::report::Counters;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Counters whose names are keys, in the order in which they are declared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Named<C>(pub C);

impl<C> Deref for Named<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.0
    }
}

impl<C: Counters> Serialize for Named<C> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let names = C::COUNTERS.iter().map(|counter| counter.name);
        serializer.collect_map(names.zip(self.0.to_values()))
    }
}

impl<'de, C: Counters> Deserialize<'de> for Named<C> {
    /// A key that an older summary does not have counts 0.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let counts = BTreeMap::<String, u64>::deserialize(deserializer)?;
        let count = |name: &str| counts.get(name).copied().unwrap_or(0);
        let values: Vec<u64> = C::COUNTERS.iter().map(|counter| count(counter.name)).collect();
        Ok(Self(C::from_values(&values)))
    }
}
