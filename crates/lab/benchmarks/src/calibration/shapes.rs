//! The runs of a calibration. They have other shapes than what anybody wants to know, so that a prediction is not
//! what was measured.

use std::path::Path;

use base::ids::Role;
use configuration::{ConfigurationError, Partition};
use transport::scheduler::allowed_cpus;

use super::costs::{CoreCount, Way};

/// A run whose driver is metered.
pub(super) struct Shape {
    pub(super) partition: Partition,
    /// What lives in other processes; what is metered lives here.
    pub(super) in_children: fn(Role) -> bool,
}

/// Runs in one process that end with the event filter.
pub(super) fn within(milliseconds: u64) -> Result<Vec<Shape>, ConfigurationError> {
    let building = [(3, 2, 2_000, 1), (6, 1, 16_000, 1), (5, 1, 4_000, 1)];
    let building = building.map(|(ros, robs, bytes, sfi)| building_text(milliseconds, ros, robs, bytes, sfi));
    let chains = [(3, 2, 2_000, 30), (12, 1, 500, 60), (6, 1, 1_500, 40)];
    let chains = chains.map(|(ros, robs, bytes, accept)| chain_text(milliseconds, ros, robs, bytes, accept, None));
    building.iter().chain(&chains).map(|text| shape(text, |_| false)).collect()
}

/// Runs in one process that record: their disk may be slower than all else.
pub(super) fn recording(milliseconds: u64, output: &Path) -> Result<Vec<Shape>, ConfigurationError> {
    let chains = [(3, 1_000, 30), (3, 4_000, 30)];
    let chains = chains.map(|(ros, bytes, accept)| chain_text(milliseconds, ros, 1, bytes, accept, Some(output)));
    chains.iter().map(|text| shape(text, |_| false)).collect()
}

/// Runs between processes: one side in this one, the other in others.
pub(super) fn between(way: Way, milliseconds: u64) -> Result<Vec<Shape>, ConfigurationError> {
    let is_source: fn(Role) -> bool = |role| role == Role::Ros;
    let is_builder: fn(Role) -> bool = |role| role != Role::Ros;
    let not_manager: fn(Role) -> bool = |role| role != Role::Dfm;
    let runs = [
        (2, 1, 4_000, is_source),
        (6, 1, 300, is_source),
        (3, 1, 16_000, is_source),
        (1, 1, 500, is_builder),
        (1, 1, 4_000, is_builder),
        (1, 1, 16_000, is_builder),
        (3, 1, 500, not_manager),
    ];
    // What the components cost is metered over TCP; of the other ways only what carries.
    let runs = if way == Way::Tcp { &runs[..] } else { &runs[..4] };
    let text = |ros, robs, bytes| building_text(milliseconds, ros, robs, bytes, 1) + way.text();
    runs.iter().map(|&(ros, robs, bytes, children)| shape(&text(ros, robs, bytes), children)).collect()
}

/// Runs with a process for each application, which no meter sees.
pub(super) fn apart(way: Way, part: CoreCount, milliseconds: u64) -> Result<Vec<Shape>, ConfigurationError> {
    // Few and many sources, each with small and with large fragments: messages and bytes are told apart by them.
    let runs = [(3, 2_000), (6, 500), (2, 4_000), (5, 700), (3, 500), (6, 2_000)];
    let runs = if part == CoreCount::TwoCores { &runs[..] } else { &runs[..2] };
    let allowed = allowed_cpus();
    let cores = match (part, &allowed[..]) {
        (CoreCount::OneCore, [one, ..]) => vec![*one; 2],
        _ => allowed,
    };
    let text = |ros, bytes| building_text(milliseconds, ros, 1, bytes, 1) + way.text() + &bound_to(&cores);
    runs.iter().map(|&(ros, bytes)| shape(&text(ros, bytes), |_| true)).collect()
}

/// Read-out systems on one core, all others on another one; nothing where there is only one. Where the kernel places processes, a
/// run takes one of several courses.
pub(crate) fn bound_to(cores: &[usize]) -> String {
    match cores {
        [one, other, ..] => format!("\n[processes.cores]\nros = [{one}]\ndfm = [{other}]\nsfi = [{other}]\n"),
        _ => String::new(),
    }
}

/// The same partition on simulated cores, which have the first numbers.
pub(crate) fn as_simulated(partition: &Partition) -> Partition {
    let mut partition = partition.clone();
    let allowed = allowed_cpus();
    let place = |core: u32| allowed.iter().position(|allowed| *allowed == core as usize).map_or(core, |at| at as u32);
    partition.processes.cores = partition.processes.cores.map(place);
    partition
}

/// Data requests and replies in datagrams.
pub(crate) const DATAGRAMS: &str = "\n[transport]\nevent_request = \"udp\"\nevent_reply = \"udp\"\n";
/// Connections through shared memory.
pub(crate) const SHARED: &str = "\n[transport]\nconnections = \"shm\"\n";

impl Way {
    fn text(self) -> &'static str {
        match self {
            Self::Tcp => "",
            Self::SharedMemory => SHARED,
            Self::Datagrams => DATAGRAMS,
        }
    }
}

fn shape(text: &str, in_children: fn(Role) -> bool) -> Result<Shape, ConfigurationError> {
    Ok(Shape { partition: Partition::parse("calibration", text, &[])?, in_children })
}

fn building_text(milliseconds: u64, ros: u32, robs: u32, bytes: u32, sfi: u32) -> String {
    format!(
        r#"
        partition.name = "calibration"
        run.duration = "{milliseconds} ms"
        dfm.input = "self"
        sfi.count = {sfi}
        {}
        "#,
        readout_text(ros, robs, bytes)
    )
}

fn chain_text(ms: u64, ros: u32, robs: u32, bytes: u32, accept_percent: u32, output: Option<&Path>) -> String {
    let record = output.map_or(String::new(), |output| {
        // A TOML basic string takes the escapes of a Rust one for what a path has.
        let output = format!("{:?}", output.display().to_string());
        format!("sfo.stream = \"calibration_Run\"\noutput.directory = {output}")
    });
    format!(
        r#"
        partition.name = "calibration"
        run.duration = "{ms} ms"
        level1 = {{ rois_per_event = 2 }}
        l2sv.count = 1
        l2pu = {{ count = 2, strategy = "two-step", step_accept = "{accept_percent} %" }}
        sfi.count = 2
        ef.policy = "accept"
        {record}
        {}
        "#,
        readout_text(ros, robs, bytes)
    )
}

fn readout_text(ros: u32, robs: u32, bytes: u32) -> String {
    format!(
        r#"
        [ros]
        count = {ros}
        robs = {robs}
        input = "emulator"
        fragment = {{ kind = "fixed", size = "{bytes} B" }}
        request_timeout = "2 s"
        "#
    )
}
