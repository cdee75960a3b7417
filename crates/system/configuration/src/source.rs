//! The text of a configuration with its overrides, as a tree in which every key and value knows its place.

use core::fmt;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::problem::{Place, Problem};

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) key_place: Place,
    pub(crate) place: Place,
    pub(crate) content: Content,
}

/// What a node holds.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    String(String),
    Integer(i64),
    /// An integer beyond those of [`Content::Integer`].
    Unsigned(u64),
    /// An integer beyond 64 bits, as written.
    Huge(String),
    Float(f64),
    Boolean(bool),
    /// A date or a time of day, which no key takes.
    Date(String),
    Array(Vec<Node>),
    Table(BTreeMap<String, Node>),
}

/// A step from a node to one in it.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Into a table.
    Key(String),
    /// Into a list; items count from 0.
    Item(usize),
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) => f.write_str(key),
            Self::Item(index) => write!(f, "{index}"),
        }
    }
}

impl Node {
    /// The table of a TOML text, or everything that is wrong with its syntax.
    pub(crate) fn parse(name: &str, text: &str) -> Result<Self, Vec<Problem>> {
        let places = Places::new(name, text);
        let (table, errors) = DeTable::parse_recoverable(text);
        if errors.is_empty() {
            return Ok(places.table(table.get_ref(), Place::File { name: name.to_owned() }));
        }
        let problem = |error: &toml::de::Error| Problem {
            place: error.span().map_or_else(|| Place::File { name: name.to_owned() }, |span| places.at(span.start)),
            key: String::new(),
            message: format!("not valid TOML: {}", words(error, text)),
        };
        Err(errors.iter().map(problem).collect())
    }

    /// What stands in for a text that is not TOML.
    pub(crate) fn empty(name: &str) -> Self {
        let place = Place::File { name: name.to_owned() };
        Self { key_place: place.clone(), place, content: Content::Table(BTreeMap::new()) }
    }

    /// The node of a dotted path of keys; an item of an array is named by its number, from 0.
    pub(crate) fn get(&self, path: &str) -> Option<&Self> {
        path.split('.').try_fold(self, |node, key| match &node.content {
            Content::Table(table) => table.get(key),
            Content::Array(items) => items.get(key.parse::<usize>().ok()?),
            _ => None,
        })
    }

    /// Applies one override `key=value`.
    pub(crate) fn set(&mut self, text: &str) -> Result<(), Problem> {
        let (key, value) = text.split_once('=').unwrap_or((text, ""));
        let key = key.trim();
        let shown = if key.is_empty() { text } else { key };
        let place = Place::Override { key: shown.to_owned() };
        let problem =
            |message: &str| Problem { place: place.clone(), key: shown.to_owned(), message: message.to_owned() };
        if !text.contains('=') {
            return Err(problem("expected key=value, such as sfi.count=2, found no `=`"));
        }
        if key.split('.').count() > KEY_PARTS_MAX || key.split('.').any(|part| !is_bare_key(part)) {
            return Err(problem(
                "expected a key such as sfi.count before the `=`, of letters, digits, `_` and `-`, parted by dots",
            ));
        }
        let mut node = self;
        for part in key.split('.') {
            node = node.child(part, &place).map_err(|message| problem(&message))?;
        }
        *node = overriding_value(value.trim(), &place);
        Ok(())
    }

    /// Puts the keys of another text's tables in the place of ours.
    pub(crate) fn overlay(&mut self, other: Self) {
        let Content::Table(tables) = other.content else { unreachable!("a TOML text is a table") };
        for (name, node) in tables {
            match node.content {
                Content::Table(keys) => self.table_of(&name, &node.place).extend(keys),
                _ => _ = self.table_mut().insert(name, node),
            }
        }
    }

    /// Adds a key to a table of this one, unless it is there.
    pub(crate) fn add(&mut self, table: &str, key: &str, node: Self) {
        self.table_of(table, &node.place).entry(key.to_owned()).or_insert(node);
    }

    /// Puts the items of a list before those of a table's key; what is no list stays, if there is anything already.
    pub(crate) fn prepend(&mut self, table: &str, key: &str, mut node: Self) {
        let there = self.table_of(table, &node.place).entry(key.to_owned());
        match there {
            Entry::Vacant(free) => _ = free.insert(node),
            Entry::Occupied(mut there) => {
                if let (Content::Array(first), Content::Array(then)) = (&mut node.content, &mut there.get_mut().content)
                {
                    first.append(then);
                    core::mem::swap(first, then);
                }
            }
        }
    }

    fn table_of(&mut self, key: &str, place: &Place) -> &mut BTreeMap<String, Self> {
        let empty =
            || Self { key_place: place.clone(), place: place.clone(), content: Content::Table(BTreeMap::new()) };
        self.table_mut().entry(key.to_owned()).or_insert_with(empty).table_mut()
    }

