//! From the tree to typed values, such that every problem is found and not only the first.
//!
//! Each key is tried alone: it takes its place in a configuration of which all else is default. What is wrong with it is
//! then its own fault, and it is left out of the whole.

use core::fmt;
use std::collections::BTreeSet;

use serde::de::value::{MapDeserializer, SeqDeserializer, StrDeserializer};
use serde::de::{self, Deserialize, Deserializer, Expected, IntoDeserializer, Unexpected, Visitor};
use serde::forward_to_deserialize_any;

use crate::problem::{Problem, did_you_mean, nearest};
use crate::source::{Content, Node, Step};

/// The value of a tree with all bad keys left out.
pub(crate) struct Typed<T> {
    pub(crate) value: T,
    pub(crate) problems: Vec<Problem>,
    /// The keys that were left out.
    pub(crate) bad: BTreeSet<String>,
}

impl<T> Typed<T>
where
    T: for<'de> Deserialize<'de> + Default,
{
    pub(crate) fn new(root: &Node) -> Self {
        let mut typed = Self { value: T::default(), problems: Vec::new(), bad: BTreeSet::new() };
        let good = typed.good_part(root, &mut Vec::new());
        typed.value = T::deserialize(&good).expect("keys that are well alone are well together");
        typed
    }

    /// Tables are looked at key by key, lists of tables table by table.
    fn good_part(&mut self, node: &Node, path: &mut Vec<Step>) -> Node {
        let content = match &node.content {
            Content::Table(table) => {
                let good = table.iter().filter_map(|(key, child)| {
                    let good = self.good_child(Step::Key(key.clone()), child, path)?;
                    Some((key.clone(), good))
                });
                Content::Table(good.collect())
            }
            Content::Array(items) if is_list_of_tables(items) => {
                let good = items.iter().enumerate();
                Content::Array(
                    good.filter_map(|(index, item)| self.good_child(Step::Item(index), item, path)).collect(),
                )
            }
            other => other.clone(),
        };
        Node { content, ..node.clone() }
    }

    fn good_child(&mut self, step: Step, child: &Node, path: &mut Vec<Step>) -> Option<Node> {
        path.push(step);
        let good = match self.tried(child, path) {
            Ok(()) => Some(self.good_part(child, path)),
            Err(error) => {
                let key = path.iter().map(Step::to_string).collect::<Vec<_>>().join(".");
                self.problems.push(error.problem(&key, child));
                self.bad.insert(key);
                None
            }
        };
        path.pop();
        good
    }

    /// Tables and lists of tables are tried empty: what is wrong inside is found key by key.
    fn tried(&self, node: &Node, path: &[Step]) -> Result<(), ValueError> {
        let mut alone = node.clone();
        match &mut alone.content {
            Content::Table(table) => table.clear(),
            Content::Array(items) if is_list_of_tables(items) => items.clear(),
            _ => {}
        }
        T::deserialize(&alone.alone(path)).map(drop)
    }
}

fn is_list_of_tables(items: &[Node]) -> bool {
    !items.is_empty() && items.iter().all(|item| matches!(item.content, Content::Table(_)))
}

/// Why a value was refused.
#[derive(Debug)]
pub(crate) enum ValueError {
    Unfit { expected: String, found: String },
    UnknownName { found: String, names: &'static [&'static str] },
    UnknownKey { found: String, names: &'static [&'static str] },
    Other(String),
}

impl ValueError {
    fn unfit(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::Unfit { expected: in_words(&expected.to_string()), found: found(unexpected) }
    }

    fn problem(&self, key: &str, node: &Node) -> Problem {
        let place = match self {
            Self::UnknownKey { .. } => &node.key_place,
            _ => &node.place,
        };
        Problem { place: place.clone(), key: key.to_owned(), message: self.to_string() }
    }
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unfit { expected, found } => write!(f, "expected {expected}, found {found}"),
            Self::UnknownName { found, names } => {
                write!(f, "expected {}, found {found:?}{}", alternatives(names, '"'), did_you_mean(found, names))
            }
            Self::UnknownKey { found, names } => match nearest(found, names) {
                Some(name) => write!(f, "unknown key; did you mean `{name}`?"),
                None => write!(f, "unknown key; expected {}", alternatives(names, '`')),
            },
            Self::Other(message) => f.write_str(message),
        }
    }
}

impl core::error::Error for ValueError {}

impl de::Error for ValueError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::Other(message.to_string())
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::unfit(unexpected, expected)
    }

    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::unfit(unexpected, expected)
    }

    fn unknown_variant(variant: &str, names: &'static [&'static str]) -> Self {
        Self::UnknownName { found: variant.to_owned(), names }
    }

    fn unknown_field(field: &str, names: &'static [&'static str]) -> Self {
        Self::UnknownKey { found: field.to_owned(), names }
    }
}

impl<'de> Deserializer<'de> for &'de Node {
    type Error = ValueError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        match &self.content {
            Content::String(text) => visitor.visit_borrowed_str(text),
            Content::Integer(integer) => visitor.visit_i64(*integer),
            Content::Unsigned(integer) => visitor.visit_u64(*integer),
            Content::Huge(text) => Err(ValueError::unfit(Unexpected::Other(&format!("integer {text}")), &visitor)),
            Content::Float(float) => visitor.visit_f64(*float),
            Content::Boolean(boolean) => visitor.visit_bool(*boolean),
            Content::Date(text) => Err(ValueError::unfit(Unexpected::Other(&format!("date {text}")), &visitor)),
            Content::Array(items) => visitor.visit_seq(SeqDeserializer::new(items.iter())),
            Content::Table(table) => {
                visitor.visit_map(MapDeserializer::new(table.iter().map(|(key, node)| (key.as_str(), node))))
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, ValueError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        match &self.content {
            Content::String(text) => {
                let name: StrDeserializer<'_, ValueError> = text.as_str().into_deserializer();
                visitor.visit_enum(name)
            }
            _ => self.deserialize_any(OneOf { names }).map(|never| match never {}),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

impl<'de> IntoDeserializer<'de, ValueError> for &'de Node {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// Refuses everything, for what is no string where a name is due.
struct OneOf {
    names: &'static [&'static str],
}

enum Never {}

impl Visitor<'_> for OneOf {
    type Value = Never;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&alternatives(self.names, '"'))
    }
}

fn alternatives(names: &[&str], quote: char) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("{quote}{name}{quote}")).collect();
    match quoted.split_last() {
        None => "nothing".to_owned(),
        Some((only, [])) => only.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
    }
}

/// Serde's words for a type, in ours.
fn in_words(expected: &str) -> String {
    match expected {
        "u8" => format!("an integer from 0 to {}", u8::MAX),
        "u16" => format!("an integer from 0 to {}", u16::MAX),
        "u32" => format!("an integer from 0 to {}", u32::MAX),
        "u64" => "an integer from 0".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a sequence" => "a list".to_owned(),
        other => other.to_owned(),
    }
}

fn found(unexpected: Unexpected<'_>) -> String {
    match unexpected {
        Unexpected::Bool(value) => value.to_string(),
        Unexpected::Signed(value) => format!("integer {value}"),
        Unexpected::Unsigned(value) => format!("integer {value}"),
        Unexpected::Float(value) => format!("number {value:?}"),
        Unexpected::Str(value) => format!("{value:?}"),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a table".to_owned(),
        other => other.to_string(),
    }
}
