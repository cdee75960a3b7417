//! `weir host`, which stays on a host of a farm, and `weir call`, which has it start an agent.

use std::error::Error;

use agents::{FarmKey, HostService, call};
use terminal::{Exit, complain};

use crate::cli::{CallArgs, HostArgs};

/// Serves until somebody ends it.
pub(crate) fn serve(args: &HostArgs) -> Exit {
    let tell = |words: &str| complain(&format!("weir host: {words}"));
    let key = match FarmKey::read(&args.key) {
        Ok(key) => key,
        Err(error) => return ended(Exit::Wrong, "host", &error),
    };
    match HostService::listen(args.listen, key) {
        Ok(service) => {
            tell(&format!("listens at {}", service.address().unwrap_or(args.listen)));
            service.serve(tell)
        }
        Err(error) => ended(Exit::NotStarted, "host", &error),
    }
}

/// Waits until the agent has ended that it asked for.
pub(crate) fn call_for_agent(args: &CallArgs) -> Exit {
    let key = match FarmKey::read(&args.key) {
        Ok(key) => key,
        Err(error) => return ended(Exit::Wrong, "call", &error),
    };
    match call(&args.address, &key, &args.arguments) {
        Ok(0) => Exit::Well,
        Ok(1) => Exit::Wrong,
        Ok(_) => Exit::NotStarted,
        Err(error) => ended(Exit::NotStarted, "call", &error),
    }
}

fn ended(exit: Exit, command: &str, error: &dyn Error) -> Exit {
    complain(&format!("weir {command}: {error}"));
    exit
}
