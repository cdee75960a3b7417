//! Reading events out in one thread, with as many events resident as a read-out system holds. Each event read out drops
//! the oldest one, so that pages are out of the caches.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use base::ids::EventId;
use configuration::{Payload, Size, SizeDistribution};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use dataflow::message::EventInfo;
use rol::{Emulation, LinkParameters, Links, Sample, SampleInput, emulated_source_ids};

fn emulator(criterion: &mut Criterion) {
    let source_ids = emulated_source_ids(0x51, 12);
    let emulation =
        Emulation { sizes: SizeDistribution::Fixed(Size::from_bytes(1000)), seed: 1, payload: Payload::Prefilled };
    for adler32 in [false, true] {
        let parameters = LinkParameters {
            source_ids: source_ids.clone(),
            adler32,
            pages: 12 * (RESIDENT + 1),
            ..LinkParameters::default()
        };
        let links = Links::emulator(parameters, &emulation).expect("the parameters are possible");
        bench(criterion, if adler32 { "emulator 1 kB, Adler-32" } else { "emulator 1 kB" }, links);
    }
}

fn sample(criterion: &mut Criterion) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/data/zee_mu0.parquet");
    let sample = Arc::new(Sample::load(&[path]).expect("the project ships the sample"));
    let parameters = LinkParameters {
        source_ids: sample.source_ids()[..20].to_vec(),
        pages: 20 * (RESIDENT + 1),
        ..LinkParameters::default()
    };
    let links = Links::sample(parameters, SampleInput::new(sample, true)).expect("the sources are in the sample");
    bench(criterion, "sample", links);
}

fn bench(criterion: &mut Criterion, name: &str, mut links: Links) {
    let mut group = criterion.benchmark_group("read_out");
    group.throughput(Throughput::Elements(links.source_ids().len() as u64));
    let mut resident = VecDeque::new();
    let mut next = 0;
    group.bench_function(name, |bencher| {
        bencher.iter(|| {
            let event = EventInfo { event: EventId(next), ordinal: next, ..EventInfo::default() };
            next += 1;
            if resident.len() == RESIDENT * links.source_ids().len() {
                resident.drain(..links.source_ids().len());
            }
            links.read_out(&event, &mut |_, _, bulk| resident.push_back(bulk)).expect("there are pages for one more");
        });
    });
    group.finish();
}

/// Events; of 12 or 20 links in pages of 4 kB that is tens of megabytes.
const RESIDENT: usize = 512;

criterion_group!(benches, emulator, sample);
criterion_main!(benches);
