"""A detector's read-out in Python: ``@weir.source``, and the loop that calls it."""

from __future__ import annotations

import argparse
import inspect
import signal
import sys
import time
from collections.abc import Callable, Generator, Mapping
from typing import Any, NamedTuple

from weir.link import Bytes, Code, Link, LinkError, Order


class Reading(NamedTuple):
    """A fragment of event ``number``: bytes to be copied, or how many bytes of the slot it has."""

    number: int | None
    payload: Any
    #: Begin and end in ns.
    time: tuple[int, int] | None = None
    trigger_type: int = 0
    #: ``weir.link.CHECKSUM``, ``TRANSMISSION_ERROR``, ``CUT``.
    flags: int = 0


class Idle(NamedTuple):
    """Nothing is there, and no fragment of a lower ``number`` follows. Of a source whose data are rare, so that nobody waits for it."""

    number: int


class Passed(NamedTuple):
    """Nothing is there, and nothing older than ``time`` (ns) follows. Of a source that says times, so that nobody waits for it."""

    time: int


class Sent(NamedTuple):
    """What a source has sent."""

    runs: int
    fragments: int


def source(detector: Any) -> Source:
    """Makes a source of a generator function, a class, or an object of one.

    A generator function gets the number of the run. It yields ``(number, payload)`` for each fragment, and ``None`` when nothing is
    there. The payload is copied; or the generator writes into the slot that ``yield`` gives it, a numpy view of the partition's memory,
    and yields ``(number, length)``. The run ends with the generator, or the generator is closed at its end.

    A class has ``read(slot)``, which returns the same, and, if it wants, ``configure(settings)``, ``start(run)``, ``stop()``,
    ``status()``. After ``stop()`` it is read until ``None``, :class:`Idle` or :class:`Passed`. ``raise StopIteration`` in ``read`` says
    that nothing more will come in the run.
    """
    return Source(detector)


class Source:
    """A source: :meth:`run` it, or let :meth:`main` read the command line."""

    def __init__(self, detector: Any) -> None:
        self._detector = detector
        self.__doc__ = detector.__doc__
        self.__name__ = getattr(detector, "__name__", type(detector).__name__)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self._detector(*arguments, **keywords)

    def run(
        self,
        at: str,
        name: str,
        *,
        key_file: str | None = None,
        id: int = 0,
        patience: float = 60.0,
        deadline: float = 5.0,
        settings: Mapping[str, str] | None = None,
    ) -> Sent:
        """Runs it at ``at``, such as ``"shm:telescope"``, until the partition ends the link."""
        detector = self._detector
        if inspect.isclass(detector):
            detector = detector()
        elif not hasattr(detector, "read"):
            detector = _Generated(detector)
        with Link(at, name, key_file=key_file, id=id, patience=patience, deadline=deadline) as link:
            return _Loop(link, detector, deadline).serve(dict(settings or {}))

    def main(self, arguments: list[str] | None = None) -> None:
        """Runs it as the command line says; ends the program with a message if that fails."""
        parser = options(self.__doc__)
        parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the source")
        given = parser.parse_args(arguments)
        self.run_as(given, dict(pair.partition("=")[::2] for pair in given.set))

    def run_as(self, given: argparse.Namespace, settings: Mapping[str, str] | None = None) -> None:
        """Runs it as :func:`options` were given; ends the program with a message if that fails."""
        name = given.name or given.at.removeprefix("shm:").rsplit("/", 1)[-1].removesuffix(".sock")
        waits = {"patience": given.patience, "deadline": given.deadline}
        try:
            self.run(given.at, name, key_file=given.key_file, settings=settings, **waits)
        except LinkError as error:
            sys.exit(f"{name}: {error}")
        except KeyboardInterrupt:
            sys.exit(128 + signal.SIGINT)


