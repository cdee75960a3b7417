//! The configuration that is in force, and another one in its place.

use std::path::Path;

use catalogue::differences;
use configuration::Partition;
use serde_json::Value;

/// A configuration that was checked.
#[derive(Clone, Debug)]
pub struct Configured {
    /// What it describes.
    pub partition: Partition,
    /// What the check has found, which forbids no run.
    pub warnings: Vec<String>,
}

/// Reads and checks the configuration in a file, as `weir check` does; without one, that in the file that the service was started with.
pub struct Reader(Box<Read>);

type Read = dyn Fn(Option<&Path>) -> Result<Configured, String> + Send + Sync;

impl Reader {
    /// By this function, which says all that is wrong.
    pub fn by(read: impl Fn(Option<&Path>) -> Result<Configured, String> + Send + Sync + 'static) -> Self {
        Self(Box::new(read))
    }

    pub(crate) fn read(&self, file: Option<&Path>) -> Result<Configured, String> {
        (self.0)(file)
    }
}

impl core::fmt::Debug for Reader {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Reader(…)")
    }
}

/// The first key that cannot change while a service lives: it has the files, the connections and the name that these say.
pub(crate) fn fixed(before: &Partition, after: &Partition) -> Option<String> {
    if before.partition.name != after.partition.name {
        return Some("partition.name".to_owned());
    }
    let table = |partition: &Partition| serde_json::to_value(&partition.control).expect("keys and values are JSON");
    let (one, other) = (table(before), table(after));
    let keys =
        |table: &Value| table.as_object().into_iter().flat_map(|table| table.keys().cloned()).collect::<Vec<_>>();
    let key = keys(&one).into_iter().chain(keys(&other)).find(|key| one.get(key) != other.get(key));
    let of_hosts = (before.host.is_empty() != after.host.is_empty()).then(|| "host".to_owned());
    key.map(|key| format!("control.{key}")).or(of_hosts)
}

/// What differs, in words.
pub(crate) fn changes(before: &Partition, after: &Partition) -> String {
    let [before, after] = [before, after].map(|partition| partition.without_secrets().to_toml());
    let found = differences(&before, &after).unwrap_or_default();
    let none = || "nothing".to_owned();
    let value = |value: &Option<String>| value.clone().unwrap_or_else(none);
    let told =
        found.iter().take(CHANGES_TOLD).map(|d| format!("{} {} -> {}", d.key, value(&d.first), value(&d.second)));
    let told = told.collect::<Vec<_>>().join(", ");
    match found.len() {
        0 => "nothing differs".to_owned(),
        found if found > CHANGES_TOLD => format!("{told}, and {} more", found - CHANGES_TOLD),
        _ => told,
    }
}

const CHANGES_TOLD: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn partition(more: &[&str]) -> Partition {
        let more: Vec<String> = more.iter().map(|&text| text.to_owned()).collect();
        Partition::parse("p", "partition.name = \"p\"\nros.count = 1\nsfi.count = 1\n", &more).unwrap()
    }

    #[test]
    fn what_the_service_itself_has_stays() {
        let fixed = |more: &[&str]| fixed(&partition(&[]), &partition(more));
        assert_eq!(fixed(&["ros.count=2", "run.events=7"]), None);
        assert_eq!(fixed(&["partition.name=\"q\""]).as_deref(), Some("partition.name"));
        assert_eq!(fixed(&["control.catalogue=\"other.sqlite\""]).as_deref(), Some("control.catalogue"));
        assert_eq!(fixed(&["host=[{name=\"a\"}]"]).as_deref(), Some("host"));
    }

    #[test]
    fn what_differs_is_told_in_words() {
        assert_eq!(changes(&partition(&[]), &partition(&[])), "nothing differs");
        assert_eq!(changes(&partition(&[]), &partition(&["ros.count=2"])), "ros.count 1 -> 2");
    }
}
