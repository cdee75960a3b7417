"""Values of the slow control as a source: voltages, temperatures, whatever moves seldom and belongs to the data.

As a program it follows channels of EPICS, by caproto::

    python3 -m weir.slow_control shm:slow HV:CH1:VMON HV:CH2:VMON

From elsewhere, values come by :meth:`Values.put`, from any thread::

    values = Values()
    threading.Thread(target=read_sensors, args=[values], daemon=True).start()     # values.put("lab:temperature", 21.3)
    weir.source(values).run("shm:slow", "slow")

A chunk has all values as JSON: ``{"NAME": {"value": 21.3, "time": 1790000000.5, "severity": 0}}``, with the time that the device says, in seconds
since 1970. One is sent each second, and when values have changed, at most five times a second. It holds for two seconds, so that each event or slice has
one: of several the last one counts. The clock is that of the host, in ns since 1970.
"""

from __future__ import annotations

import json
import math
import sys
import threading
import time
from typing import Any

from weir.detector import Passed, Reading, options, source
from weir.link import Bytes

__all__ = ["Values"]


class Values:
    """The newest values, as a detector for :func:`weir.source`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # By name: what is said of it, as JSON, and whether it is known.
        self._values: dict[str, tuple[str, bool]] = {}
        self._has_changed = True
        # Steps of the clock do not reach the run: the time of the host at the beginning, and from then on what has passed.
        self._ahead = time.time_ns() - time.monotonic_ns()
        self._sent = 0
        self._without_room = 0

    def put(self, name: str, value: Any, at: float | None = None, severity: int = 0) -> None:
        """Says what has this value now, and ``at`` which time (seconds since 1970). A severity above 0 is an alarm of the device.

        Numbers, texts and lists of them are values; what is no number is ``None``. Others raise ``TypeError``.
        """
        said = {"value": _plain(value), "time": time.time() if at is None else _plain(at), "severity": severity}
        text = json.dumps(said, separators=(",", ":"), allow_nan=False)
        with self._lock:
            self._values[name] = (text, severity < INVALID)
            self._has_changed = True

    def lose(self, name: str) -> None:
        """Nobody says the value any more."""
        self.put(name, None, severity=INVALID)

    def start(self, run: int) -> None:
        self._sent = 0

    def read(self, slot: Bytes) -> Reading | Passed:
        now = self._ahead + time.monotonic_ns()
        with self._lock:
            is_due = now >= self._sent + (PAUSE_NS if self._has_changed else RENEWED_NS)
            if not is_due:
                return Passed(now)
            payload = self._payload(len(slot))
            self._has_changed = False
        self._sent = now
        return Reading(None, payload, (now, now + HOLDS_NS))

    def _payload(self, size_max: int) -> bytes:
        """All values, as far as there is room."""
        pairs, length = [], 2
        for name, (text, _) in self._values.items():
            pair = f"{json.dumps(name)}:{text}".encode()
            length += len(pair) + 1
            if length <= size_max:
                pairs.append(pair)
        self._without_room = len(self._values) - len(pairs)
        return b"{" + b",".join(pairs) + b"}"

    def status(self) -> str:
        with self._lock:
            lost = sorted(name for name, (_, is_known) in self._values.items() if not is_known)
            said = f"{len(self._values)} values"
        if lost:
            further = f" and {len(lost) - NAMED} more" if len(lost) > NAMED else ""
            said += f", not known: {', '.join(name[:100] for name in lost[:NAMED])}{further}"
        if self._without_room:
            said += f", no room for {self._without_room}: size_max of the source is too small"
        return said


def follow_epics(values: Values, names: list[str]) -> Any:
    """Puts what channels of EPICS say, as long as the result is kept."""
    try:
        from caproto.threading.client import Context
    except ImportError:
        sys.exit(f"EPICS needs caproto, which {sys.executable} does not have: {sys.executable} -m pip install caproto")

    def on_value(subscription: Any, response: Any) -> None:
        head = response.metadata
        values.put(subscription.pv.name, response.data, head.timestamp, int(head.severity))

    def on_connection(channel: Any, state: str) -> None:
        if state == "disconnected":
            values.lose(channel.name)

    for name in names:
        values.lose(name)
    context = Context()
    subscriptions = []
    for channel in context.get_pvs(*names, connection_state_callback=on_connection, timeout=None):
        subscription = channel.subscribe(data_type="time")
        subscription.add_callback(on_value)
        subscriptions.append(subscription)
    # Whoever asks for them holds them: the client itself forgets callbacks.
    return context, subscriptions, on_value, on_connection


def _plain(value: Any) -> Any:
    """A value as JSON has it: one number or text, or a list of them; None for what is no number."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return _plain(value[0]) if len(value) == 1 else [_plain(one) for one in value]
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def main(arguments: list[str] | None = None) -> None:
    parser = options("Channels of EPICS as a source of a run.")
    parser.add_argument("channel", nargs="+", help="a channel of EPICS; EPICS_CA_ADDR_LIST says where they are, as always")
    given = parser.parse_args(arguments)
    values = Values()
    following = follow_epics(values, given.channel)
    try:
        source(values).run_as(given)
    finally:
        del following


#: The severity of a value that nobody says, as EPICS has it.
INVALID = 3
#: A chunk comes once in so long, though no value changes.
RENEWED_NS = 1_000_000_000
#: So long it holds: so there is always one.
HOLDS_NS = 2 * RENEWED_NS
# So many values that are not known are named.
NAMED = 8
# Between two chunks: with the usual `source.chunks` none of those that hold is cut off.
PAUSE_NS = 200_000_000

if __name__ == "__main__":
    main()
