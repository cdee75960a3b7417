//! `weir pt`: started by an EFD, never by hand.

use terminal::{Exit, complain};

/// Serves the EFD that started this process until it closes the connection.
pub(crate) fn pt() -> Exit {
    match partition::menu_task::run() {
        Ok(()) => Exit::Well,
        Err(error) => {
            complain(&format!("weir: {error}"));
            Exit::NotStarted
        }
    }
}
