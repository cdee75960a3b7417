//! In what two configurations differ.

use configuration::{Partition, Run};

/// The first key of two configurations, beside those of a run, that has different values.
pub(crate) fn first_difference(one: &Partition, other: &Partition) -> Option<String> {
    let tables = |partition: &Partition| {
        let run = Run::default();
        serde_json::to_value(Partition { run, ..partition.clone() })
            .expect("a configuration is made of keys and values")
    };
    differing(&tables(one), &tables(other), String::new())
}

fn differing(one: &serde_json::Value, other: &serde_json::Value, key: String) -> Option<String> {
    let (Some(ones), Some(others)) = (one.as_object(), other.as_object()) else { return (one != other).then_some(key) };
    let names = ones.keys().chain(others.keys().filter(|name| !ones.contains_key(*name)));
    let value = |of: &serde_json::Map<String, serde_json::Value>, name: &str| of.get(name).cloned().unwrap_or_default();
    let inner = |name: &String| if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
    names.into_iter().find_map(|name| differing(&value(ones, name), &value(others, name), inner(name)))
}
