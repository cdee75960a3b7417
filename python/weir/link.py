"""A link to a partition: the functions of ``weir.h`` for Python, by ``ctypes``. :mod:`weir.detector` stands on it."""

from __future__ import annotations

import ctypes
import enum
import os
import threading
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_uint8, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]


class Code(enum.IntEnum):
    """Why a call failed."""

    OK, BUSY, BAD_ARGUMENT, UNREACHABLE, REFUSED, CLOSED, TOO_LONG, SYSTEM, FAILED, BLOCKED = range(10)


class Order(enum.IntEnum):
    """What a partition wants."""

    NOTHING, START, STOP, END, ERROR = range(5)


class LinkError(OSError):
    """A call that failed: ``code`` tells errors apart."""

    def __init__(self, code: Code, text: str) -> None:
        super().__init__(text)
        self.code = code


#: The partition checks a CRC-32C of the payload; the device has seen an error in it; the device had to cut it.
CHECKSUM, TRANSMISSION_ERROR, CUT = 4, 8, 16
_HAS_NUMBER, _HAS_TIME = 1, 2
_VIEWS_MAX = 4096
# Of event numbers; another one would become one of these without a word.
_NUMBERS = 1 << 64
# In seconds: Python sees an interrupt (Ctrl-C) only between two calls of the library.
_LOOK = 0.2


class Link:
    """A link to a partition, used by one thread at a time.

    A program that leaves an order waiting for ``deadline`` seconds, without a call of :meth:`wait`, ends with a message and status 70.
    Every function raises :class:`LinkError`.
    """

    def __init__(
        self,
        at: str,
        name: str,
        *,
        key_file: str | None = None,
        id: int = 0,
        patience: float = 60.0,
        deadline: float = 5.0,
    ) -> None:
        self._library = library = _library()
        key = None if key_file is None else os.fsencode(key_file)
        settings = _Settings(name.encode(), key, id, _milliseconds(patience), _milliseconds(deadline))
        self._handle: int | None = None
        self._open(at.encode(), settings)
        #: Number of the run that began last.
        self.run = 0
        #: The longest payload in bytes.
        self.size_max: int = library.weir_size_max(self._handle)
        self._run = c_uint32()
        self._run_at = ctypes.byref(self._run)
        self._head = _Head()
        self._head_at = ctypes.byref(self._head)
        # Those of one length, by address: pages come again and again.
        self._views: dict[int, Bytes] = {}
        self._length = 0
        self._reserve, self._commit, self._send = library.weir_reserve, library.weir_commit, library.weir_send

    def _open(self, at: bytes, settings: Any) -> None:
        """Waits for the partition in a thread of its own, as Python sees an interrupt only where it is."""
        failed: list[LinkError] = []

        def connect() -> None:
            self._handle = self._library.weir_open(at, ctypes.byref(settings))
            if not self._handle:
                # The library keeps what went wrong for the thread that it happened to.
                failed.append(self._error())

        opening = threading.Thread(target=connect, daemon=True)
        opening.start()
        while opening.is_alive():
            opening.join(_LOOK)
        if failed:
            raise failed[0]

    def wait(self, timeout: float | None = None) -> Order:
        """The next order; ``Order.NOTHING`` if none comes within ``timeout`` seconds. ``run`` is the number of the run that starts."""
        order: int = self._library.weir_wait(self._handle, _milliseconds(_LOOK if timeout is None else timeout), self._run_at)
        while order == Order.NOTHING and timeout is None:
            order = self._library.weir_wait(self._handle, _milliseconds(_LOOK), self._run_at)
        if order == Order.ERROR:
            self._fail()
        if order == Order.START:
            self.run = self._run.value
        return _ORDERS[order]

    def reserve(self, length: int) -> Bytes | None:
        """Space for a payload: a writable view of the partition's memory, valid until the next call. ``None`` if it is busy."""
        address: int | None = self._reserve(self._handle, length)
        if not address:
            if self._library.weir_error_code(self._handle) != Code.BUSY:
                self._fail()
            return None
        if length != self._length:
            self._views.clear()
            self._length = length
        view = self._views.get(address)
        if view is None:
            if len(self._views) >= _VIEWS_MAX:
                self._views.clear()
            view = np.frombuffer((c_uint8 * length).from_address(address), np.uint8)
            self._views[address] = view
        return view

    def commit(
        self,
        number: int | None,
        length: int,
        time: tuple[int, int] | None = None,
        trigger_type: int = 0,
        flags: int = 0,
    ) -> None:
        """Sends the first ``length`` bytes of what was reserved. ``time`` is begin and end in ns."""
        if number is None or time is not None or trigger_type or flags or self._head.flags != _HAS_NUMBER:
            self._say(number, time, trigger_type, flags)
        else:
            self._head.number = number if 0 <= number < _NUMBERS else _refuse(number)
        if self._commit(self._handle, self._head_at, length):
            self._fail()

    def send(
        self,
        number: int | None,
        payload: Any,
        time: tuple[int, int] | None = None,
        trigger_type: int = 0,
        flags: int = 0,
    ) -> bool:
        """Copies and sends a payload: ``bytes``, an array, whatever is a buffer. ``False`` if the partition is busy."""
        if type(payload) is not bytes:
            payload = np.ascontiguousarray(payload).tobytes() if isinstance(payload, np.ndarray) else bytes(payload)
        self._say(number, time, trigger_type, flags)
        code: int = self._send(self._handle, self._head_at, payload, len(payload))
        if code > Code.BUSY:
            self._fail()
        return code == Code.OK

    def send_many(self, number: int, payloads: npt.NDArray[Any]) -> int:
        """Sends the rows of an array as fragments of the events ``number``, ``number + 1`` … Says how many it has sent: fewer if the
        partition is busy."""
        rows = np.ascontiguousarray(payloads)
        length = rows.nbytes // len(rows) if len(rows) else 0
        sent: int = self._library.weir_send_many(self._handle, number, rows.ctypes.data, length, len(rows))
        if sent < len(rows) and self._library.weir_error_code(self._handle) != Code.BUSY:
            self._fail()
        return sent

    def idle(self, number: int, time: int = 0) -> None:
        """Says that no fragment of a lower number follows, nor an older one if there is a time."""
        self._check(self._library.weir_idle(self._handle, number, time))

    def report(self, text: str) -> None:
        """Tells run control how the source is."""
        self._check(self._library.weir_report(self._handle, text.encode()))

    def end(self) -> None:
        """Says that all fragments of the run are sent."""
        self._check(self._library.weir_end(self._handle))

    def inside(self, function: str) -> None:
        """Names the function that runs from now on, for the message that ends a program which hangs."""
        self._check(self._library.weir_inside(self._handle, function.encode()))

    def flush(self) -> None:
        """Lets what was sent go out at once; so does :meth:`wait`."""
        self._check(self._library.weir_flush(self._handle))

    def close(self) -> None:
        """Ends the link. No view that it has given may be used any more."""
        handle, self._handle = self._handle, None
        self._views.clear()
        if handle:
            self._library.weir_close(handle)

    def __enter__(self) -> Link:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _say(self, number: int | None, time: tuple[int, int] | None, trigger_type: int, flags: int) -> None:
        head = self._head
        if number is not None:
            head.number = number if 0 <= number < _NUMBERS else _refuse(number)
            flags |= _HAS_NUMBER
        if time is not None:
            head.begin, head.end = time
            flags |= _HAS_TIME
        head.trigger_type = trigger_type
        head.flags = flags

    def _check(self, code: int) -> None:
        if code:
            self._fail()

    def _error(self) -> LinkError:
        code: int = self._library.weir_error_code(self._handle)
        text: bytes = self._library.weir_error(self._handle)
        return LinkError(Code(code), text.decode(errors="replace"))

    def _fail(self) -> None:
        raise self._error()


