"""An event in shared memory, read in place. The layout is that of the Rust module ``processing::event``."""

from __future__ import annotations

import gc
import json
import struct
import sys
from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from typing import Any

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint32]

_HEAD = struct.Struct("<QQQQIIHBBIII")
_HEAD_BYTES = 64
_COLUMNS = 7
_WORD = 4
_WORDS = np.dtype("<u4")
_U32 = struct.Struct("<I")
# Head of the chunks of a slice, and of each chunk: begin, end, count or length, status.
_CHUNK = struct.Struct("<QQII")
_ROD_VERSION = 2
# Minor version of a ROD whose data are chunks.
_TIMED = 1
# The end of all clocks, which stands for "never".
_NEVER = (1 << 64) - 1
# Names of the fields of the head.
_EVENT_NUMBER, _ORDINAL, _ITEMS, _LEVEL2, _LVL1_ID, _RUN = range(6)
_BCID, _TRIGGER_TYPE, _FORCED, _MISSING, _COUNT, _INDEX = range(6, 12)
# Columns of the index.
_SOURCE_ID, _STATUS, _ROB, _ROB_WORDS, _DATA, _DATA_WORDS, _DAMAGED = range(_COLUMNS)


class EventOver(RuntimeError):
    """An event, or memory of it, was used after ``process`` had returned: copy what you keep."""


class Setup:
    """What an algorithm gets to know when it is made."""

    __slots__ = ("chains", "name", "offsets", "parameters", "sources", "streams", "task")

    #: Name of the application that runs the algorithm.
    name: str
    #: Number of the task among those of its application, from 0.
    task: int
    #: Names of the streams of the configuration.
    streams: tuple[str, ...]
    #: Names of the chains of the menu: bit ``n`` of :attr:`Event.level2_chains` is the chain ``chains[n]``.
    chains: tuple[str, ...]
    #: Source identifiers of the sources of the configuration that send by themselves, by name.
    sources: dict[str, int]
    #: What is added to the times of the sources that are matched by time, by source identifier, in ns; most often 0. Sources
    #: by number or count, and those with ``clock = "model"``, are not in it: they have no times on the clock of the event.
    offsets: dict[int, int]
    #: ``pt.parameters`` of the configuration, a dictionary.
    parameters: Any

    def __init__(self, name: str = "", task: int = 0, streams: tuple[str, ...] = (), setup: str = "") -> None:
        self.name = name
        self.task = task
        self.streams = streams
        given = json.loads(setup) if setup else {}
        self.chains = tuple(given.get("chains", ()))
        sources = given.get("sources", ())
        self.sources = {source["name"]: source["id"] for source in sources}
        self.offsets = {source["id"]: source["offset"] for source in sources if source["offset"] is not None}
        self.parameters = given.get("parameters", {})


