"""Writes small samples to the folder that is named, as other programs do by default or when told to.

Those in this folder were made by pandas 3.1.1, polars 2.1.0 and pyarrow 26.0.1.
"""

import sys

import numpy, pandas, polars, pyarrow, pyarrow.parquet

out = sys.argv[1]
rois = [dict(type=1, ieta=11, iphi=21, eta=-1.5, phi=6.0, et_mev=30000, aux0_mev=200, aux1_mev=-2, thresholds=0xffffffff)]
rows = dict(
    l1_accept=[False, True], bcid=numpy.array([5, 12], "u2"), event_number=numpy.array([70, 71], "u8"),
    l1_trigger_type=numpy.array([0x84, 0x84], "u1"), l1_tap=numpy.array([0, 8], "u4"), rois=[[], rois],
    fragments=[[dict(source_id=1, payload=b"\1" * 4), dict(source_id=2, payload=b"\2" * 4)],
               [dict(source_id=1, payload=b""), dict(source_id=2, payload=b"\t" * 8)]],
    weight=[1.0, 0.25], process=["minbias", "zee"])
frame = pandas.DataFrame(rows)
frame.to_parquet(f"{out}/pandas.parquet")
narrow = dict(bcid=polars.UInt16, event_number=polars.UInt64, l1_trigger_type=polars.UInt8, l1_tap=polars.UInt32)
lists = {name: list(column) for name, column in rows.items()}
polars.DataFrame(lists, schema_overrides=narrow).write_parquet(f"{out}/polars.parquet")
table = pyarrow.Table.from_pandas(frame, preserve_index=False)
write = pyarrow.parquet.write_table
for name in ["gzip", "lz4", "brotli"]:
    write(table, f"{out}/pyarrow_{name}.parquet", compression=name)
write(table, f"{out}/pyarrow_pages_v2.parquet", data_page_version="2.0")
encodings = dict(
    bcid="DELTA_BINARY_PACKED", event_number="DELTA_BINARY_PACKED", process="DELTA_BYTE_ARRAY", weight="BYTE_STREAM_SPLIT")
write(table, f"{out}/pyarrow_delta.parquet", use_dictionary=False, data_page_version="2.0", column_encoding=encodings)