def options(description: str | None) -> argparse.ArgumentParser:
    """The command line that programs of sources have in common."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("at", help='where the partition listens, such as "shm:telescope" or "tcp://127.0.0.1:7101"')
    parser.add_argument("--name", help="name of the source in the configuration; by default that of shm:NAME")
    parser.add_argument("--key-file", help="file with the key of the partition")
    parser.add_argument("--patience", type=float, default=60.0, help="how long to wait for the partition, in seconds")
    parser.add_argument("--deadline", type=float, default=5.0, help="how long the partition may wait for it, in seconds")
    return parser


class _Generated:
    """A generator function as a class with the five functions."""

    def __init__(self, function: Callable[[int], Generator[Any, Bytes | None, None]]) -> None:
        self._function = function
        # The author has written no other function.
        self.name = getattr(function, "__name__", "read")

    def start(self, run: int) -> None:
        self._generator = self._function(run)
        self.read = self._first

    def _first(self, slot: Bytes) -> Any:
        """It runs up to its first yield: it cannot have the slot yet."""
        self.read = self._generator.send
        return next(self._generator)

    def stop(self) -> None:
        self._generator.close()
        self.read = self._nothing

    def _nothing(self, slot: Bytes) -> Any:
        return None


class _Loop:
    """Calls a detector."""

    def __init__(self, link: Link, detector: Any, deadline: float) -> None:
        self._link = link
        self._detector = detector
        self._only = detector.name if isinstance(detector, _Generated) else None
        self._deadline = deadline
        self._runs = self._sent = 0
        self._is_ended = False
        self._said = ""
        self._ask_at = 0.0

    def serve(self, settings: dict[str, str]) -> Sent:
        try:
            self._serve_runs(settings)
        except LinkError as error:
            # Where its end is noticed first is chance.
            if error.code != Code.CLOSED:
                raise
        except Exception as error:
            self._tell(f"{type(error).__name__}: {error}")
            raise
        return Sent(self._runs, self._sent)

    def _serve_runs(self, settings: dict[str, str]) -> None:
        link = self._link
        self._call("configure", settings)
        while (order := link.wait()) != Order.END:
            if order == Order.START:
                self._runs += 1
                self._is_ended = False
                self._call("start", link.run)
                order = self._take_data()
                self._call("stop")
                if order == Order.END:
                    break
                self._drain()
                self._end()

    def _take_data(self) -> Order:
        """Reads until an order ends that."""
        while True:
            pause = self._step()
            self._say_how_it_is()
            order = self._link.wait(pause)
            if order in (Order.STOP, Order.END):
                return order

    def _drain(self) -> None:
        """Reads what the device still holds, as long as the partition may wait."""
        until = time.monotonic() + self._deadline
        while (pause := self._step()) != _PAUSE and time.monotonic() < until:
            # The start of the next run waits for the end of this one.
            if self._link.wait(pause) == Order.END:
                return

    def _step(self) -> float:
        """Reads for a moment, as a look for orders costs more than a fragment. How long to wait before the next time."""
        link, detector, size = self._link, self._detector, self._link.size_max
        reserve, commit, clock = link.reserve, link.commit, time.monotonic
        link.inside(self._only or "read")
        until = clock() + _LOOK_EVERY
        while not self._is_ended:
            slot = reserve(size)
            if slot is None:
                return _BUSY_PAUSE
            try:
                found = detector.read(slot)
            except StopIteration:
                self._end()
                break
            if found is None:
                break
            if type(found) is Passed:
                link.idle(0, found.time)
                break
            if type(found) is Idle:
                link.idle(found.number)
                break
            try:
                payload = found[1]
                if type(payload) is not int:
                    payload = _put(slot, payload)
                if len(found) == 2:
                    commit(found[0], payload)
                else:
                    commit(found[0], payload, *found[2:])
            except (TypeError, IndexError, KeyError) as error:
                raise TypeError(f"read gave {found!r:.100}: expected None, or a number and bytes or a length ({error})") from None
            self._sent += 1
            if clock() >= until:
                return 0.0
        return _PAUSE

    def _end(self) -> None:
        """Nothing more follows in this run."""
        if not self._is_ended:
            self._is_ended = True
            self._link.end()
            self._link.flush()

    def _say_how_it_is(self) -> None:
        now = time.monotonic()
        if now < self._ask_at:
            return
        self._ask_at = now + _STATUS_EVERY
        says = str(self._call("status") or "")[:1000]
        if says and says != self._said:
            self._link.report(says)
            self._said = says

    def _tell(self, text: str) -> None:
        """Run control learns why the source ends, if there is still a link."""
        try:
            self._link.report(text[:1000])
            self._link.flush()
        except LinkError:
            pass

    def _call(self, name: str, *arguments: Any) -> Any:
        function = getattr(self._detector, name, None)
        if function is None:
            return None
        self._link.inside(self._only or name)
        return function(*arguments)


def _put(slot: Bytes, payload: Any) -> int:
    """Copies a payload into a slot, and says how long it is."""
    view = memoryview(payload).cast("B")
    length = len(view)
    if length > len(slot):
        raise ValueError(f"a payload of {length} bytes: expected at most {len(slot)} (size_max of the source)")
    slot.data[:length] = view
    return length


# Seconds.
_LOOK_EVERY = 0.0005
_PAUSE = 0.002
_BUSY_PAUSE = 0.001
_STATUS_EVERY = 1.0
