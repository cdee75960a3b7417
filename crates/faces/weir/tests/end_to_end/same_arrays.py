"""Whether two RAW files of the BESIII dialect hold the same arrays, as pybes3 reads them. Status 0 if they do."""

import sys

import awkward as ak
import pybes3


def leaves(array, place=""):
    """All records, lists and numbers of a file, each with its place."""
    if not array.fields:
        yield place, array
    for field in array.fields:
        yield from leaves(array[field], f"{place}/{field}")


def main(first, second):
    arrays = [dict(leaves(pybes3.open_raw(path).arrays())) for path in (first, second)]
    if not arrays[0] or arrays[0].keys() != arrays[1].keys():
        sys.exit(f"fields: {sorted(arrays[0])} and {sorted(arrays[1])}")
    for place, array in arrays[0].items():
        if len(array) == 0 or not ak.array_equal(array, arrays[1][place]):
            sys.exit(f"{place}: {array} and {arrays[1][place]}")


main(*sys.argv[1:])
