//! Links and triggers from the sample that the project ships.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::ids::EventId;
use dataflow::level1::trigger::TriggerSource;
use dataflow::message::EventInfo;
use dataflow::readout::fragment::status;
use eformat::check_rob;
use parquet::file::reader::SerializedFileReader;
use parquet::record::{Row, RowAccessor};
use rol::{LinkParameters, Links, LinksError, ReadOutError, Sample, SampleError, SampleInput, SampleTriggers, deal};
use testkit::TempDir;

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/data/zee_mu0.parquet")
}

fn sample() -> Arc<Sample> {
    Arc::new(Sample::load(&[path()]).unwrap())
}

fn once(sample: &Arc<Sample>) -> SampleInput {
    SampleInput::new(Arc::clone(sample), false)
}

/// Accepted rows, read the other way that the library offers: row by row.
fn accepted_rows() -> impl Iterator<Item = Row> {
    let reader = SerializedFileReader::new(fs::File::open(path()).unwrap()).unwrap();
    reader.into_iter().map(Result::unwrap).filter(|row| row.get_bool(column(row, "l1_accept")).unwrap())
}

fn column(row: &Row, name: &str) -> usize {
    row.get_column_iter().position(|(column, _)| column == name).unwrap()
}

fn info(ordinal: u64) -> EventInfo {
    EventInfo { event: EventId(1000 + ordinal), ordinal, ..EventInfo::default() }
}

#[test]
fn counts_are_those_of_the_sample() {
    let sample = sample();
    assert_eq!((sample.events(), sample.source_ids().len()), (1843, 163));
    let mean = sample.payload_bytes() as f64 / sample.events() as f64;
    assert_eq!(mean.round(), 1537.0);
}

#[test]
fn payloads_and_triggers_are_those_of_the_rows() {
    let sample = sample();
    for (event, row) in accepted_rows().enumerate().step_by(61) {
        let fragments = row.get_list(column(&row, "fragments")).unwrap().elements();
        for (source, fragment) in fragments.iter().enumerate() {
            let parquet::record::Field::Group(fragment) = fragment else { panic!("{fragment:?}") };
            assert_eq!(fragment.get_uint(0).unwrap(), sample.source_ids()[source]);
            assert_eq!(fragment.get_bytes(1).unwrap().data(), sample.payload(event, source));
        }
        let trigger = sample.trigger(event);
        assert_eq!(trigger.bcid, row.get_ushort(column(&row, "bcid")).unwrap());
        assert_eq!(trigger.trigger_type, row.get_ubyte(column(&row, "l1_trigger_type")).unwrap());
        let rois = row.get_list(column(&row, "rois")).unwrap().elements();
        assert_eq!(trigger.rois.len(), rois.len());
        for (found, expected) in trigger.rois.iter().zip(rois) {
            let parquet::record::Field::Group(expected) = expected else { panic!("{expected:?}") };
            assert_eq!(found.kind, expected.get_ubyte(0).unwrap());
            assert_eq!((found.eta, found.phi), (expected.get_float(3).unwrap(), expected.get_float(4).unwrap()));
            assert_eq!(found.et_mev, expected.get_int(5).unwrap());
            assert_eq!(found.thresholds, expected.get_uint(8).unwrap());
        }
    }
}

/// The fragment of the CTP repeats bunch crossing and trigger type; those of level 1 count the regions of interest.
#[test]
fn fragments_agree_with_their_trigger() {
    let sample = sample();
    let source = |id| sample.source_ids().binary_search(&id).unwrap();
    let (calo, muon, ctp) = (source(0x0073_0000), source(0x0076_0000), source(0x0077_0000));
    for event in 0..sample.events() {
        let words = |source| {
            let words = sample.payload(event, source).as_chunks().0.iter();
            words.map(|word| u32::from_le_bytes(*word)).collect::<Vec<_>>()
        };
        let trigger = sample.trigger(event);
        assert_eq!(words(ctp)[2..4], [u32::from(trigger.bcid), u32::from(trigger.trigger_type)]);
        let records = (words(calo)[0] & 0xffff) + (words(muon)[0] & 0xffff);
        assert_eq!(records as usize, trigger.rois.len());
        assert!((0..sample.source_ids().len()).all(|source| words(source)[0] >> 24 == 0xd1));
    }
}