class Event:
    """An event. Valid until ``process`` returns; so are the numpy views of its fragments."""

    __slots__ = ("_at", "_head", "_index", "_memory", "_offsets", "_root")

    def __init__(self, memory: Any, at: int, offsets: Mapping[int, int] | None = None) -> None:
        self._memory = memory
        self._at = at
        self._offsets = offsets
        self._head: tuple[int, ...] | None = None
        self._index: tuple[int, ...] | None = None
        self._root: Words | None = None

    @staticmethod
    def from_bytes(robs: bytes, offsets: Mapping[int, int] | None = None, **head: int) -> Event:
        """An event of ROB fragments, one behind the other, to try out an algorithm without Weir.

        ``head`` are ``event_number``, ``lvl1_id``, ``bcid``, ``trigger_type``, ``items`` and the like; 0 by default.
        ``offsets`` are as :attr:`Setup.offsets`; by default all chunks have the times that they say.
        """
        return _pack(robs, offsets, head)

    @property
    def event_number(self) -> int:
        """Number of the event, unique in the run."""
        return self._field(_EVENT_NUMBER)

    @property
    def ordinal(self) -> int:
        """How many triggers came before it in this run."""
        return self._field(_ORDINAL)

    @property
    def items(self) -> int:
        """Level-1 items that fired, one bit each."""
        return self._field(_ITEMS)

    @property
    def level2_chains(self) -> int:
        """Chains that accepted at level 2, one bit each."""
        return self._field(_LEVEL2)

    @property
    def lvl1_id(self) -> int:
        """Extended level-1 id."""
        return self._field(_LVL1_ID)

    @property
    def run_number(self) -> int:
        """Run number."""
        return self._field(_RUN)

    @property
    def bcid(self) -> int:
        """Bunch crossing."""
        return self._field(_BCID)

    @property
    def trigger_type(self) -> int:
        """Level-1 trigger type."""
        return self._field(_TRIGGER_TYPE)

    @property
    def forced(self) -> bool:
        """Whether it was accepted by a time-out of level 2, not by a decision."""
        return self._field(_FORCED) != 0

    @property
    def missing(self) -> tuple[int, ...]:
        """Source identifiers of ROBs without data."""
        count = self._field(_MISSING)
        return struct.unpack_from(f"<{count}I", self._memory, self._at + _HEAD_BYTES)

    @property
    def fragments(self) -> Fragments:
        """The fragments by source identifier, in the order in which they lie in the event."""
        return Fragments(self)

    @property
    def interval(self) -> tuple[int, int] | None:
        """Begin and end of what the event takes of its sources by time, in ns; ``None`` if there are none.

        That is the slice of time, with what it takes before and behind it.
        """
        found = [fragment.interval for fragment in self.fragments.values()]
        times = [interval for interval in found if interval is not None]
        return (min(begin for begin, _ in times), max(end for _, end in times)) if times else None

    @property
    def data(self) -> Words:
        """All ROB fragments, one behind the other: a view, as :attr:`Fragment.data`."""
        return self._words()[_HEAD_BYTES // _WORD + self._field(_MISSING) : self._field(_INDEX)]

    def __repr__(self) -> str:
        if self._memory is None:
            return "<Event that is over>"
        return f"<Event {self.event_number}: {self._field(_COUNT)} fragments>"

    def _field(self, field: int) -> int:
        head = self._head
        if head is None:
            if self._memory is None:
                raise EventOver("the event was used after process() had returned: copy what you keep")
            head = self._head = _HEAD.unpack_from(self._memory, self._at)
        return head[field]

    def _words(self) -> Words:
        """The slot up to the end of the index. All views of the event have this array as their base."""
        root = self._root
        if root is None:
            words = self._field(_INDEX) + _COLUMNS * self._field(_COUNT)
            root = self._root = np.frombuffer(self._memory, _WORDS, words, self._at)
        return root

    def _end(self) -> None:
        """Ends the event; raises if a view of it lives on, which would show other events later."""
        root = self._root
        self._forget()
        if root is not None:
            if sys.getrefcount(root) > _REFERENCES:
                # It may be held by a cycle that nobody uses any more.
                gc.collect()
                if sys.getrefcount(root) > _REFERENCES:
                    raise EventOver(
                        "a numpy view of the event's data was kept after process() had returned, when its memory "
                        "is used for other events: keep a copy (fragment.data.copy())"
                    )

    def _forget(self) -> None:
        self._memory = None
        self._head = None
        self._index = None
        self._root = None


class Fragments(Mapping[int, "Fragment"]):
    """The fragments of an event by source identifier."""

    __slots__ = ("_event",)

    def __init__(self, event: Event) -> None:
        self._event = event

    @property
    def source_ids(self) -> Words:
        """All source identifiers: a view, as :attr:`Fragment.data`."""
        return self._column(_SOURCE_ID)

    def __getitem__(self, source_id: int) -> Fragment:
        event = self._event
        return Fragment(event, source_id, _positions(event)[source_id])

    def __contains__(self, source_id: object) -> bool:
        return source_id in _positions(self._event)

    def __iter__(self) -> Iterator[int]:
        return iter(_positions(self._event))

    def __len__(self) -> int:
        return len(_positions(self._event))

    def values(self) -> ValuesView[Fragment]:
        """The fragments: faster than one by one."""
        return _Values(self)

    def items(self) -> ItemsView[int, Fragment]:
        """Pairs of source identifier and fragment: faster than one by one."""
        return _Items(self)

    def __repr__(self) -> str:
        return f"<{len(self)} fragments>"

    def _all(self) -> Iterator[Fragment]:
        event = self._event
        positions = _positions(event)
        if event._index is None:
            start = event._at + event._field(_INDEX) * _WORD
            event._index = struct.unpack_from(f"<{_COLUMNS * event._field(_COUNT)}I", event._memory, start)
        for source_id, position in positions.items():
            yield Fragment(event, source_id, position)

    def _column(self, column: int) -> Words:
        event = self._event
        count = event._field(_COUNT)
        start = event._field(_INDEX) + column * count
        return event._words()[start : start + count]


class _Values(ValuesView["Fragment"]):
    _mapping: Fragments

    def __iter__(self) -> Iterator[Fragment]:
        return self._mapping._all()


class _Items(ItemsView[int, "Fragment"]):
    _mapping: Fragments

    def __iter__(self) -> Iterator[tuple[int, Fragment]]:
        return ((fragment.source_id, fragment) for fragment in self._mapping._all())


class Fragment:
    """A ROB fragment of an event. Valid as long as the event."""

    __slots__ = ("_event", "_position", "source_id")

    #: Source identifier of the ROB.
    source_id: int

    def __init__(self, event: Event, source_id: int, position: int) -> None:
        self._event = event
        self._position = position
        self.source_id = source_id

    @property
    def data(self) -> Words:
        """Data words of the ROD: a read-only view of shared memory. Copy what you keep."""
        start = self._entry(_DATA)
        return self._event._words()[start : start + self._entry(_DATA_WORDS)]

    @property
    def status(self) -> int:
        """First status word of the ROB; 0 is good."""
        return self._entry(_STATUS)

    @property
    def damaged(self) -> bool:
        """Whether the ROD contradicts itself: ``data`` is then all that lies behind its header, or nothing."""
        return self._entry(_DAMAGED) != 0

    @property
    def rob(self) -> Words:
        """All words of the ROB fragment: a view, as ``data``."""
        start = self._entry(_ROB)
        return self._event._words()[start : start + self._entry(_ROB_WORDS)]

    @property
    def rod(self) -> Words:
        """All words of the ROD fragment, header and trailer included: a view, as ``data``."""
        rob = self.rob
        checksum = 1 if rob[int(rob[2]) - 1] else 0
        return rob[int(rob[2]) : len(rob) - checksum]

    @property
    def interval(self) -> tuple[int, int] | None:
        """What its chunks meet, in ns: begin and end; ``None`` if it is not matched by time on the clock of the event."""
        found = self._heads()
        return found[0][1:3] if found and self._offset() is not None else None

    @property
    def chunks(self) -> list[Chunk]:
        """Its chunks by begin, in a slice of time; none in the fragment of a trigger."""
        data = self._event._words().view(np.uint8)
        heads, offset = self._heads()[1:], self._offset() or 0
        return [
            Chunk(*_shifted(begin, end, offset), status, data[at : at + size], (begin, end))
            for at, begin, end, size, status in heads
        ]

    def _offset(self) -> int | None:
        """What its times lack to be those of the event; ``None`` if they are on no such clock."""
        offsets = self._event._offsets
        return 0 if offsets is None else offsets.get(self.source_id)

    def _heads(self) -> list[tuple[int, int, int, int, int]]:
        """The heads of its data and of each chunk, with the byte of the slot behind each; none if there are no chunks."""
        event, at = self._event, self._entry(_DATA) * _WORD
        end = at + self._entry(_DATA_WORDS) * _WORD
        if self.damaged or int(self.rod[_ROD_VERSION]) & 0xFFFF != _TIMED:
            return []
        found = []
        while at < end:
            if end - at < _CHUNK.size:
                return []
            head = _CHUNK.unpack_from(event._memory, event._at + at)
            at += _CHUNK.size
            found.append((at, *head))
            at += (head[2] + 3) // _WORD * _WORD if len(found) > 1 else 0
        return found if found and at == end and found[0][3] == len(found) - 1 else []

    def __repr__(self) -> str:
        return f"<Fragment {self.source_id:#010x}: {self._entry(_DATA_WORDS)} words>"

    def _entry(self, column: int) -> int:
        event = self._event
        head = event._head
        if head is None:
            event._field(0)
            head = event._head
            assert head is not None
        index = event._index
        if index is not None:
            return index[column * head[_COUNT] + self._position]
        word = head[_INDEX] + column * head[_COUNT] + self._position
        found: int = _U32.unpack_from(event._memory, event._at + word * _WORD)[0]
        return found


class Chunk:
    """What a source says of a stretch of time. Valid as long as the event."""

    __slots__ = ("begin", "data", "end", "said", "status")

    #: The first nanosecond, on the clock of :attr:`Event.interval`; as the source says, if :attr:`Setup.offsets` lacks it.
    begin: int
    #: The first that is behind it. What ends where it begins, or before, is an instant of 1 ns.
    end: int
    #: Begin and end as the source says.
    said: tuple[int, int]
    #: What is wrong with it, as in :attr:`Fragment.status`; 0 is good.
    status: int
    #: The payload: a read-only view of shared memory. Copy what you keep.
    data: npt.NDArray[np.uint8]

    def __init__(self, begin: int, end: int, status: int, data: npt.NDArray[np.uint8], said: tuple[int, int]) -> None:
        self.begin = begin
        self.end = end
        self.status = status
        self.data = data
        self.said = said

    def __repr__(self) -> str:
        return f"<Chunk from {self.begin} to {self.end} ns: {len(self.data)} bytes>"


# Most events have the same fragments in the same order.
_known: dict[bytes, dict[int, int]] = {}
_KNOWN_MAX = 256


def _positions(event: Event) -> dict[int, int]:
    index, count = event._field(_INDEX), event._field(_COUNT)
    start = event._at + index * _WORD
    column = bytes(event._memory[start : start + count * _WORD])
    found = _known.get(column)
    if found is None:
        found = {}
        for position, (source_id,) in enumerate(_U32.iter_unpack(column)):
            found.setdefault(source_id, position)
        if len(_known) >= _KNOWN_MAX:
            _known.clear()
        _known[column] = found
    return found


def _shifted(begin: int, end: int, offset: int) -> tuple[int, int]:
    """An interval later by ``offset``, as the Rust type ``timing::Interval``: arithmetic ends at both ends of the clock."""
    end = max(end, begin + 1)
    begin = min(max(begin + offset, 0), _NEVER)
    return begin, min(max(end + offset, begin + 1), _NEVER)


def _pack(robs: bytes, offsets: Mapping[int, int] | None, head: dict[str, int]) -> Event:
    words = np.frombuffer(robs, _WORDS)
    entries = []
    at = 0
    while at < len(words):
        if len(words) - at < 8 or words[at] != 0xDD1234DD:
            raise ValueError(f"no ROB fragment at byte {at * _WORD}")
        size, header = int(words[at + 1]), int(words[at + 2])
        if not 8 <= header < size <= len(words) - at:
            raise ValueError(f"the ROB fragment at byte {at * _WORD} says that it has {size} words, {header} in its header")
        end = at + size - (1 if words[at + header - 1] else 0)
        rod = at + header
        status, count, behind = (int(word) for word in words[end - 3 : end])
        data = rod + int(words[rod + 1]) + (0 if behind else status)
        shift = _HEAD_BYTES // _WORD
        entries.append((int(words[at + 4]), int(words[at + 6]), shift + at, size, shift + data, count, 0))
        at += size
    names: tuple[str, ...] = ("event_number", "ordinal", "items", "level2_chains", "lvl1_id", "run_number", "bcid")
    names += ("trigger_type", "forced")
    unknown = set(head) - set(names)
    if unknown:
        raise TypeError(f"unknown fields {sorted(unknown)}: expected some of {names}")
    fields = [int(head.get(name, 0)) for name in names]
    packed = _HEAD.pack(*fields, 0, len(entries), _HEAD_BYTES // _WORD + len(words)).ljust(_HEAD_BYTES, b"\0")
    index = np.array(entries, _WORDS).reshape(-1, _COLUMNS).T
    return Event(packed + robs + index.tobytes(), 0, offsets)


def _count_references() -> int:
    """How many references the interpreter counts to an array that only `_end` holds."""
    event = Event(bytes(_HEAD_BYTES), 0)
    event._words()
    root = event._root
    event._forget()
    if root is not None:
        return sys.getrefcount(root)
    return 0


_REFERENCES = _count_references()
