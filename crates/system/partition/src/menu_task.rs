//! A processing task that runs the menu on built events: `weir pt`, which an event-filter daemon starts.

use std::sync::Arc;

use configuration::Partition;
use processing::{Algorithm, Decision, EventView, ServeError, serve};
use trigger::{Filter, FilterResult};

/// Serves the EFD that started this process until it closes the connection.
///
/// # Errors
/// Nobody is there to be served, or does not speak the protocol.
pub fn run() -> Result<(), ServeError> {
    serve(make)
}

fn make(setup: &str) -> Result<Box<dyn Algorithm>, String> {
    let partition = Partition::parse("the configuration of the EFD", setup, &[]).map_err(|error| error.to_string())?;
    let menu = partition.resolve_menu().map_err(|error| error.to_string())?.ok_or("the table [menu] is absent")?;
    Ok(Box::new(MenuFilter { filter: Filter::new(Arc::clone(&menu)) }))
}

struct MenuFilter {
    filter: Filter,
}

impl Algorithm for MenuFilter {
    fn process(&mut self, event: &EventView<'_>) -> Decision {
        let fragments = event.fragments().map(|rob| (rob.source_id.0, rob.data)).collect();
        decide(&mut self.filter, event.event_number(), fragments)
    }
}

/// What the menu decides on an event, by source identifiers and data of its fragments.
pub fn decide(filter: &mut Filter, event_number: u64, mut fragments: Vec<(u32, &[u8])>) -> Decision {
    fragments.sort_unstable_by_key(|(source_id, _)| *source_id);
    let decision = filter.decide(event_number, &fragments);
    let (input, chains) = (decision.input, decision.passed);
    if !decision.accept() && decision.missing_fragments > 0 {
        return Decision::Fail(format!("rejected, but {} fragments are missing", decision.missing_fragments));
    }
    if !decision.accept() {
        return Decision::Reject { chains, input };
    }
    let result = FilterResult { decision, reason: String::new() }.to_words();
    Decision::Accept { streams: 0, chains, input, result, windows: Vec::new() }
}
