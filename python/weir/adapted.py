"""Events of sources that are written for EUDAQ or MIDAS, as docs/adapters.md says they travel.

``data`` is the payload of a fragment: ``bytes``, or the words of :attr:`weir.Fragment.data`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any, Union

import numpy as np
import numpy.typing as npt

Data = Union[bytes, npt.NDArray[Any]]

_EUDAQ = struct.Struct("<4s7I2Q4I")
_MIDAS = struct.Struct("<HHIIIII")
_BANK = struct.Struct("<4sIII")
_PAIR = struct.Struct("<II")
#: Types of items by the identifiers of MIDAS; others stay bytes.
_ITEMS = {2: "<i1", 4: "<u2", 5: "<i2", 6: "<u4", 7: "<i4", 8: "<u4", 9: "<f4", 10: "<f8", 17: "<i8", 18: "<u8"}
_BANKS_ALIGNED = 0x31
_DEPTH_MAX = 16


@dataclass
class EudaqEvent:
    """What a producer has sent."""

    description: str
    run: int
    number: int
    #: None if the producer has set none.
    trigger: int | None
    #: Begin and end in ns; None if the producer has set none.
    time: tuple[int, int] | None
    flags: int
    stream: int
    version: int
    tags: dict[str, str] = field(default_factory=dict)
    blocks: dict[int, bytes] = field(default_factory=dict)
    events: list[EudaqEvent] = field(default_factory=list)


@dataclass
class MidasEvent:
    """What a front end has sent."""

    event_id: int
    trigger_mask: int
    #: From 1 on.
    serial_number: int
    #: Seconds since 1970.
    time: int
    #: Arrays by name, of the type that the front end has said.
    banks: dict[str, npt.NDArray[Any]] = field(default_factory=dict)


def eudaq(data: Data) -> EudaqEvent:
    """The event of a producer. Raises :class:`ValueError` for what is none."""
    return _read(_Bytes(data))


def midas(data: Data) -> MidasEvent:
    """The event of a front end. Raises :class:`ValueError` for what is none."""
    source = _Bytes(data)
    event_id, mask, serial, time, size, banks, flags = source.take(_MIDAS)
    if flags != _BANKS_ALIGNED or banks + 8 != size:
        raise ValueError(f"{banks} bytes of banks with flags {flags:#x} in {size}: expected {size - 8} with {_BANKS_ALIGNED:#x}")
    event = MidasEvent(event_id, mask, serial, time)
    end = source.at + banks
    while source.at < end:
        name, kind, length, _ = source.take(_BANK)
        items = source.some(length + -length % 8)[:length]
        event.banks[name.rstrip(b"\0").decode("latin-1")] = np.frombuffer(items, _ITEMS.get(kind, "<u1"))
    return event


class _Bytes:
    def __init__(self, data: Data) -> None:
        self.all = data if isinstance(data, bytes) else data.tobytes()
        self.at = 0

    def some(self, length: int) -> bytes:
        found = self.all[self.at : self.at + length]
        if len(found) < length:
            raise ValueError(f"{len(found)} bytes at byte {self.at}: expected {length}")
        self.at += length
        return found

    def take(self, layout: struct.Struct) -> tuple[Any, ...]:
        return layout.unpack(self.some(layout.size))


def _read(source: _Bytes, depth: int = 0) -> EudaqEvent:
    begun = source.at
    if depth > _DEPTH_MAX:
        raise ValueError(f"events within events at byte {begun}: expected at most {_DEPTH_MAX} levels")
    head = source.take(_EUDAQ)
    mark, length, flags, run, number, trigger, stream, version, begin, end, description, tags, blocks, events = head
    if mark != b"EUD1":
        raise ValueError(f"{mark!r} at byte {begun}: expected b'EUD1'")
    event = EudaqEvent(
        source.some(description).decode(errors="replace"),
        run,
        number,
        trigger if flags & 16 else None,
        (begin, end) if flags & 32 else None,
        flags,
        stream,
        version,
    )
    for _ in range(tags):
        name, value = source.take(_PAIR)
        key = source.some(name).decode(errors="replace")
        event.tags[key] = source.some(value).decode(errors="replace")
    for _ in range(blocks):
        block, size = source.take(_PAIR)
        event.blocks[block] = source.some(size)
    for _ in range(events):
        event.events.append(_read(source, depth + 1))
    if source.at - begun != length:
        raise ValueError(f"{source.at - begun} bytes from byte {begun} on: its head says {length}")
    return event
