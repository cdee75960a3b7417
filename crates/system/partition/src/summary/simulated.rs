//! What only a simulation knows of a run.

use serde::{Deserialize, Serialize};

/// What became of frames and messages in a simulation, and the faults that struck.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Simulated {
    /// Frames on the network, where applications have hosts of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames: Option<Frames>,
    /// Messages that did not come, came late or came once more.
    pub messages: Messages,
    /// Entries of `[[simulation.fault]]` that have struck, in order, one for each application.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<StruckFault>,
}

/// Frames on all links, by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frames {
    /// That hosts have sent; switches copy those of multicasts.
    pub sent: u64,
    /// That came to a host.
    pub delivered: u64,
    /// That came twice.
    pub duplicated: u64,
    /// That were held up.
    pub delayed: u64,
    /// That have overtaken others.
    pub overtaking: u64,
    /// That were lost on a link.
    pub lost: u64,
    /// That were refused as damaged.
    pub damaged: u64,
    /// For which a switch had no room.
    pub dropped: u64,
    /// Times that TCP sent again, told of a gap or not.
    pub tcp_repeats: u64,
}

/// Messages that faults have struck, by cause; those that TCP sends again are not among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Messages {
    /// Lost with a frame.
    pub lost: u64,
    /// Refused as damaged.
    pub damaged: u64,
    /// Lost because a switch had no room.
    pub dropped: u64,
    /// Lost because the network was cut off or in parts.
    pub cut_off: u64,
    /// Lost with the connections of one that died.
    pub reset: u64,
    /// Held back on their connections while the network was cut off or in parts.
    pub held_back: u64,
    /// That came once more as of a former life of their sender.
    pub stale: u64,
    /// That came once more as of another run.
    pub wrong_run: u64,
}

/// A fault that has struck.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StruckFault {
    /// When, in nanoseconds since the start of the run.
    pub at_ns: u64,
    /// What happened, as in the configuration; one application that is parted from all others is cut off.
    pub kind: String,
    /// To whom; in a partition of the network, those on one side.
    pub applications: Vec<String>,
}

impl Frames {
    /// What happened to frames besides that they came, in words; empty if nothing did.
    pub fn troubles(&self) -> Vec<(u64, &'static str)> {
        some([
            (self.lost, "lost"),
            (self.damaged, "damaged"),
            (self.dropped, "dropped by full buffers"),
            (self.duplicated, "doubled"),
            (self.delayed, "held up"),
            (self.overtaking, "overtaking others"),
            (self.tcp_repeats, "repeats of TCP"),
        ])
    }
}

impl Messages {
    /// What happened to messages, in words; empty if nothing did.
    pub fn troubles(&self) -> Vec<(u64, &'static str)> {
        some([
            (self.lost, "lost"),
            (self.damaged, "damaged"),
            (self.dropped, "dropped by full buffers"),
            (self.cut_off, "cut off"),
            (self.reset, "lost with those that died"),
            (self.held_back, "held back"),
            (self.stale, "of former lives"),
            (self.wrong_run, "of another run"),
        ])
    }
}

fn some<const N: usize>(all: [(u64, &'static str); N]) -> Vec<(u64, &'static str)> {
    all.into_iter().filter(|(count, _)| *count > 0).collect()
}