def _refuse(number: int) -> int:
    raise ValueError(f"event number {number}: expected 0 to 2**64 - 1")


class _Settings(ctypes.Structure):
    _fields_ = [
        ("name", c_char_p),
        ("key_file", c_char_p),
        ("id", c_uint32),
        ("patience_ms", c_uint32),
        ("deadline_ms", c_uint32),
    ]


class _Head(ctypes.Structure):
    _fields_ = [
        ("number", c_uint64),
        ("begin", c_uint64),
        ("end", c_uint64),
        ("trigger_type", c_uint32),
        ("flags", c_uint32),
    ]


_ORDERS = tuple(Order)
_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "weir_open": (c_void_p, [c_char_p, POINTER(_Settings)]),
    "weir_wait": (c_int, [c_void_p, c_int, POINTER(c_uint32)]),
    "weir_reserve": (c_void_p, [c_void_p, c_size_t]),
    "weir_commit": (c_int, [c_void_p, POINTER(_Head), c_size_t]),
    "weir_send": (c_int, [c_void_p, POINTER(_Head), c_char_p, c_size_t]),
    "weir_send_many": (c_size_t, [c_void_p, c_uint64, c_void_p, c_size_t, c_size_t]),
    "weir_idle": (c_int, [c_void_p, c_uint64, c_uint64]),
    "weir_report": (c_int, [c_void_p, c_char_p]),
    "weir_end": (c_int, [c_void_p]),
    "weir_inside": (c_int, [c_void_p, c_char_p]),
    "weir_flush": (c_int, [c_void_p]),
    "weir_size_max": (c_size_t, [c_void_p]),
    "weir_close": (None, [c_void_p]),
    "weir_error": (c_char_p, [c_void_p]),
    "weir_error_code": (c_int, [c_void_p]),
}


def _library() -> ctypes.CDLL:
    """The shared library that `make install` has put beside this package, or else one that the system finds."""
    installed = Path(__file__).resolve().parents[3] / "libweir.so.0"
    given = os.environ.get("WEIR_LIBRARY")
    path = given or (str(installed) if installed.is_file() else "libweir.so.0")
    try:
        library = ctypes.CDLL(path)
    except OSError as missing:
        raise ImportError(
            f"the library of sources is not there ({missing}): install it by `make install PREFIX=…` and use the package in "
            "PREFIX/lib/weir/python, or set WEIR_LIBRARY to libweir.so.0"
        ) from None
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library


def _milliseconds(seconds: float) -> int:
    """At least 1, so that a short wait is none that does not wait."""
    return 0 if seconds == 0 else max(1, round(seconds * 1000))
