//! Requests of OTLP in JSON: protobuf messages by their JSON mapping, 64-bit numbers as strings, enumerations as numbers
//! `[OTLP "JSON Protobuf Encoding"]`.

use serde::{Serialize, Serializer};

/// `ExportMetricsServiceRequest`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MetricsRequest<'a> {
    pub(super) resource_metrics: Vec<ResourceMetrics<'a>>,
}

/// The metrics of one application, or of run control.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResourceMetrics<'a> {
    pub(super) resource: Resource<'a>,
    pub(super) scope_metrics: [ScopeMetrics<'a>; 1],
}

#[derive(Debug, Serialize)]
pub(super) struct ScopeMetrics<'a> {
    pub(super) scope: Scope,
    pub(super) metrics: Vec<Metric<'a>>,
}

#[derive(Debug, Serialize)]
pub(super) struct Metric<'a> {
    pub(super) name: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) unit: &'static str,
    pub(super) description: &'static str,
    #[serde(flatten)]
    pub(super) data: Data<'a>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(super) enum Data<'a> {
    Gauge { data_points: Vec<Point<'a>> },
    Sum { data_points: Vec<Point<'a>>, aggregation_temporality: u32, is_monotonic: bool },
}

/// `NumberDataPoint`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Point<'a> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) attributes: Vec<KeyValue<'a>>,
    /// Since when it counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) start_time_unix_nano: Option<Decimal>,
    pub(super) time_unix_nano: Decimal,
    #[serde(flatten)]
    pub(super) value: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Value {
    AsInt(Decimal),
    AsDouble(f64),
}

/// `ExportLogsServiceRequest`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LogsRequest<'a> {
    pub(super) resource_logs: [ResourceLogs<'a>; 1],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResourceLogs<'a> {
    pub(super) resource: Resource<'a>,
    pub(super) scope_logs: [ScopeLogs<'a>; 1],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ScopeLogs<'a> {
    pub(super) scope: Scope,
    pub(super) log_records: Vec<LogRecord<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LogRecord<'a> {
    pub(super) time_unix_nano: Decimal,
    pub(super) observed_time_unix_nano: Decimal,
    pub(super) severity_number: u32,
    pub(super) severity_text: &'static str,
    pub(super) body: AnyValue<'a>,
    pub(super) attributes: Vec<KeyValue<'a>>,
}

#[derive(Debug, Serialize)]
pub(super) struct Resource<'a> {
    pub(super) attributes: Vec<KeyValue<'a>>,
}

/// Who has measured.
#[derive(Debug, Serialize)]
pub(super) struct Scope {
    name: &'static str,
    version: &'static str,
}

#[derive(Debug, PartialEq, Serialize)]
pub(super) struct KeyValue<'a> {
    key: &'static str,
    value: AnyValue<'a>,
}

#[expect(clippy::enum_variant_names, reason = "these are the names of the protocol")]
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum AnyValue<'a> {
    StringValue(&'a str),
    IntValue(Decimal),
    ArrayValue { values: Vec<AnyValue<'a>> },
}

/// A 64-bit number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decimal(pub(super) u64);

impl Scope {
    pub(super) const fn own() -> Self {
        Self { name: "weir", version: env!("CARGO_PKG_VERSION") }
    }
}

impl<'a> KeyValue<'a> {
    pub(super) const fn text(key: &'static str, text: &'a str) -> Self {
        Self { key, value: AnyValue::StringValue(text) }
    }

    pub(super) fn texts(key: &'static str, texts: &'a [String]) -> Self {
        let values = texts.iter().map(|text| AnyValue::StringValue(text)).collect();
        Self { key, value: AnyValue::ArrayValue { values } }
    }

    pub(super) const fn number(key: &'static str, number: u64) -> Self {
        Self { key, value: AnyValue::IntValue(Decimal(number)) }
    }
}

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`.
pub(super) const CUMULATIVE: u32 = 2;

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;

    #[test]
    fn several_texts_are_an_array() {
        let texts = ["a", "b"].map(str::to_owned);
        let values = json!([{ "stringValue": "a" }, { "stringValue": "b" }]);
        let expected = json!({ "key": "weir.cause", "value": { "arrayValue": { "values": values } } });
        assert_eq!(serde_json::to_value(KeyValue::texts("weir.cause", &texts)).unwrap(), expected);
    }

    /// A tolerant reader takes a 64-bit number as a number, too, and the published examples have some of these.
    fn tolerant(value: Json) -> Json {
        match value {
            Json::Object(fields) => fields
                .into_iter()
                .map(|(key, value)| match value {
                    Json::Number(number) if key.ends_with("UnixNano") => (key, json!(number.to_string())),
                    value => (key, tolerant(value)),
                })
                .collect(),
            Json::Array(values) => values.into_iter().map(tolerant).collect(),
            other => other,
        }
    }

    const SCOPE: Scope = Scope { name: "my.library", version: "1.0.0" };

    fn resource() -> Resource<'static> {
        Resource { attributes: vec![KeyValue::text("service.name", "my.service")] }
    }

    /// `examples/metrics.json` of the protocol, without histograms and attributes of the scope, which Weir has not.
    #[test]
    fn metrics_are_as_in_the_published_example() {
        let point = |key, value, since: Option<u64>| Point {
            attributes: vec![KeyValue::text(key, "some value")],
            start_time_unix_nano: since.map(Decimal),
            time_unix_nano: Decimal(1_544_712_660_300_000_000),
            value,
        };
        let count = point("my.counter.attr", Value::AsDouble(5.0), Some(1_544_712_660_300_000_000));
        let sum = Data::Sum { data_points: vec![count], aggregation_temporality: 1, is_monotonic: true };
        let gauge = Data::Gauge { data_points: vec![point("my.gauge.attr", Value::AsDouble(10.0), None)] };
        let metric = |name: &str, description, data| Metric { name: name.to_owned(), unit: "1", description, data };
        let metrics = vec![metric("my.counter", "I`m a Counter", sum), metric("my.gauge", "I`m a Gauge", gauge)];
        let scope_metrics = [ScopeMetrics { scope: SCOPE, metrics }];
        let request =
            MetricsRequest { resource_metrics: vec![ResourceMetrics { resource: resource(), scope_metrics }] };
        let published = json!({ "resourceMetrics": [{
            "resource": { "attributes": [{ "key": "service.name", "value": { "stringValue": "my.service" } }] },
            "scopeMetrics": [{
                "scope": { "name": "my.library", "version": "1.0.0" },
                "metrics": [
                    {
                        "name": "my.counter", "unit": "1", "description": "I`m a Counter",
                        "sum": { "aggregationTemporality": 1, "isMonotonic": true, "dataPoints": [{
                            "asDouble": 5.0,
                            "startTimeUnixNano": 1_544_712_660_300_000_000_u64,
                            "timeUnixNano": 1_544_712_660_300_000_000_u64,
                            "attributes": [{ "key": "my.counter.attr", "value": { "stringValue": "some value" } }],
                        }] },
                    },
                    {
                        "name": "my.gauge", "unit": "1", "description": "I`m a Gauge",
                        "gauge": { "dataPoints": [{
                            "asDouble": 10.0,
                            "timeUnixNano": 1_544_712_660_300_000_000_u64,
                            "attributes": [{ "key": "my.gauge.attr", "value": { "stringValue": "some value" } }],
                        }] },
                    },
                ],
            }],
        }] });
        assert_eq!(serde_json::to_value(request).unwrap(), tolerant(published));
    }

    /// `examples/logs.json` of the protocol, without traces and attributes of kinds that Weir has not.
    #[test]
    fn messages_are_as_in_the_published_example() {
        let record = LogRecord {
            time_unix_nano: Decimal(1_544_712_660_300_000_000),
            observed_time_unix_nano: Decimal(1_544_712_660_300_000_000),
            severity_number: 10,
            severity_text: "Information",
            body: AnyValue::StringValue("Example log record"),
            attributes: vec![KeyValue::text("string.attribute", "some string"), KeyValue::number("int.attribute", 10)],
        };
        let scope_logs = [ScopeLogs { scope: SCOPE, log_records: vec![record] }];
        let request = LogsRequest { resource_logs: [ResourceLogs { resource: resource(), scope_logs }] };
        let published = json!({ "resourceLogs": [{
            "resource": { "attributes": [{ "key": "service.name", "value": { "stringValue": "my.service" } }] },
            "scopeLogs": [{
                "scope": { "name": "my.library", "version": "1.0.0" },
                "logRecords": [{
                    "timeUnixNano": "1544712660300000000",
                    "observedTimeUnixNano": "1544712660300000000",
                    "severityNumber": 10,
                    "severityText": "Information",
                    "body": { "stringValue": "Example log record" },
                    "attributes": [
                        { "key": "string.attribute", "value": { "stringValue": "some string" } },
                        { "key": "int.attribute", "value": { "intValue": "10" } },
                    ],
                }],
            }],
        }] });
        assert_eq!(serde_json::to_value(request).unwrap(), published);
    }

    #[test]
    fn numbers_of_64_bits_are_strings_and_what_is_absent_is_left_out() {
        let value = Value::AsInt(Decimal(i64::MAX as u64));
        let point = Point { attributes: Vec::new(), start_time_unix_nano: None, time_unix_nano: Decimal(7), value };
        let text = serde_json::to_string(&point).unwrap();
        assert_eq!(text, "{\"timeUnixNano\":\"7\",\"asInt\":\"9223372036854775807\"}");
    }
}