#[test]
fn links_send_the_payloads_unchanged() {
    let sample = sample();
    let mut next_source = 0;
    for source_ids in deal(sample.source_ids(), 8) {
        let pages = source_ids.len();
        let parameters = LinkParameters { source_ids, pages, adler32: true, ..LinkParameters::default() };
        let mut links = Links::sample(parameters, once(&sample)).unwrap();
        for event in [0, 1, 1842] {
            links
                .read_out(&info(event), &mut |link, _, bulk| {
                    let bytes = bulk.slices()[0].as_bytes();
                    let rob = check_rob(bytes).unwrap();
                    let source = next_source + usize::from(link);
                    assert_eq!(rob.source_id.0, sample.source_ids()[source]);
                    assert_eq!(&bytes[rob.data], sample.payload(event as usize, source));
                })
                .unwrap();
        }
        next_source += links.source_ids().len();
    }
    assert_eq!(next_source, 163);
}

#[test]
fn a_fragment_longer_than_a_page_is_cut_and_says_so() {
    let sample = sample();
    let source_ids = sample.source_ids().to_vec();
    let parameters = LinkParameters { source_ids, page_bytes: 100, ..LinkParameters::default() };
    let mut links = Links::sample(parameters, once(&sample)).unwrap();
    links
        .read_out(&info(0), &mut |link, head, bulk| {
            let payload = sample.payload(0, usize::from(link));
            let bytes = bulk.slices()[0].as_bytes();
            let data = &bytes[check_rob(bytes).unwrap().data];
            assert_eq!(data, &payload[..payload.len().min(16)]);
            assert_eq!(head.status, if payload.len() > 16 { status::TRUNCATED } else { 0 });
        })
        .unwrap();
    assert!(links.counters().flagged > 0);
}

#[test]
fn the_sample_ends_or_repeats() {
    let sample = sample();
    let mut single = SampleTriggers::new(once(&sample));
    let mut round = SampleTriggers::new(SampleInput::new(Arc::clone(&sample), true));
    assert_eq!(single.trigger(1842), Some(sample.trigger(1842)));
    assert_eq!(single.trigger(1843), None);
    assert_eq!(round.trigger(1843), Some(sample.trigger(0)));
    assert_eq!(round.trigger(u64::MAX), Some(sample.trigger((u64::MAX % 1843) as usize)));

    let parameters = LinkParameters { source_ids: vec![0x0077_0000], ..LinkParameters::default() };
    let mut links = Links::sample(parameters.clone(), once(&sample)).unwrap();
    let behind = links.read_out(&info(1843), &mut |_, _, _| panic!("nothing may be delivered"));
    assert!(matches!(behind, Err(ReadOutError::BehindEnd { ordinal: 1843, events: 1843, .. })), "{behind:?}");
    let mut links = Links::sample(parameters, SampleInput::new(Arc::clone(&sample), true)).unwrap();
    let source = sample.source_ids().binary_search(&0x0077_0000).unwrap();
    links
        .read_out(&info(1843 * 2 + 5), &mut |_, head, bulk| {
            let bytes = bulk.slices()[0].as_bytes();
            assert_eq!(head.event, EventId(1000 + 1843 * 2 + 5), "a fresh id");
            assert_eq!(&bytes[check_rob(bytes).unwrap().data], sample.payload(5, source));
        })
        .unwrap();
}

#[test]
fn a_link_that_the_sample_does_not_have_is_an_error() {
    let parameters = LinkParameters { source_ids: vec![0x0077_0001], ..LinkParameters::default() };
    let error = Links::sample(parameters, once(&sample())).err();
    assert!(matches!(error, Some(LinksError::UnknownSource { source_id: 0x0077_0001, sources: 163 })), "{error:?}");
}

