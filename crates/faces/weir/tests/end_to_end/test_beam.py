"""Whether RAW files of a test beam have for each trigger what its sources wrote down themselves. Status 0 if they do.

It knows the file format and nothing of Weir:  test_beam.py DIRECTORY FIRST LAST tlu=RECORD telescope=RECORD device=RECORD

Events from FIRST up to LAST may have other data of the device.
"""

import pathlib
import struct
import sys

NUMBERED, TIMED = 0x0301_0000, 0x0301_0001


def words(data):
    return struct.unpack(f"<{len(data) // 4}I", data)


def events(path):
    """The full event fragments of a file."""
    data, at = path.read_bytes(), 0
    while at < len(data):
        marker, length = struct.unpack_from("<II", data, at)
        if marker == 0x1234CCCC:
            (size,) = struct.unpack_from("<I", data, at + 12)
            yield data[at + 16 : at + 16 + size]
            at += 16 + size
        elif marker in (0x1234AABB, 0x1234AABC):
            count, at = (2, at + 4) if marker == 0x1234AABB else (length, at + 8)
            for _ in range(count):
                at += 4 + (struct.unpack_from("<I", data, at)[0] + 3) // 4 * 4
        elif marker in (0x1234AAAA, 0x1234BBBB, 0x1234DDDD):
            at += 4 * length
        else:
            sys.exit(f"{path}: {marker:#x} at {at} begins no record")


def fragments(event):
    """Global number of an event, and source, status, kind, length and data of each ROD."""
    head = words(event[:28])
    assert head[0] == 0xAA1234AA and 4 * head[1] == len(event), "an event"
    specific = 4 * (7 + head[5])
    low, high = struct.unpack_from("<II", event, specific + 8)
    assert struct.unpack_from("<I", event, specific + 40)[0] == 0, "not compressed"
    found, at = {}, 4 * head[2]
    end = len(event) - (4 if words(event[specific - 4 : specific])[0] else 0)
    while at < end:
        rob = words(event[at : at + 24])
        assert rob[0] == 0xDD1234DD, "a ROB fragment"
        checksum = words(event[at + 4 * rob[2] - 4 : at + 4 * rob[2]])[0]
        rod = event[at + 4 * rob[2] : at + 4 * rob[1] - (4 if checksum else 0)]
        status = words(event[at + 24 : at + 28])[0] if rob[5] else 0
        version, size = words(rod[8:12])[0], words(rod[32:36])[0]
        statuses, count, position = words(rod[-12:])
        begin = 36 + (0 if position else 4 * statuses)
        found[rob[4]] = (status, version, size, rod[begin : begin + 4 * count])
        at += 4 * rob[1]
    return low | high << 32, found


def record(path):
    """What a source wrote down: number, begin, end and payload of each fragment."""
    data, at = pathlib.Path(path).read_bytes(), 0
    while at + 28 <= len(data):
        number, begin, end, length = struct.unpack_from("<QQQI", data, at)
        yield number, begin, end, data[at + 28 : at + 28 + length]
        at += 28 + length


def chunks(data):
    """The chunks of an event, with their times, behind its own head."""
    _, _, count, _ = struct.unpack_from("<QQII", data)
    at = 24
    for _ in range(count):
        begin, end, length, _ = struct.unpack_from("<QQII", data, at)
        yield begin, end, data[at + 24 : at + 24 + length]
        at += 24 + (length + 3) // 4 * 4


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
