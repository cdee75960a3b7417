//! The names by which time stamps know sections.

use std::sync::LazyLock;

use dataflow::message::Message;
use dataflow::work_kind::WorkKind;

use crate::Section;

/// The section in which a message will be handled.
pub(crate) fn of_kind(message: &Message) -> stamps::Section {
    NAMES.kinds[WorkKind::of(message).0 as usize]
}

pub(crate) fn of_section(section: Section) -> stamps::Section {
    match section {
        Section::Input(_, kind) => NAMES.kinds[kind as usize],
        Section::Pass => NAMES.pass,
        Section::Flush(_) => NAMES.kinds[WorkKind::Flush as usize],
        Section::Local => NAMES.local,
        Section::Encode => NAMES.encode,
        Section::Decode => NAMES.decode,
        Section::Read => NAMES.read,
        Section::Write => NAMES.write,
        Section::ReadDatagrams => NAMES.read_datagrams,
        Section::WriteDatagrams => NAMES.write_datagrams,
    }
}

/// Taking an event from links.
pub(crate) fn of_format() -> stamps::Section {
    NAMES.format
}

struct Names {
    /// In the order of [`WorkKind::ALL`].
    kinds: [stamps::Section; WorkKind::ALL.len()],
    pass: stamps::Section,
    local: stamps::Section,
    encode: stamps::Section,
    decode: stamps::Section,
    read: stamps::Section,
    write: stamps::Section,
    read_datagrams: stamps::Section,
    write_datagrams: stamps::Section,
    format: stamps::Section,
}

static NAMES: LazyLock<Names> = LazyLock::new(|| Names {
    kinds: WorkKind::ALL.map(|kind| stamps::section(kind.name())),
    pass: stamps::section("pass"),
    local: stamps::section("local"),
    encode: stamps::section("encode"),
    decode: stamps::section("decode"),
    read: stamps::section("read"),
    write: stamps::section("write connections"),
    read_datagrams: stamps::section("read datagrams"),
    write_datagrams: stamps::section("write datagrams"),
    format: stamps::section("format"),
});
