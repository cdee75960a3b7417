"""What an algorithm decides."""

from __future__ import annotations

from collections.abc import Iterable


class Decision:
    """What becomes of an event. Made by :meth:`accept` and :meth:`reject`; does not change."""

    __slots__ = ("accepted", "chains", "input", "result", "streams")

    accepted: bool
    #: Names of streams, of those in the configuration; none: the streams of the chains that accepted.
    streams: tuple[str, ...]
    #: Data of the event-filter result fragment, little-endian 32-bit words.
    result: bytes
    #: Chains that accepted, one bit each.
    chains: int
    #: Chains that were tried, one bit each.
    input: int

    def __init__(
        self, accepted: bool, streams: tuple[str, ...] = (), result: bytes = b"", chains: int = 0, input: int = 0
    ) -> None:
        self.accepted = accepted
        self.streams = streams
        self.result = result
        self.chains = chains
        self.input = input

    @staticmethod
    def accept(streams: Iterable[str] = (), result: bytes = b"", *, chains: int = 0, input: int = 0) -> Decision:
        """The event is recorded.

        ``streams`` are names of the configuration. ``result`` is anything with whole 32-bit words: bytes, or a
        numpy array; it is copied here.
        """
        if isinstance(streams, str):
            streams = (streams,)
        return Decision(True, tuple(streams), bytes(result), chains, input)

    @staticmethod
    def reject(*, chains: int = 0, input: int = 0) -> Decision:
        """The event is forgotten."""
        if chains == 0 and input == 0:
            return _REJECTED
        return Decision(False, (), b"", chains, input)

    def __repr__(self) -> str:
        if not self.accepted:
            return "Decision.reject()"
        return f"Decision.accept(streams={self.streams!r}, result=<{len(self.result)} bytes>)"


_REJECTED = Decision(False)