#[test]
fn files_that_are_not_samples_are_errors() {
    let directory = TempDir::new("rol-sample");
    let whole = fs::read(path()).unwrap();
    let bad = directory.join("bad.parquet");
    for length in [0, 3, 100, whole.len() / 2, whole.len() - 1] {
        fs::write(&bad, &whole[..length]).unwrap();
        let error = Sample::load(&[&bad]).unwrap_err();
        assert!(matches!(error, SampleError::Parquet { .. }), "{length} bytes: {error}");
        assert!(error.to_string().contains("bad.parquet: file footer"), "{error}");
    }
    fs::write(&bad, [0x5a; 5000]).unwrap();
    assert!(matches!(Sample::load(&[&bad]), Err(SampleError::Parquet { .. })));
    assert!(matches!(Sample::load(&[directory.join("absent")]), Err(SampleError::Io { .. })));
    assert!(matches!(Sample::load(&[directory.path()]), Err(SampleError::Io { .. })));
    assert!(matches!(Sample::load(&[] as &[&Path]), Err(SampleError::NoEvents { .. })));
}

/// Whatever is damaged, loading ends with an error or with another sample of legal form.
#[test]
fn damaged_bytes_are_survived() {
    let directory = TempDir::new("rol-damaged");
    let whole = fs::read(path()).unwrap();
    let bad = directory.join("bad.parquet");
    let footer = whole.len() - 8 - u32::from_le_bytes(whole[whole.len() - 8..][..4].try_into().unwrap()) as usize;
    let pages = (0..12).map(|step| 4 + step * (footer - 4) / 12);
    let metadata = (0..60).map(|step| footer + step * (whole.len() - footer) / 60);
    for at in pages.chain(metadata) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x24;
        fs::write(&bad, &damaged).unwrap();
        if let Err(error) = Sample::load(&[&bad]) {
            assert!(error.to_string().contains("bad.parquet"), "byte {at}: {error}");
        }
    }
}

#[test]
fn columns_of_the_study_are_read() {
    let sample = sample();
    let [file] = sample.files() else { panic!("one file") };
    assert_eq!((file.events.clone(), file.rejected.len()), (0..1843, 2500 - 1843));
    let mut numbers: Vec<u64> =
        (0..1843).map(|event| sample.event_number(event)).chain(file.rejected.clone()).collect();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..2500));
    assert!((0..1843).all(|event| sample.process(event) == "zee" && sample.weight(event).to_bits() == 1_f64.to_bits()));
    assert_eq!((0..1843).map(|event| sample.event_payload_bytes(event)).sum::<usize>(), sample.payload_bytes());
    assert_eq!(sample.items(5), sample.trigger(5).items);
}

#[test]
fn short_fragments_are_padded_with_zeros() {
    let sample = sample();
    let source_ids = sample.source_ids().to_vec();
    let parameters = LinkParameters { source_ids, pages: 163, ..LinkParameters::default() };
    let mut links = Links::sample(parameters.clone(), once(&sample).padded(103)).unwrap();
    for event in 0..20 {
        links
            .read_out(&info(event), &mut |link, head, bulk| {
                let bytes = bulk.slices()[0].as_bytes();
                let data = &bytes[check_rob(bytes).unwrap().data];
                let payload = sample.payload(event as usize, usize::from(link));
                assert_eq!((data.len(), head.status), (payload.len().max(100), 0), "whole words");
                assert!(data[..payload.len()] == *payload && data[payload.len()..].iter().all(|byte| *byte == 0));
            })
            .unwrap();
    }
    let error = Links::sample(parameters, once(&sample).padded(4096)).err();
    assert!(matches!(error, Some(LinksError::PageTooShort { needed_bytes: 4180, .. })), "{error:?}");
}