    /// This node alone at the end of a path of tables and lists.
    pub(crate) fn alone(self, path: &[Step]) -> Self {
        path.iter().rev().fold(self, |node, step| Self {
            key_place: node.key_place.clone(),
            place: node.place.clone(),
            content: match step {
                Step::Item(_) => Content::Array(vec![node]),
                Step::Key(key) => Content::Table(BTreeMap::from([(key.clone(), node)])),
            },
        })
    }

    /// The child of this name, made a table if there is none; an item of a list is named by its number, from 0.
    fn child(&mut self, part: &str, place: &Place) -> Result<&mut Self, String> {
        if matches!(&self.content, Content::Array(items) if !items.is_empty()) {
            let Content::Array(items) = &mut self.content else { unreachable!("a list, as matched above") };
            let last = items.len() - 1;
            let item = part.parse().ok().and_then(|index: usize| items.get_mut(index));
            return item
                .ok_or_else(|| format!("expected the number of an item of the list, 0 to {last}, found `{part}`"));
        }
        let child = self.table_mut().entry(part.to_owned()).or_insert_with(|| Self {
            key_place: place.clone(),
            place: place.clone(),
            content: Content::Table(BTreeMap::new()),
        });
        Ok(child)
    }

    fn table_mut(&mut self) -> &mut BTreeMap<String, Self> {
        if !matches!(self.content, Content::Table(_)) {
            self.content = Content::Table(BTreeMap::new());
        }
        match &mut self.content {
            Content::Table(table) => table,
            _ => unreachable!("it was made a table above"),
        }
    }
}

/// What the parser says of an error; it does not name a key that is there twice.
fn words(error: &toml::de::Error, text: &str) -> String {
    let message = error.message().replace('\n', ", ");
    let named = error.span().and_then(|span| text.get(span)).filter(|_| message == "duplicate key");
    named.map_or_else(|| message.clone(), |key| format!("{message} `{}`: expected each key once", key.trim()))
}

/// Deeper than any key there is, and shallow enough to recurse.
const KEY_PARTS_MAX: usize = 16;

fn is_bare_key(part: &str) -> bool {
    !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// A TOML value if it is one, else a bare string.
fn overriding_value(text: &str, place: &Place) -> Node {
    let content = match DeValue::parse(text) {
        Ok(value) => content(value.get_ref(), &|_| place.clone()),
        Err(_) => Content::String(text.to_owned()),
    };
    Node { key_place: place.clone(), place: place.clone(), content }
}

/// Finds lines and columns of a text.
struct Places<'a> {
    name: &'a str,
    text: &'a str,
    /// Where each line starts.
    starts: Vec<usize>,
}

impl<'a> Places<'a> {
    fn new(name: &'a str, text: &'a str) -> Self {
        let starts = core::iter::once(0).chain(text.match_indices('\n').map(|(index, _)| index + 1)).collect();
        Self { name, text, starts }
    }

    fn at(&self, offset: usize) -> Place {
        let line = self.starts.partition_point(|&start| start <= offset);
        let start = self.starts[line - 1];
        let before = self.text.get(start..offset).unwrap_or_default();
        Place::At { name: self.name.to_owned(), line, column: before.chars().count() + 1 }
    }

    fn table(&self, table: &DeTable<'_>, place: Place) -> Node {
        Node { key_place: place.clone(), place, content: Content::Table(nodes(table, &|offset| self.at(offset))) }
    }
}

fn nodes(table: &DeTable<'_>, at: &dyn Fn(usize) -> Place) -> BTreeMap<String, Node> {
    table
        .iter()
        .map(|(key, value)| {
            let node = Node {
                key_place: at(key.span().start),
                place: at(value.span().start),
                content: content(value.get_ref(), at),
            };
            (key.get_ref().to_string(), node)
        })
        .collect()
}

fn content(value: &DeValue<'_>, at: &dyn Fn(usize) -> Place) -> Content {
    match value {
        DeValue::String(text) => Content::String(text.to_string()),
        DeValue::Integer(integer) => {
            let (digits, radix) = (integer.as_str(), integer.radix());
            i64::from_str_radix(digits, radix)
                .map(Content::Integer)
                .or_else(|_| u64::from_str_radix(digits, radix).map(Content::Unsigned))
                .unwrap_or_else(|_| Content::Huge(integer.to_string()))
        }
        DeValue::Float(float) => Content::Float(float.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(boolean) => Content::Boolean(*boolean),
        DeValue::Datetime(date) => Content::Date(date.to_string()),
        DeValue::Array(array) => Content::Array(
            array
                .iter()
                .map(|item: &Spanned<DeValue<'_>>| {
                    let place = at(item.span().start);
                    Node { key_place: place.clone(), place, content: content(item.get_ref(), at) }
                })
                .collect(),
        ),
        DeValue::Table(table) => Content::Table(nodes(table, at)),
    }
}
