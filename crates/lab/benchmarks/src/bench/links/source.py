"""A source that sends fragments of one length, as fast as the partition takes them: AT KEY_FILE BYTES send-many|generator."""

import sys

import numpy as np
import weir

at, key_file, length, way = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]


def send_many() -> None:
    """A loop of one's own, with rows of an array."""
    rows = np.zeros((256, length), np.uint8)
    with weir.Link(at, "source", key_file=key_file) as link:
        number, running, pause = 0, False, 0.1
        while (order := link.wait(pause)) < weir.Order.END:
            running = (running or order == weir.Order.START) and order != weir.Order.STOP
            pause = 0.0 if running else 0.1
            for _ in range(16 if running else 0):
                rows.fill(number & 0xFF)
                sent = link.send_many(number, rows)
                number += sent
                if sent < len(rows):
                    pause = 0.001  # It is busy: wait for room.
                    break
            if order == weir.Order.STOP:
                link.end()


@weir.source
def device(run):
    """The shortest source there is."""
    payload = bytes(length)
    number = 0
    while True:
        yield number, payload
        number += 1


if way == "generator":
    device.run(at, name="source", key_file=key_file)
else:
    try:
        send_many()
    except weir.LinkError:
        pass  # The partition ends the link while rows are on their way.
