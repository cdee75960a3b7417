"""Event-filter algorithms in Python for the Weir trigger and data-acquisition system.

An algorithm is a class with ``process(event) -> Decision``; see :class:`Event` and :class:`Decision`. Weir runs it in
processes of its own, which read events in place in shared memory: ``python -m weir.pt FILE.py:Class``.
"""

import sys as _sys

try:
    import numpy as _numpy  # noqa: F401
except ImportError as _missing:
    raise ImportError(
        f"weir needs numpy, which {_sys.executable} does not have ({_missing}): "
        f"install it by `{_sys.executable} -m pip install numpy`"
    ) from None

from weir.decision import Decision
from weir.event import Event, EventOver, Fragment, Fragments, Setup

__all__ = ["Decision", "Event", "EventOver", "Fragment", "Fragments", "Setup"]
