"""A front-end board that knows nothing of Weir: it sends datagrams, whether anybody listens or not.

python3 examples/detector/udp-board.py 127.0.0.1:7201 --rate 1000

The partition is told what they look like:

[[source]]
name = "board"
at = "udp://0.0.0.0:7201"

[source.frame]
header = 16
counter = { at = 2, width = 2 }
time = [{ at = 4, width = 4, unit = "1 s" }, { at = 8, width = 4, clock = "62.5 MHz" }]
length = { at = 12, width = 2, unit = 2, plus = 16 }
"""

import argparse
import socket
import struct
import time

arguments = argparse.ArgumentParser()
arguments.add_argument("to", help="HOST:PORT")
arguments.add_argument("--rate", type=float, default=1000, help="frames per second")
arguments.add_argument("--count", type=int, default=2**63, help="send so many")
settings = arguments.parse_args()
host, port = settings.to.rsplit(":", 1)
board = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


def frame(number):
    """Identity, counter of 16 bits, seconds, ticks of 16 ns, samples, 0; then samples of 12 bits in words of 16."""
    samples = [(number * 7 + at * at) & 0xFFF for at in range(20 + number % 30)]
    now = time.time_ns()
    head = struct.pack(">HHIIHH", 0xB0A2, number & 0xFFFF, now // 10**9, now % 10**9 // 16, len(samples), 0)
    return head + struct.pack(f">{len(samples)}H", *samples)


begun = time.monotonic()
for number in range(0, settings.count, 2):
    while number > (time.monotonic() - begun) * settings.rate:
        time.sleep(0.0005)
    board.sendto(frame(number) + frame(number + 1), (host, int(port)))     # two frames of a datagram
