//! `weir host`, which stays on a host of a farm, and `weir call`, which has it start an agent.

use agents::{FarmKey, HostService, call};
use terminal::{Exit, complain};

use crate::cli::{CallArgs, HostArgs};

/// Serves until somebody ends it.
pub(crate) fn serve(args: &HostArgs) -> Exit {
    let key = match FarmKey::read(&args.key) {
        Ok(key) => key,
        Err(error) => {
            complain(&format!("weir host: {error}"));
            return Exit::Wrong;
        }
    };
    match HostService::listen(args.listen, key) {
        Ok(service) => {
            complain(&format!("weir host: listens at {}", service.address().unwrap_or(args.listen)));
            service.serve(|words| complain(&format!("weir host: {words}")))
        }
        Err(error) => {
            complain(&format!("weir host: {error}"));
            Exit::NotStarted
        }
    }
}

/// Waits until the agent has ended that it asked for.
pub(crate) fn call_for_agent(args: &CallArgs) -> Exit {
    let key = match FarmKey::read(&args.key) {
        Ok(key) => key,
        Err(error) => {
            complain(&format!("weir call: {error}"));
            return Exit::Wrong;
        }
    };
    match call(&args.address, &key, &args.arguments) {
        Ok(0) => Exit::Well,
        Ok(1) => Exit::Wrong,
        Ok(_) => Exit::NotStarted,
        Err(error) => {
            complain(&format!("weir call: {error}"));
            Exit::NotStarted
        }
    }
}
