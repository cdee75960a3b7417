"""Reads RAW files by the published format alone, and compares what they hold with what the sources wrote down themselves.

independent.py ID=RECORD… -- FILE…   prints for each source how many fragments are the same, differ, are in no file, or in no record.
"""

import hashlib
import json
import struct
import sys

split = sys.argv.index("--")
records, files = sys.argv[1:split], sys.argv[split + 1 :]


def words(data, at, count):
    return struct.unpack_from(f"<{count}I", data, at)


def expect(found, expected, what):
    if found != expected:
        sys.exit(f"{what} is {found:#x}, expected {expected:#x}")


def text_at(data, at):
    """A length and as many bytes, filled up to whole words: where it ends."""
    return at + 4 + (words(data, at, 1)[0] + 3) // 4 * 4


def events(data):
    """The full events of a file of version 6."""
    marker, size, version = words(data, 0, 3)
    expect(marker, 0x1234AAAA, "the file's marker")
    expect(version, 6, "the file's version")
    at = 4 * size
    expect(words(data, at, 1)[0], 0x1234AABB, "the marker of the names")
    at = text_at(data, text_at(data, at + 4))
    if words(data, at, 1)[0] == 0x1234AABC:
        count = words(data, at + 4, 1)[0]
        at += 8
        for _ in range(count):
            at = text_at(data, at)
    marker, size = words(data, at, 2)
    expect(marker, 0x1234BBBB, "the marker of the run's parameters")
    at += 4 * size
    while words(data, at, 1)[0] != 0x1234DDDD:
        marker, size, _, length = words(data, at, 4)
        expect(marker, 0x1234CCCC, "the marker before an event")
        at += 4 * size
        yield data[at : at + length]
        at += length


def fragments(event):
    """Source, event number, status and data of each ROB."""
    marker, size, header, version, _, count = words(event, 0, 6)
    expect(marker, 0xAA1234AA, "the event's marker")
    expect(version >> 16, 0x0500, "the event's version")
    expect(4 * size, len(event), "the event's size")
    checksum = words(event, 4 * (6 + count), 1)[0]
    low, high = words(event, 4 * (7 + count) + 8, 2)
    at, end = 4 * header, 4 * (size - (checksum != 0))
    while at < end:
        marker, size, header, _, source, count = words(event, at, 6)
        expect(marker, 0xDD1234DD, "the ROB's marker")
        status = words(event, at + 24, count)[0] if count else 0
        has_sum = words(event, at + 4 * (6 + count), 1)[0] != 0
        rod, behind = at + 4 * header, at + 4 * (size - has_sum)
        if behind - rod >= 48:
            expect(words(event, rod, 1)[0], 0xEE1234EE, "the ROD's marker")
            length = words(event, rod + 32, 1)[0]
            _, data_words, _ = words(event, behind - 12, 3)
            yield source, high << 32 | low, status, event[rod + 36 : rod + 36 + 4 * data_words][:length]
        at += 4 * size


def written(path):
    """What a source says that it has sent: number, length, payload. The last one may be cut."""
    data, at, found = open(path, "rb").read(), 0, {}
    while at + 12 <= len(data):
        number, length = struct.unpack_from("<QI", data, at)
        if at + 12 + length > len(data):
            break
        found.setdefault(number, hashlib.sha256(data[at + 12 : at + 12 + length]).digest())
        at += 12 + length
    return found


recorded = {}
for path in files:
    for event in events(open(path, "rb").read()):
        for source, number, status, data in fragments(event):
            # Those of a source that had nothing are made up, and marked as lost.
            if not status & 0x2000 << 16:
                recorded.setdefault(source, {})[number] = hashlib.sha256(data).digest()
summary = {}
for record in records:
    identifier, path = record.split("=", 1)
    sent, kept = written(path), recorded.get(int(identifier, 0), {})
    summary[identifier] = {
        "same": sum(sent.get(number) == sum_ for number, sum_ in kept.items()),
        "differ": sum(number in sent and sent[number] != sum_ for number, sum_ in kept.items()),
        "in_no_file": len(sent.keys() - kept.keys()),
        "in_no_record": len(kept.keys() - sent.keys()),
    }
print(json.dumps(summary))
