"""Event-filter algorithms and read-outs of detectors in Python for the Weir trigger and data-acquisition system.

An algorithm is a class with ``process(event) -> Decision``; see :class:`Event` and :class:`Decision`. Weir runs it in
processes of its own, which read events in place in shared memory: ``python -m weir.pt FILE.py:Class``.

A detector's read-out is a generator function or class with the decorator :func:`source`, in a program of its own.
"""

import sys as _sys

try:
    import numpy as _numpy  # noqa: F401
except ImportError as _missing:
    raise ImportError(
        f"weir needs numpy, which {_sys.executable} does not have ({_missing}): "
        f"install it by `{_sys.executable} -m pip install numpy`"
    ) from None

from weir.decision import Decision, Window
from weir.detector import Idle, Passed, Reading, Sent, Source, source
from weir.event import Chunk, Event, EventOver, Fragment, Fragments, Setup
from weir.link import Link, LinkError, Order

__all__ = [
    "Chunk",
    "Decision",
    "Event",
    "EventOver",
    "Fragment",
    "Fragments",
    "Idle",
    "Link",
    "LinkError",
    "Order",
    "Passed",
    "Reading",
    "Sent",
    "Setup",
    "Source",
    "Window",
    "source",
]
