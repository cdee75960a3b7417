"""What an algorithm decides."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import SupportsIndex

_ALWAYS = (1 << 64) - 1


class Window:
    """Data of some sources in an interval of time, to be recorded. Does not change."""

    __slots__ = ("begin", "end", "sources")

    #: The first nanosecond, on the clock of :attr:`Event.interval`.
    begin: int
    #: The first that is behind it.
    end: int
    #: Source identifiers; none: all sources.
    sources: tuple[int, ...]

    def __init__(
        self,
        begin: SupportsIndex | None = None,
        end: SupportsIndex | None = None,
        *,
        sources: Iterable[SupportsIndex] | None = None,
    ) -> None:
        """Chunks that meet the time from ``begin`` to ``end``, as a whole, of these sources; by default of all.

        Without times it is all that the sources have; so is data without a time. Raises :class:`ValueError` if it ends
        before it begins, or is of no sources, and :class:`TypeError` for what is no whole number.
        """
        if (begin is None) != (end is None):
            raise ValueError("a window has both a begin and an end, or neither")
        self.begin = 0 if begin is None else _whole(begin, "the begin of a window in ns")
        self.end = _ALWAYS if end is None else _whole(end, "the end of a window in ns")
        if not 0 <= self.begin <= self.end <= _ALWAYS:
            raise ValueError(f"a window from {self.begin} to {self.end} ns: expected 0 <= begin <= end < 2**64")
        self.sources = () if sources is None else tuple(_whole(source, "a source identifier") for source in sources)
        if sources is not None and not self.sources:
            raise ValueError("a window of no sources: name some, or leave `sources` out for all")

    def __repr__(self) -> str:
        times = "" if (self.begin, self.end) == (0, _ALWAYS) else f"{self.begin}, {self.end}, "
        return f"Window({times}sources={self.sources!r})"


def _whole(value: SupportsIndex, what: str) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{what} is {value!r:.50}: expected a whole number, such as int(...) of it") from None


class Decision:
    """What becomes of an event. Made by :meth:`accept` and :meth:`reject`; does not change."""

    __slots__ = ("accepted", "chains", "input", "result", "streams", "windows")

    accepted: bool
    #: Names of streams, of those in the configuration; none: the streams of the chains that accepted.
    streams: tuple[str, ...]
    #: Data of the event-filter result fragment, little-endian 32-bit words.
    result: bytes
    #: Chains that accepted, one bit each.
    chains: int
    #: Chains that were tried, one bit each.
    input: int
    #: What of the event is recorded; none: all of it.
    windows: tuple[Window, ...]

    def __init__(
        self,
        accepted: bool,
        streams: tuple[str, ...] = (),
        result: bytes = b"",
        chains: int = 0,
        input: int = 0,
        windows: tuple[Window, ...] = (),
    ) -> None:
        self.accepted = accepted
        self.streams = streams
        self.result = result
        self.chains = chains
        self.input = input
        self.windows = windows

    @staticmethod
    def accept(
        streams: Iterable[str] = (),
        result: bytes = b"",
        *,
        chains: int = 0,
        input: int = 0,
        windows: Iterable[Window] | None = None,
    ) -> Decision:
        """The event is recorded.

        ``streams`` are names of the configuration. ``result`` is anything with whole 32-bit words: bytes, or a
        numpy array; it is copied here. With ``windows`` only what these take is recorded, by default the whole event.
        Raises :class:`ValueError` if they are none.
        """
        if isinstance(streams, str):
            streams = (streams,)
        asked = () if windows is None else tuple(windows)
        if windows is not None and not asked:
            raise ValueError("no windows: leave `windows` out to record the whole event, or reject it")
        return Decision(True, tuple(streams), bytes(result), chains, input, asked)

    @staticmethod
    def reject(*, chains: int = 0, input: int = 0) -> Decision:
        """The event is forgotten."""
        if chains == 0 and input == 0:
            return _REJECTED
        return Decision(False, (), b"", chains, input)

    def __repr__(self) -> str:
        if not self.accepted:
            return "Decision.reject()"
        windows = f", windows={self.windows!r}" if self.windows else ""
        return f"Decision.accept(streams={self.streams!r}, result=<{len(self.result)} bytes>{windows})"


_REJECTED = Decision(False)
