//! The schema names and describes every key.

use std::collections::BTreeSet;

use configuration::{Partition, schema};
use serde_json::Value;

/// A configuration in which every key is given.
const EVERYTHING: &[&str] = &[
    "run.events=1",
    "run.duration=1 s",
    "run.size=1 GB",
    "input.detector=detector.json",
    "level1.rate=1 Hz",
    "level1.dead_time={}",
    "roc={}",
    "dfm.building=push",
    "ros.ports=[\"127.0.0.2\"]",
    "ros.push={link_per_second=\"1 GB\",window=\"1 MB\"}",
    "level1.profile=[{from=\"1 s\",rate=\"1 Hz\"}]",
    "menu={chain=[{name=\"a\",item=\"L1_A\"}]}",
    "pt={}",
    "l2sv={}",
    "l2pu={}",
    "ef={}",
    "sfo={}",
    "stream=[{name=\"a\"}]",
    "transport.socket_buffer=1 MB",
    "transport.congestion=reno",
    "transport.udp.datagram=9 kB",
    "transport.udp.window=1 MB",
    "transport.udp.authenticate=header",
    "transport.udp.checksum=true",
    "transport.udp.interface=127.0.0.1",
    "transport.udp.window=1 MB",
    "simulation.disk_per_s=1 GB",
    "simulation.driver={shm={},udp={}}",
    "processes.cores={ros=[0]}",
    "processes.scheduling=real-time",
    "control.catalogue=runs.sqlite",
    "control.references=references.json",
    "control.bus=nats://127.0.0.1:4222",
    "control.bus_login=bus.login",
    "control.otlp=https://127.0.0.1:4318",
    "control.otlp_certificate=authorities.pem",
    "control.otlp_interval=5 s",
    "control.otlp_headers=collector.headers",
    "control.otlp_compression=gzip",
    "sampling.samples=5",
];

/// Keys that exclude those of [`EVERYTHING`].
const OTHERS: &[&str] = &[
    "input.mix",
    "input.pad_to",
    "input.prescales",
    "level1.file",
    "level1.processor",
    "level1.leader",
    "level1.slice",
    "level1.window",
    "level1.before",
    "level1.after",
    "level1.grace",
    "source",
    "host",
    "run.number",
    "dfm.rate",
    "sfo.stream",
    "ros.fragment.mean",
    "ros.fragment.sigma",
    "ros.fragment.sizes",
    "ros.fragment.weights",
    "transport.push",
    "transport.pushed",
];

#[test]
fn the_schema_has_exactly_the_keys_of_the_types() {
    let overrides: Vec<_> = EVERYTHING.iter().map(|text| (*text).to_owned()).collect();
    let text = "[partition]\nname = \"p\"\nkey = \"k\"\n[ros]\ncount = 4\n[sfi]\ncount = 2\n";
    let partition = Partition::parse("p.toml", text, &overrides).unwrap();
    let written: Value = toml::from_str(&partition.to_toml()).unwrap();
    let mut of_types: BTreeSet<String> = OTHERS.iter().map(|key| (*key).to_owned()).collect();
    keys_of_value(&written, "", &mut of_types);
    let mut of_schema = BTreeSet::new();
    let schema = schema();
    keys_of_schema(&schema, &schema, "", &mut of_schema);
    assert_eq!(of_schema, of_types);
}

#[test]
fn the_schema_is_titled_strict_and_says_what_is_required() {
    let schema = schema();
    assert_eq!(schema["title"], "Weir partition");
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema["required"], serde_json::json!(["partition", "sfi"]));
    assert_eq!(schema["$defs"]["Sfi"]["required"], serde_json::json!(["count"]));
    assert_eq!(schema["$defs"]["Sfi"]["properties"]["events"]["default"], 64);
    assert_eq!(schema["$defs"]["Ros"]["properties"]["count"]["minimum"], 1);
    assert_eq!(schema["$defs"]["Ros"]["properties"]["count"]["maximum"], 10_000);
    assert_eq!(schema["$defs"]["Sfi"]["properties"]["request_timeout"]["default"], "500 ms");
    assert!(!schema.to_string().contains("null"));
}

fn keys_of_value(value: &Value, path: &str, keys: &mut BTreeSet<String>) {
    for (key, value) in value.as_object().into_iter().flatten() {
        let path = joined(path, key);
        keys_of_value(value, &path, keys);
        keys.insert(path);
    }
}

fn keys_of_schema(root: &Value, schema: &Value, path: &str, keys: &mut BTreeSet<String>) {
    let schema = referenced(root, schema);
    for (key, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = joined(path, key);
        let description = property["description"].as_str().unwrap_or_default();
        assert!(!description.is_empty(), "{path} has no description");
        keys_of_schema(root, property, &path, keys);
        keys.insert(path);
    }
    for alternative in schema["anyOf"].as_array().into_iter().flatten() {
        keys_of_schema(root, alternative, path, keys);
    }
}

fn referenced<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(reference) => root.pointer(reference.trim_start_matches('#')).unwrap(),
        None => schema,
    }
}

fn joined(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}
