"""Look into the events of a run while it goes on, and show histograms at the page of `weir serve`.

A monitoring task is a program of its own. It asks for events that applications show, and fills histograms::

    from weir.monitor import Monitor

    monitor = Monitor("charge")               # the `weir serve` of the same user on this machine
    charge = monitor.histogram("charge", bins=100, low=0, high=5000, axis="ADC counts")
    for event in monitor.events():
        charge.fill([fragment.data.sum() for fragment in event.fragments.values()])

They begin anew with each run, and are shown once a second. A ``hist.Hist`` of one axis is shown by :meth:`Monitor.show`. Whatever a task does,
and however slow it is, the run goes on: events that it does not ask for in time are gone for it.
"""

from __future__ import annotations

import http.client
import json
import os
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from weir.event import Event

__all__ = ["Histogram", "Monitor", "MonitorError", "Sample"]

_MARKER = 0xAA1234AA
_WORD = 4
#: Between two times that histograms are shown.
SECOND = 1.0
# Words of a full event up to the number of its status words.
_FIXED = struct.Struct("<6I")
# Of the specific header, from the seconds to the trigger type.
_SPECIFIC = struct.Struct("<IIQIIIIII")


class MonitorError(RuntimeError):
    """The service is not there, refuses, or says what is not expected."""


class Sample(NamedTuple):
    """An event that an application has shown."""

    #: Its place among all samples since the service began.
    number: int
    #: The run, if that is known.
    run: int | None
    #: Who has shown it, such as ``sfi-1``.
    application: str
    #: ``sfi`` as it was built, or ``efd`` as it is to be recorded; ``ros`` or ``ebif``: the part of it that these have read out.
    stage: str
    #: Whether data are missing.
    incomplete: bool
    #: The full event, as it would be in a file.
    data: bytes
    #: The event, as an algorithm of the event filter sees it. It stays as long as one likes.
    event: Event

    @property
    def fragments(self) -> Any:
        """Its fragments by source identifier, see :attr:`weir.Event.fragments`."""
        return self.event.fragments


class Histogram:
    """Counts in bins of the same width, or with the given edges."""

    def __init__(
        self,
        name: str,
        bins: int = 100,
        low: float = 0.0,
        high: float = 1.0,
        *,
        edges: npt.ArrayLike | None = None,
        title: str = "",
        axis: str = "",
    ) -> None:
        self.name, self.title, self.axis = name, title, axis
        self.edges = np.linspace(low, high, bins + 1) if edges is None else np.asarray(edges, dtype=float)
        if self.edges.ndim != 1 or len(self.edges) < 2 or not np.all(np.diff(self.edges) > 0):
            raise ValueError("expected edges that rise, at least two")
        self.counts = np.zeros(len(self.edges) - 1)
        self.outside = np.zeros(2)
        self.is_new = False

    def fill(self, values: npt.ArrayLike) -> None:
        """Adds one value, or many."""
        values = np.ravel(np.asarray(values, dtype=float))
        self.is_new = True
        self.counts += np.histogram(values, self.edges)[0]
        self.outside += [np.count_nonzero(values < self.edges[0]), np.count_nonzero(values > self.edges[-1])]

    def clear(self) -> None:
        """Begins anew, as with a new run."""
        self.counts[:] = 0
        self.outside[:] = 0
        self.is_new = False


class Monitor:
    """A monitoring task at a `weir serve`.

    Without an address it finds that of the same user on this machine, and of ``partition`` if several are served. ``name`` is what people
    read at its histograms; each task has names of histograms of its own.
    """

    def __init__(
        self, name: str = "monitor", *, partition: str | None = None, address: str | None = None, key: str | None = None
    ) -> None:
        self.name = name
        if address is None:
            address, key = _find(partition)
        self._address, self._key = address, key
        self._connection = http.client.HTTPConnection(address, timeout=60)
        self._behind = 0
        self._run: int | None = None
        self._histograms: list[Histogram] = []
        self._shown = float("-inf")

    def histogram(self, name: str, bins: int = 100, low: float = 0.0, high: float = 1.0, **words: Any) -> Histogram:
        """A :class:`Histogram` that :meth:`events` shows, and clears when another run has begun."""
        made = Histogram(name, bins, low, high, **words)
        self._histograms.append(made)
        return made

    def events(self, *, stage: str | None = None, poll: float = 0.25, until_over: bool = False) -> Iterator[Sample]:
        """Events as they are shown, of a ``stage`` alone if one is given.

        Asks again after ``poll`` seconds when there is none; with ``until_over`` it ends when no run goes on and all that is kept was seen.
        What came while the task was busy is skipped when the service has not kept it.
        """
        while True:
            goes_on = self.status()["run"] is not None
            samples = self._json("GET", f"/api/samples?behind={self._behind}")
            for told in samples:
                self._behind = told["number"]
                if stage is None or told["stage"] == stage:
                    sample = self._sample(told)
                    if sample is not None:
                        self._begin(sample.run)
                        yield sample
                        self._show_own(SECOND)
            if not samples:
                self._show_own(SECOND if goes_on else 0.0)
                if until_over and not goes_on:
                    return
                time.sleep(poll)

    def status(self) -> dict[str, Any]:
        """What `/api/status` says: state, run, rates."""
        return self._json("GET", "/api/status")

    def show(self, *histograms: Any, name: str | None = None, title: str | None = None, axis: str | None = None) -> None:
        """Shows histograms at the page, in the place of those that were shown before under their names.

        Each is a :class:`Histogram`, a ``hist.Hist`` of one axis, or a pair of counts and edges as ``numpy.histogram`` makes it. Of a single
        one, ``name``, ``title`` and ``axis`` say what it does not say itself.
        """
        told = [_told(histogram, name, title, axis) for histogram in histograms]
        # What is of a run that is over is not shown as that of the next one.
        run = {} if self._run is None else {"run": self._run}
        self._json("POST", "/api/histograms", {"name": self.name, "histograms": told, **run})

    def _begin(self, run: int | None) -> None:
        if run != self._run:
            self._run = run
            for histogram in self._histograms:
                histogram.clear()

    def _show_own(self, at_most_every: float) -> None:
        filled = [histogram for histogram in self._histograms if histogram.is_new]
        if filled and time.monotonic() - self._shown >= at_most_every:
            self._shown = time.monotonic()
            self.show(*filled)
            for histogram in filled:
                histogram.is_new = False

    def _sample(self, told: dict[str, Any]) -> Sample | None:
        status, data = self._ask("GET", f"/api/samples/{told['number']}/raw")
        if status == http.client.NOT_FOUND:
            return None
        if status != http.client.OK:
            raise MonitorError(_reason(status, data))
        return Sample(
            told["number"], told["run"], told["application"], told["stage"], told["incomplete"], data, _event(data)
        )

    def _json(self, method: str, path: str, content: Any = None) -> Any:
        status, body = self._ask(method, path, content)
        if status != http.client.OK:
            raise MonitorError(_reason(status, body))
        return json.loads(body)

    def _ask(self, method: str, path: str, content: Any = None) -> tuple[int, bytes]:
        headers = {"Content-Type": "application/json"} if content is not None else {}
        if content is not None and self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        body = None if content is None else json.dumps(content)
        for is_last in (False, True):
            try:
                self._connection.request(method, path, body, headers)
                answer = self._connection.getresponse()
                return answer.status, answer.read()
            except (http.client.HTTPException, OSError) as error:
                # A connection that has been idle may have been closed.
                self._connection.close()
                if is_last:
                    raise MonitorError(f"run control at {self._address} does not answer: {error}") from error
        raise AssertionError("the last try returns or raises")


