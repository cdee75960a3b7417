"""Whether RAW files of a test beam have for each trigger what its sources wrote down themselves. Status 0 if they do.

  test_beam.py DIRECTORY FIRST LAST tlu=RECORD telescope=RECORD device=RECORD

Events from FIRST up to LAST may have other data of the device.
"""

import pathlib
import struct
import sys

from raw_files import chunks, events, fragments

NUMBERED, TIMED = 0x0301_0000, 0x0301_0001


def record(path):
    """What a source wrote down: number, begin, end and payload of each fragment."""
    data, at = pathlib.Path(path).read_bytes(), 0
    while at + 28 <= len(data):
        number, begin, end, length = struct.unpack_from("<QQQI", data, at)
        yield number, begin, end, data[at + 28 : at + 28 + length]
        at += 28 + length


def main(directory, first, last, *records):
    written, spared = {}, range(int(first), int(last))
    for name, path in (argument.split("=", 1) for argument in records):
        written[name] = {number: (begin, end, data) for number, begin, end, data in record(path)}
    found = dict(map(fragments, (event for path in sorted(pathlib.Path(directory).glob("*.data")) for event in events(path))))
    if found.keys() != written["tlu"].keys():
        sys.exit(f"{len(found)} events, and {len(written['tlu'])} triggers")
    hits = 0
    for number, event in found.items():
        for place, name in enumerate(("tlu", "telescope")):
            status, version, size, data = event[0x0051_0000 + place]
            if (status, version) != (0, NUMBERED) or data[:size] != written[name][number][2]:
                sys.exit(f"event {number}: not what {name} has written down, status {status:#x}")
        status, version, size, data = event[0x0051_0002]
        expected = [written["device"][number]] if number in written["device"] else []
        if number in spared:
            continue
        if (status, version, size) != (0, TIMED, len(expected)) or list(chunks(data)) != expected:
            sys.exit(f"event {number}: not what device has written down, status {status:#x}, {size} chunks")
        hits += size
    print(f"{len(found)} events, {hits} of them with data of the device")


main(*sys.argv[1:])
