//! What people are told of a source that has not come: where it is awaited, and how something else takes its place.

use configuration::{Handshake, LinkSource, Matching, Partition, Rate, SourceClock};

/// That a source is awaited at an address. A program can be started there; a device comes by itself.
pub(super) fn notice(partition: &Partition, source: &LinkSource, at: &str) -> String {
    let name = &source.name;
    if source.is_program() {
        format!("waits for source {name} at {at}: start its program, or `{}` in its place", feed(partition, source))
    } else {
        format!("waits for source {name} at {at}")
    }
}

/// What else can be done, where programs are awaited.
pub(super) const PLAY: &str = "with --play-sources the partition plays the sources that it waits for";

/// The command that makes up what the source would send.
fn feed(partition: &Partition, source: &LinkSource) -> String {
    let at = source.address();
    let mut words = vec![format!("weir feed {at}")];
    if at != format!("shm:{}", source.name) {
        words.push(format!("--name {}", source.name));
    }
    if at.starts_with("tcp:") {
        words.push("--key-file KEY".to_owned());
    }
    match (partition.slice_ns(), rate_of_beam(partition), source.handshake) {
        (Some(_), ..) => words.push("--time-based".to_owned()),
        (None, Some(rate), _) => {
            words.push(format!("--beam '{rate}'"));
            words.extend((partition.matching(source) == Matching::Time).then(|| "--no-number".to_owned()));
        }
        (None, None, Some(handshake)) => words.push(format!("--handshake {}", word(handshake))),
        (None, None, None) => {}
    }
    words.push(format!("--size '{}'", source.emulated.mean(source.size_max)));
    words.join(" ")
}

/// Of triggers that all sources see, where some belong to them by their time.
fn rate_of_beam(partition: &Partition) -> Option<Rate> {
    let leader = &partition.source[partition.leader()?];
    let is_timed =
        |source: &LinkSource| partition.matching(source) == Matching::Time || source.clock == SourceClock::Model;
    partition.source.iter().any(is_timed).then(|| leader.emulated.rate.unwrap_or(Rate::from_millihertz(1_000_000)))
}

const fn word(handshake: Handshake) -> &'static str {
    match handshake {
        Handshake::Eudet => "eudet",
        Handshake::Aida => "aida",
        Handshake::AidaNumber => "aida-number",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str, overrides: &[&str]) -> Vec<String> {
        let overrides: Vec<String> = overrides.iter().map(|&key| key.to_owned()).collect();
        let partition = Partition::parse("p", text, &overrides).unwrap();
        partition.source.iter().map(|source| notice(&partition, source, "HERE")).collect()
    }

    #[test]
    fn each_source_is_named_with_the_command_that_takes_its_place() {
        let awaited = [0, 1, 2].map(|source| format!("source.{source}.play=none"));
        let awaited = awaited.each_ref().map(String::as_str);
        let beam = told(include_str!("../../../../../examples/test-beam.toml"), &awaited);
        let feed = "`weir feed shm:tlu --beam '2 kHz' --size '40 B'`";
        assert_eq!(beam[0], format!("waits for source tlu at HERE: start its program, or {feed} in its place"));
        assert!(beam[1].contains("`weir feed shm:telescope --beam '2 kHz' --size '3 kB'`"), "{}", beam[1]);
        assert!(beam[2].contains("`weir feed shm:device --beam '2 kHz' --no-number --size '300 B'`"), "{}", beam[2]);
        let slices = told(include_str!("../../../../../examples/streaming.toml"), &[]);
        assert!(slices[7].contains("`weir feed shm:stream-8 --time-based --size '3 kB'`"), "{}", slices[7]);
    }

    #[test]
    fn what_a_feed_has_to_know_is_in_its_command() {
        let text = "partition.name = \"p\"\npartition.key = \"a key of this partition\"\nlevel1.source = \"link\"\nros.count = 1\n\
                    [[source]]\nname = \"tlu\"\nat = \"tcp://10.0.0.1:7101\"\nhandshake = \"eudet\"\n\
                    [[source]]\nname = \"board\"\nat = \"udp://0.0.0.0:7201\"\nframe = { header = 8, counter = { at = 0, width = 4 } }\n\
                    [dfm]\n[sfi]\ncount = 1\n";
        let told = told(text, &[]);
        let feed = "`weir feed tcp://10.0.0.1:7101 --name tlu --key-file KEY --handshake eudet --size '1 kB'`";
        assert!(told[0].contains(feed), "{}", told[0]);
        assert_eq!(told[1], "waits for source board at HERE");
    }
}
