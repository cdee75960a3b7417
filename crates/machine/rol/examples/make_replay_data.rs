//! Makes the recorded file that `examples/replay.toml` replays, from the sample of the quickstart. It holds the first
//! events that level 1 accepted, without the fragments that hold no hits. The same bytes every time.
//!
//! ```text
//! cargo run -p rol --example make_replay_data [FILE]
//! ```

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::ids::EventId;
use dataflow::message::EventInfo;
use eformat::stream_tag::{Entry, StreamTag, encode};
use eformat::{
    Bcid, DataSeparator, Date, EventHeader, FileEnd, FileHeader, FileName, FileNames, FileStart, FileVersion, Guid,
    Metadata, RunParameters, RunType, SourceId, Stamp, SubDetector, Time, check_rob, event_envelope,
};
use rol::{LinkParameters, Links, Sample, SampleInput};

/// Writes the file.
fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).map_or_else(|| data("replay.data"), PathBuf::from);
    let bytes = replay_data(&data("zee_mu0.parquet"))?;
    std::fs::write(&path, &bytes)?;
    println!("{}: {EVENTS} events, {} bytes", path.display(), bytes.len());
    Ok(())
}

/// The bytes of the file.
///
/// # Errors
/// If the sample cannot be read.
pub fn replay_data(sample: &Path) -> Result<Vec<u8>, Box<dyn Error>> {
    let sample = Arc::new(Sample::load(&[sample])?);
    let source_ids = sample.source_ids().to_vec();
    let pages = source_ids.len();
    let parameters = LinkParameters { source_ids, pages, run_number: RUN_NUMBER, ..LinkParameters::default() };
    let mut links = Links::sample(parameters, SampleInput::new(Arc::clone(&sample), false))?;
    let mut file = header()?.emit();
    let mut event_bytes = 0;
    for number in 0..EVENTS {
        let event = event(&sample, &mut links, number)?;
        let block_bytes = u32::try_from(event.len())?;
        file.extend(DataSeparator { block_number: number + 1, block_bytes }.emit());
        file.extend(&event);
        event_bytes += u64::from(block_bytes);
    }
    let megabytes = FileEnd::megabytes(event_bytes);
    FileEnd {
        closed: stamp(5),
        events: EVENTS,
        megabytes,
        sequence_events: EVENTS,
        sequence_megabytes: megabytes,
        status: 1,
    }
    .emit(&mut file);
    Ok(file)
}

fn header() -> Result<FileHeader, Box<dyn Error>> {
    let name = FileName::new(PROJECT, RUN_NUMBER, "physics", "Main", 1, APPLICATION)?;
    let guid = Guid::time_based(0x01ef_0000_0000_0000, 0, *b"\x01weir1");
    Ok(FileHeader {
        start: FileStart {
            version: FileVersion::V6,
            file_number: 1,
            opened: stamp(0),
            blocks_max: 0,
            megabytes_max: 0,
        },
        names: FileNames { application: APPLICATION.to_owned(), core: name.core() },
        metadata: Some(Metadata::new(guid, [], "physics", "Main", name.project(), 1)),
        run: RunParameters {
            run_number: RUN_NUMBER,
            recording_enabled: 1,
            beam_type: 1,
            beam_energy: 6800,
            ..RunParameters::default()
        },
    })
}

fn event(sample: &Sample, links: &mut Links, number: u32) -> Result<Vec<u8>, Box<dyn Error>> {
    let trigger = sample.trigger(number as usize);
    let info = EventInfo {
        event: EventId(u64::from(number)),
        ordinal: u64::from(number),
        bcid: trigger.bcid,
        items: 0,
        trigger_type: trigger.trigger_type,
        ..EventInfo::default()
    };
    let mut payload = Vec::new();
    links.read_out(&info, &mut |_, _, bulk| {
        for fragment in bulk.slices() {
            let rob = check_rob(fragment.as_bytes()).expect("a fragment that was just made is well formed");
            if rob.data.len() > WORD_OF_AN_EMPTY_FRAGMENT {
                payload.extend_from_slice(fragment.as_bytes());
            }
        }
    })?;
    let header = EventHeader {
        source_id: SourceId::new(SubDetector::TDAQ_SFI, 0),
        status: vec![0],
        seconds: 1_750_000_000 + number,
        global_id: u64::from(number) + 1,
        run_type: RunType::PHYSICS.simulated(),
        run_number: RUN_NUMBER,
        lumi_block: 1,
        lvl1_id: number,
        bcid: Bcid::masked(u32::from(trigger.bcid)),
        trigger_type: trigger.trigger_type,
        stream_tags: encode(&[Entry::Tag(StreamTag::new("physics", "Main", true)?)]),
        ..EventHeader::default()
    };
    let mut event = Vec::new();
    let checksum = event_envelope(&header, [payload.as_slice()], true, &mut event);
    event.extend_from_slice(&payload);
    event.extend(checksum.into_iter().flatten());
    Ok(event)
}

fn stamp(minute: u32) -> Stamp {
    Stamp {
        date: Date::new(15, 6, 2025).expect("a day of the calendar"),
        time: Time::new(15, minute, 0).expect("a time of the day"),
    }
}

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/data").join(name)
}

const EVENTS: u32 = 38;
const RUN_NUMBER: u32 = 105;
const PROJECT: &str = "data25_weir";
const APPLICATION: &str = "SFO-1";
/// The first word of a payload says what follows; where nothing does, there were no hits.
const WORD_OF_AN_EMPTY_FRAGMENT: usize = 4;
