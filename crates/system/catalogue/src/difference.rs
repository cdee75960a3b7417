//! What differs between the configurations of two runs.

use std::collections::BTreeMap;

use serde::Serialize;

/// A key with different values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Such as `ros.count`; of lists of tables with the place in the list, such as `source.1.name`.
    pub key: String,
    /// Its value in the first run, as TOML; none if it is not there.
    pub first: Option<String>,
    /// Its value in the second run.
    pub second: Option<String>,
}

/// The keys that differ, in alphabetical order.
///
/// # Errors
/// One text is not TOML.
pub fn differences(first: &str, second: &str) -> Result<Vec<Difference>, toml::de::Error> {
    let (first, second) = (keys(first)?, keys(second)?);
    let names: std::collections::BTreeSet<&String> = first.keys().chain(second.keys()).collect();
    let differs = |name: &&String| first.get(*name) != second.get(*name);
    let difference = |name: &String| Difference {
        key: name.clone(),
        first: first.get(name).cloned(),
        second: second.get(name).cloned(),
    };
    Ok(names.into_iter().filter(differs).map(difference).collect())
}

fn keys(text: &str) -> Result<BTreeMap<String, String>, toml::de::Error> {
    let mut keys = BTreeMap::new();
    flatten(&toml::Value::Table(toml::from_str(text)?), "", &mut keys);
    Ok(keys)
}

fn flatten(value: &toml::Value, name: &str, keys: &mut BTreeMap<String, String>) {
    let inner = |key: &str| if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") };
    match value {
        toml::Value::Table(table) => table.iter().for_each(|(key, value)| flatten(value, &inner(key), keys)),
        toml::Value::Array(list) if list.iter().any(toml::Value::is_table) => {
            list.iter().enumerate().for_each(|(index, value)| flatten(value, &inner(&index.to_string()), keys));
        }
        value => _ = keys.insert(name.to_owned(), value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_differ_or_are_in_one_alone_are_named() {
        let first = "a = 1\n[b]\nc = \"x\"\nd = [1, 2]\n[[e]]\nf = 1\n[[e]]\nf = 2\n";
        let second = "a = 1\n[b]\nc = \"y\"\nd = [1, 2]\ng = true\n[[e]]\nf = 1\n";
        let found = differences(first, second).unwrap();
        let words = |d: &Difference| (d.key.clone(), d.first.clone(), d.second.clone());
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            found.iter().map(words).collect::<Vec<_>>(),
            [
                ("b.c".to_owned(), some("\"x\""), some("\"y\"")),
                ("b.g".to_owned(), None, some("true")),
                ("e.1.f".to_owned(), some("2"), None),
            ]
        );
        assert_eq!(differences(first, first).unwrap(), []);
        assert!(differences("a", first).is_err());
    }
}
