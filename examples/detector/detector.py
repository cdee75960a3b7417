"""The read-out of a trigger logic unit in Python: five functions of a class, which the library calls.

PYTHONPATH=PREFIX/lib/weir/python python3 examples/detector/detector.py shm:tlu --set rate=1000
"""

import time

import numpy as np
import weir


@weir.source
class Tlu:
    """A trigger logic unit that makes up its data: 16 bytes for each trigger."""

    def configure(self, settings):
        self.rate = float(settings.get("rate", 1000))       # triggers per second
        self.last = int(settings.get("triggers", 2**63))    # in one run

    def start(self, run):
        self.triggers = 0
        self.begun = time.monotonic()
        self.is_armed = True

    def read(self, slot):
        if not self.is_armed or self.triggers == self.last:
            return None
        if self.triggers > (time.monotonic() - self.begun) * self.rate:
            return None
        number = self.triggers
        slot[:16].view(np.uint64)[:] = number, number * 25      # in place, in the partition's memory
        self.triggers += 1
        return number, 16

    def stop(self):
        self.is_armed = False

    def status(self):
        return f"{self.triggers} triggers"


if __name__ == "__main__":
    Tlu.main()
