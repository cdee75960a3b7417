//! Configurations to start from.

/// A configuration to start from.
#[derive(Clone, Copy, Debug)]
pub struct Template {
    /// Its name, as in `weir init NAME`.
    pub name: &'static str,
    /// What it describes, in a line.
    pub summary: &'static str,
    /// The text of the file.
    pub text: &'static str,
}

/// All templates; the simplest job first.
pub const TEMPLATES: &[Template] = &[
    Template {
        name: "quickstart",
        summary: "the full chain on a sample of simulated collisions",
        text: include_str!("../../../../examples/quickstart.toml"),
    },
    Template {
        name: "trigger",
        summary: "a trigger menu on a mixture of simulated collisions, with processing tasks and streams",
        text: include_str!("../../../../examples/trigger.toml"),
    },
    Template {
        name: "event-builder",
        summary: "event building alone, with emulated read-out systems",
        text: include_str!("../../../../examples/event-builder.toml"),
    },
    Template {
        name: "readout-crate",
        summary: "a read-out crate: triggers and clears go in through a TRG, fragments come out through an EBIF",
        text: include_str!("../../../../examples/readout-crate.toml"),
    },
    Template {
        name: "test-beam",
        summary: "three detectors that send by themselves: emulated ones, until yours are there",
        text: include_str!("../../../../examples/test-beam.toml"),
    },
    Template {
        name: "streaming",
        summary: "eight sources that run free, without any trigger: emulated ones, until yours are there",
        text: include_str!("../../../../examples/streaming.toml"),
    },
    Template {
        name: "full-size",
        summary: "1,600 read-out links and 100 event builders on one machine",
        text: include_str!("../../../../examples/full-size.toml"),
    },
    Template {
        name: "replay",
        summary: "a recorded file, taken apart, built again and recorded",
        text: include_str!("../../../../examples/replay.toml"),
    },
];

/// The text of the template of this name.
pub fn template(name: &str) -> Option<&'static str> {
    TEMPLATES.iter().find(|template| template.name == name).map(|template| template.text)
}
