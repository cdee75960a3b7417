//! The JSON schema of the file.

use serde_json::{Value, json};

use crate::partition::Partition;
use crate::ranges::ranges;
use crate::tables::{Ef, L2pu, L2sv, Level1, Pt, Sfo};

/// The JSON schema of the file, for editors and other programs; descriptions are those of the types here.
///
/// It says what each key takes. What keys demand of each other is known to [`Partition::parse`] alone.
///
/// # Panics
///
/// Never: the schema is made of the types here.
pub fn schema() -> Value {
    let mut schema = schemars::schema_for!(Partition).to_value();
    schema["title"] = json!("Weir partition");
    schema["description"] = json!("A partition: an independent slice of a trigger and data-acquisition system.");
    for &(key, table) in REQUIRED_KEYS {
        let table = &mut schema["$defs"][table];
        table["required"] = json!([key]);
        remove_default(&mut table["properties"][key]);
    }
    for &(key, table) in DERIVED_KEYS {
        remove_default(&mut schema["$defs"][table]["properties"][key]);
    }
    schema["required"] = json!(["partition", "sfi"]);
    tidy(&mut schema);
    for (key, _, range) in ranges(&every_table()) {
        let (table, key) = key.split_once('.').expect("integer keys stand in tables");
        let table = schema["properties"][table]["$ref"].as_str().expect("a table has a type");
        let pointer = format!("{}/properties/{key}", table.trim_start_matches('#'));
        let property = schema.pointer_mut(&pointer).expect("the schema has every key");
        property["minimum"] = json!(range.start());
        property["maximum"] = json!(range.end());
    }
    schema
}

fn every_table() -> Partition {
    Partition {
        level1: Some(Level1::default()),
        l2sv: Some(L2sv::default()),
        l2pu: Some(L2pu::default()),
        ef: Some(Ef::default()),
        pt: Some(Pt::default()),
        sfo: Some(Sfo::default()),
        ..Partition::default()
    }
}

/// Keys that every file must have, with the type of their table.
const REQUIRED_KEYS: &[(&str, &str)] = &[("name", "Identity"), ("count", "Sfi")];

/// Keys whose default depends on others.
const DERIVED_KEYS: &[(&str, &str)] = &[("count", "Ros"), ("input", "Ros"), ("input", "Dfm")];

fn remove_default(property: &mut Value) {
    if let Some(property) = property.as_object_mut() {
        property.remove("default");
    }
}

/// Says the same in TOML's terms, which has no null: an optional key is absent. Defaults of whole tables (each key has
/// its own) and line breaks of our source are left out.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if members.get("default").is_some_and(|value| value.is_null() || value.is_object()) {
                members.remove("default");
            }
            if let Some(Value::Array(mut alternatives)) = members.remove("anyOf") {
                alternatives.retain(|alternative| alternative["type"] != "null");
                match alternatives.as_mut_slice() {
                    [Value::Object(only)] => members.append(only),
                    _ => drop(members.insert("anyOf".to_owned(), Value::Array(alternatives))),
                }
            }
            if let Some(types @ Value::Array(_)) = members.get_mut("type") {
                *types = types[0].take();
            }
            if let Some(Value::String(description)) = members.get_mut("description") {
                *description = description.replace('\n', " ");
            }
            members.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}
