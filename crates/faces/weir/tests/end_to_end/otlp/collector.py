"""An OpenTelemetry collector to be tested against: `python collector.py HOST:PORT [CERTIFICATE KEY]`.

The messages of the protocol are read by the classes that protoc has made of their definition. What differs from the rules of OTLP is a
fault: GET /seen has the faults, the messages and the newest of each data point. POST /moods says how the next requests are answered.
"""

import gzip
import json
import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AGGREGATION_TEMPORALITY_CUMULATIVE

REQUESTS = {"/v1/logs": ExportLogsServiceRequest, "/v1/metrics": ExportMetricsServiceRequest}
# Of the messages that are sent; in JSON they are strings.
OF_64_BITS = {"timeUnixNano", "startTimeUnixNano", "observedTimeUnixNano", "asInt", "intValue"}


class Seen:
    """All that was exported."""

    def __init__(self):
        self.lock = threading.Lock()
        self.logs, self.points, self.faults, self.statuses = [], {}, [], []
        self.headers = {}
        self.moods = {path: [] for path in REQUESTS}

    def take(self, path, body):
        parsed = json_format.Parse(body, REQUESTS[path]())
        self.rules(json.loads(body))
        if path == "/v1/logs":
            for of_resource in parsed.resource_logs:
                resource = values(of_resource.resource.attributes)
                for of_scope in of_resource.scope_logs:
                    self.logs += [self.record(resource, record) for record in of_scope.log_records]
        else:
            for of_resource in parsed.resource_metrics:
                resource = values(of_resource.resource.attributes)
                for of_scope in of_resource.scope_metrics:
                    for metric in of_scope.metrics:
                        self.metric(resource, metric)

    def rules(self, value, key=None):
        """What a tolerant parser lets pass."""
        if isinstance(value, dict):
            for key, below in value.items():
                self.fault("_" in key, f"the key {key} is not in camel case")
                self.rules(below, key)
        elif isinstance(value, list):
            for below in value:
                self.rules(below, key)
        else:
            self.fault(key in OF_64_BITS and not isinstance(value, str), f"{key} is no string: {value!r}")
            self.fault(key == "aggregationTemporality" and not isinstance(value, int), f"{key} is no number: {value!r}")
            self.fault(value is None, f"{key} is null")

    def record(self, resource, record):
        self.fault(not 0 < record.time_unix_nano <= record.observed_time_unix_nano, f"observed before it was: {record}")
        self.fault(not 1 <= record.severity_number <= 24, f"no severity: {record}")
        return {
            "resource": resource,
            "severity": record.severity_number,
            "severity_text": record.severity_text,
            "text": record.body.string_value,
            "at_ms": record.time_unix_nano // 1_000_000,
            "attributes": values(record.attributes),
        }

    def metric(self, resource, metric):
        kind = metric.WhichOneof("data")
        self.fault(kind not in ("sum", "gauge"), f"{metric.name} is a {kind}")
        data = getattr(metric, kind)
        if kind == "sum":
            is_right = data.is_monotonic and data.aggregation_temporality == AGGREGATION_TEMPORALITY_CUMULATIVE
            self.fault(not is_right, f"{metric.name} is no cumulative counter")
        for point in data.data_points:
            attributes = values(point.attributes)
            value = getattr(point, point.WhichOneof("value"))
            found = {
                "resource": resource,
                "name": metric.name,
                "unit": metric.unit,
                "kind": kind,
                "described": bool(metric.description),
                "attributes": attributes,
                "value": value,
                "since_ns": point.start_time_unix_nano,
                "at_ns": point.time_unix_nano,
            }
            key = json.dumps([resource.get("service.instance.id"), metric.name, attributes], sort_keys=True)
            self.follows(key, self.points.get(key), found)
            self.points[key] = found

    def follows(self, key, before, now):
        """A counter begins with its start time, and does not fall behind it."""
        is_counter = now["kind"] == "sum"
        self.fault(is_counter != (now["since_ns"] > 0), f"{key}: a start time is for counters: {now}")
        self.fault(now["since_ns"] > now["at_ns"], f"{key}: counted before it began: {now}")
        if before is None:
            return
        self.fault(now["at_ns"] <= before["at_ns"], f"{key}: twice at a time: {before}, {now}")
        if is_counter:
            self.fault(now["since_ns"] < before["since_ns"], f"{key}: begins earlier: {before}, {now}")
            has_fallen = now["since_ns"] == before["since_ns"] and now["value"] < before["value"]
            self.fault(has_fallen, f"{key}: falls: {before}, {now}")
            overlaps = before["since_ns"] < now["since_ns"] < before["at_ns"]
            self.fault(overlaps, f"{key}: counts what was counted: {before}, {now}")

    def fault(self, is_one, text):
        if is_one:
            self.faults.append(text)


def values(attributes):
    found = {}
    for attribute in attributes:
        found[attribute.key] = getattr(attribute.value, attribute.value.WhichOneof("value"))
    return found


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen = Seen()

    def do_GET(self):
        with self.seen.lock:
            seen = {"logs": self.seen.logs, "points": list(self.seen.points.values())}
            seen |= {"faults": self.seen.faults, "statuses": self.seen.statuses, "headers": self.seen.headers}
            self.answer(200, {}, seen)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with self.seen.lock:
            if self.path == "/moods":
                for path, moods in json.loads(body).items():
                    self.seen.moods[path] = moods
                return self.answer(200, {}, {})
            if self.path not in REQUESTS:
                return self.answer(404, {}, {"message": f"nobody takes {self.path}"})
            self.seen.fault(self.headers["Content-Type"] != "application/json", f"the type {self.headers['Content-Type']}")
            self.seen.headers = {name.lower(): text for name, text in self.headers.items()}
            if self.headers["Content-Encoding"] == "gzip":
                body = gzip.decompress(body)
            moods = self.seen.moods[self.path]
            status, headers, answer = moods.pop(0) if moods else (200, {}, {})
            self.seen.statuses.append([self.path, status])
            if status == 200:
                try:
                    self.seen.take(self.path, body)
                except Exception as error:
                    self.seen.faults.append(f"{type(error).__name__}: {error}: {body[:500]!r}")
            self.answer(status, headers, answer)

    def answer(self, status, headers, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        for name, text in {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def main():
    host, port = sys.argv[1].split(":")
    server = ThreadingHTTPServer((host, int(port)), Handler)
    if len(sys.argv) > 2:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*sys.argv[2:4])
        server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


main()
