"""Algorithms of the event filter that decide, or fail in every way there is."""

import ctypes
import os
import time

from weir import Decision


def _is_bad(event):
    return event.ordinal % 40 == 7


class Odd:
    """Takes every other event, and looks at all of its data."""

    def __init__(self, setup):
        self.keep = setup.parameters["keep"]

    def process(self, event):
        words = sum(fragment.data.size for fragment in event.fragments.values())
        assert words > len(event.fragments)
        if event.ordinal % 2 == self.keep:
            return Decision.accept(result=words.to_bytes(4, "little"))
        return Decision.reject()


class Raises:
    def process(self, event):
        if _is_bad(event):
            raise ValueError(f"event {event.event_number} is bad")
        return event.ordinal % 2 == 0


class Crashes:
    def process(self, event):
        if _is_bad(event):
            ctypes.string_at(0)
        return event.ordinal % 2 == 0


class Leaves:
    def process(self, event):
        if _is_bad(event):
            os._exit(3)
        return event.ordinal % 2 == 0


class Streams:
    """Sends events to streams by name."""

    def process(self, event):
        if event.ordinal % 4 == 0:
            return Decision.accept(streams=("calibration_X",), result=event.ordinal.to_bytes(4, "little"))
        if event.ordinal % 4 == 1:
            return Decision.accept(streams=("calibration_X", "physics_Main"))
        if event.ordinal == 6:
            return Decision.accept(streams=("calibration_Y",))
        return event.ordinal % 4 == 2


class Slow:
    """As a reconstruction that takes its time."""

    def __init__(self, setup):
        self.seconds = setup.parameters["seconds"]

    def process(self, event):
        time.sleep(self.seconds)
        return True


class Killed:
    """Waits for its end from outside, at event 7."""

    def __init__(self, setup):
        self.mark = setup.parameters["mark"]

    def process(self, event):
        if event.ordinal == 7:
            with open(self.mark, "w") as mark:
                mark.write(str(os.getpid()))
            time.sleep(1000)
        return event.ordinal % 2 == 0


class Loops:
    def process(self, event):
        while _is_bad(event):
            pass
        return event.ordinal % 2 == 0


class Leaks:
    def process(self, event):
        hoard = []
        while _is_bad(event):
            hoard.append(bytearray(1 << 24))
        return event.ordinal % 2 == 0
