//! Samples that other programs have written, by `data/make.py`.

use std::path::{Path, PathBuf};

use rol::{Sample, read_rows};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name).with_extension("parquet")
}

#[test]
fn samples_are_read_as_pandas_polars_and_pyarrow_write_them() {
    for name in ["pandas", "polars", "pyarrow_gzip", "pyarrow_lz4", "pyarrow_pages_v2", "pyarrow_delta"] {
        let sample = Sample::load(&[data(name)]).unwrap();
        assert_eq!((sample.events(), sample.source_ids()), (1, [1, 2].as_slice()), "{name}");
        assert_eq!((sample.payload(0, 0), sample.payload(0, 1)), ([].as_slice(), [9; 8].as_slice()), "{name}");
        assert_eq!((sample.event_number(0), sample.weight(0).to_bits()), (71, 0.25_f64.to_bits()), "{name}");
        assert_eq!((sample.process(0), sample.files()[0].rejected.as_slice()), ("zee", [70].as_slice()), "{name}");
        let trigger = sample.trigger(0);
        assert_eq!((trigger.bcid, trigger.trigger_type, trigger.items, trigger.rois.len()), (12, 0x84, 8, 1), "{name}");
        let roi = trigger.rois[0];
        assert_eq!((roi.kind, roi.ieta, roi.iphi, roi.aux_mev), (1, 11, 21, [200, -2]), "{name}");
        assert_eq!((roi.eta, roi.phi, roi.et_mev, roi.thresholds), (-1.5, 6.0, 30_000, u32::MAX), "{name}");
        let rows = read_rows(&data(name)).unwrap();
        assert_eq!((rows.len(), rows[1].rois.as_slice(), rows[1].payload_bytes), (2, [roi].as_slice(), 8), "{name}");
    }
}

#[test]
fn another_compression_is_named() {
    let error = Sample::load(&[data("pyarrow_brotli")]).unwrap_err().to_string();
    assert!(error.contains("pyarrow_brotli.parquet") && error.to_lowercase().contains("brotli"), "{error}");
}
