"""Prints what RAW files hold of each slice, as JSON: the independent reader of `windows.rs`."""

import json
import pathlib
import struct
import sys

import raw_files


def windows(data):
    """The windows of a fragment that says which were asked for, and what of each source is left out."""
    version, words = struct.unpack_from("<II", data)
    assert version == 0xD2040001, hex(version)
    asked, at, end = [], 8, 8 + 4 * words
    while at < end:
        begin, behind, count = struct.unpack_from("<QQI", data, at)
        asked.append([begin, behind, list(struct.unpack_from(f"<{count}I", data, at + 20))])
        at += 20 + 4 * count
    return {"asked": asked, "left_out": [list(one) for one in struct.iter_unpack("<IIII", data[at:])]}


def main():
    found = []
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*.data")):
        for event in raw_files.events(path):
            number, fragments = raw_files.fragments(event)
            partial = struct.unpack_from("<I", event, 24)[0] >> 31
            said = fragments.pop(0x7C0001, None)
            slices = {}
            for source, (status, version, size, data) in fragments.items():
                if source >> 16 != 0x7C:
                    timed = version & 0xFFFF == 1
                    chunks = [[begin, end, payload.hex()] for begin, end, payload in raw_files.chunks(data)] if timed else None
                    assert not timed or size == len(chunks), "the number of chunks in the ROD header"
                    slices[source] = {"status": status, "chunks": chunks, "bytes": len(data)}
            record = {"event": number, "partial": partial, "sources": slices, "stream": path.name.split(".")[2]}
            found.append({**record, **({"said": windows(said[3])} if said else {})})
    json.dump(found, sys.stdout)


main()