def _find(partition: str | None) -> tuple[str, str]:
    """Address and key in the file that `weir serve` has left for commands of the same user."""
    if os.environ.get("XDG_RUNTIME_DIR"):
        folder = Path(os.environ["XDG_RUNTIME_DIR"]) / "weir"
    elif os.environ.get("HOME"):
        folder = Path(os.environ["HOME"]) / ".weir"
    else:
        raise MonitorError("neither XDG_RUNTIME_DIR nor HOME names a folder: give the address of `weir serve`")
    found = sorted(folder.glob("*.json")) if partition is None else [folder / f"{partition}.json"]
    if len(found) > 1:
        names = ", ".join(path.stem for path in found)
        raise MonitorError(f"several `weir serve` of yours run on this machine: name one of the partitions {names}")
    try:
        said = json.loads(found[0].read_text())
        return said["address"], said["key"]
    except (IndexError, FileNotFoundError):
        raise MonitorError(
            "no `weir serve` of yours runs on this machine" + (f" for the partition {partition}" if partition else "")
        ) from None


def _event(data: bytes) -> Event:
    """The event in the bytes of a full event, not compressed."""
    marker, words, header_words, _version, _source, status_words = _FIXED.unpack_from(data)
    if marker != _MARKER or words * _WORD != len(data) or header_words * _WORD > len(data):
        raise MonitorError("expected a full event, found other bytes")
    # Behind the status words stands the type of the checksum, which is the last word then.
    checksum = _FIXED.size + status_words * _WORD
    specific = checksum + _WORD
    end = len(data) - _WORD if any(data[checksum:specific]) else len(data)
    _seconds, _nanoseconds, number, _type, run, _block, lvl1_id, bcid, trigger_type = _SPECIFIC.unpack_from(data, specific)
    return Event.from_bytes(
        data[header_words * _WORD : end], event_number=number, lvl1_id=lvl1_id, run_number=run, bcid=bcid, trigger_type=trigger_type
    )


def _told(histogram: Any, name: str | None, title: str | None, axis: str | None) -> dict[str, Any]:
    if isinstance(histogram, Histogram):
        counts, edges, outside = histogram.counts, histogram.edges, histogram.outside
        name, title, axis = name or histogram.name, title or histogram.title, axis or histogram.axis
    elif isinstance(histogram, tuple):
        (counts, edges), outside = histogram, (0, 0)
    else:
        if len(histogram.axes) != 1:
            raise ValueError(f"expected a histogram of one axis, found {len(histogram.axes)}")
        (only,) = histogram.axes
        edges, all_counts = only.edges, np.asarray(histogram.values(flow=True), dtype=float)
        inner = np.asarray(histogram.values(), dtype=float)
        has_under = bool(getattr(only.traits, "underflow", False))
        counts = inner
        outside = (all_counts[0] if has_under else 0, all_counts[-1] if len(all_counts) > len(inner) + has_under else 0)
        name, axis = name or getattr(histogram, "name", None), axis or getattr(only, "label", "") or ""
        title = title or getattr(histogram, "label", None) or ""
    if not name:
        raise ValueError("expected a name of the histogram")
    words = {"name": name, "title": title or "", "axis": axis or ""}
    numbers = {"edges": edges, "counts": counts, "outside": outside}
    return words | {key: [float(value) for value in values] for key, values in numbers.items()}


def _reason(status: int, body: bytes) -> str:
    try:
        return str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        return f"run control answers with status {status}"
