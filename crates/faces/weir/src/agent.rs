//! `weir agent`: starts, watches and ends the applications of a host.

use std::io;
use std::net::SocketAddr;

use agents::{Agent, Inquiries, inquiries};
use service::Exposition;
use terminal::{Exit, complain};

use crate::cli::AgentArgs;

/// Serves until run control is gone, or needs it no more.
pub(crate) fn main(args: AgentArgs) -> Exit {
    let AgentArgs { host, join, at, directory, metrics } = args;
    let shown = metrics.map(|address| (address, show(address)));
    let shown = shown.and_then(|(address, shown)| match shown {
        Ok(shown) => Some(shown),
        // Whoever measures is never in the way of data.
        Err(cause) => {
            complain(&format!("weir agent {host}: no metrics at {address} (host.metrics): {cause}"));
            None
        }
    });
    match (Agent { host: host.clone(), join, at, directory }).run(shown) {
        Ok(()) => Exit::Well,
        Err(error) => {
            complain(&format!("weir agent {host}: {error}"));
            Exit::NotStarted
        }
    }
}

fn show(address: SocketAddr) -> io::Result<(SocketAddr, Inquiries)> {
    let (inquirer, inquiries) = inquiries();
    let exposition = Exposition::listen(address)?;
    let address = exposition.address();
    exposition.show(inquirer)?;
    Ok((address, inquiries))
}
