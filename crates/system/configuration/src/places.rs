//! Where the keys of a configuration stand, for what is found after its text was read.

use crate::problem::{Place, Problem};
use crate::source::{Content, Node};

/// Where each key of a configuration stands.
#[derive(Clone, Debug)]
pub struct Places {
    root: Node,
}

impl Places {
    pub(crate) fn new(root: Node) -> Self {
        Self { root }
    }

    /// Whether the configuration or an override gives this dotted key.
    pub fn is_given(&self, key: &str) -> bool {
        self.root.get(key).is_some()
    }

    /// The dotted keys that are given in a table, one level deep.
    pub fn given_in(&self, table: &str) -> Vec<String> {
        match self.root.get(table).map(|node| &node.content) {
            Some(Content::Table(keys)) => keys.keys().map(|key| format!("{table}.{key}")).collect(),
            _ => Vec::new(),
        }
    }

    /// Says something of the first of `keys`; its place is that of the first one that is given.
    ///
    /// # Panics
    ///
    /// Without keys.
    pub fn problem(&self, keys: &[&str], message: String) -> Problem {
        Problem { place: place(&self.root, keys), key: keys[0].to_owned(), message }
    }
}

/// Where the first key stands that is there at all, else its table.
pub(crate) fn place(root: &Node, keys: &[&str]) -> Place {
    if let Some(node) = keys.iter().find_map(|key| root.get(key)) {
        return node.place.clone();
    }
    let table = keys[0].split('.').next().and_then(|table| root.get(table));
    table.unwrap_or(root).key_place.clone()
}
