//! The runs of a calibration: of other shapes than what anybody wants to know, so that what is predicted from them is not
//! what was measured.

use std::path::Path;

use configuration::{ConfigurationError, Partition};
use dataflow::ids::Role;

/// A run whose driver is metered.
pub(super) struct Shape {
    pub(super) partition: Partition,
    /// What lives in other processes; what is metered lives here.
    pub(super) in_children: fn(Role) -> bool,
}

/// Runs in one process that end with the event filter.
pub(super) fn within(milliseconds: u64) -> Result<Vec<Shape>, ConfigurationError> {
    let building = [(3, 2, 2_000, 1), (6, 1, 16_000, 1)];
    let building = building.map(|(ros, robs, bytes, sfi)| building_text(milliseconds, ros, robs, bytes, sfi));
    let chains = [(3, 2, 2_000, 30), (12, 1, 500, 60)];
    let chains = chains.map(|(ros, robs, bytes, accept)| chain_text(milliseconds, ros, robs, bytes, accept, None));
    building.iter().chain(&chains).map(|text| shape(text, |_| false)).collect()
}

/// Runs in one process that record: their disk may be slower than all else.
pub(super) fn recording(milliseconds: u64, output: &Path) -> Result<Vec<Shape>, ConfigurationError> {
    let chains = [(3, 1_000, 30), (3, 4_000, 30)];
    let chains = chains.map(|(ros, bytes, accept)| chain_text(milliseconds, ros, 1, bytes, accept, Some(output)));
    chains.iter().map(|text| shape(text, |_| false)).collect()
}

/// Runs over TCP: one side in this process, the other one in others.
pub(super) fn between(milliseconds: u64) -> Result<Vec<Shape>, ConfigurationError> {
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
    let texts = runs.map(|(ros, robs, bytes, children)| (building_text(milliseconds, ros, robs, bytes, 1), children));
    texts.into_iter().map(|(text, children)| shape(&text, children)).collect()
}

/// Runs with a process for each application, which no meter sees.
pub(super) fn apart(milliseconds: u64) -> Result<Vec<Shape>, ConfigurationError> {
    let runs = [(3, 2_000), (6, 500)];
    let texts = runs.map(|(ros, bytes)| building_text(milliseconds, ros, 1, bytes, 1));
    texts.iter().map(|text| shape(text, |_| true)).collect()
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
