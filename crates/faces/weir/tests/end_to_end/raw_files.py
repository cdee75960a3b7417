"""Events of RAW files, by a reader that knows the file format and nothing of Weir."""

import struct
import sys


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


def chunks(data):
    """The chunks of an event, with their times, behind its own head."""
    _, _, count, _ = struct.unpack_from("<QQII", data)
    at = 24
    for _ in range(count):
        begin, end, length, _ = struct.unpack_from("<QQII", data, at)
        yield begin, end, data[at + 24 : at + 24 + length]
        at += 24 + (length + 3) // 4 * 4
