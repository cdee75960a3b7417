//! `weir serve`: run control of a partition as a service, with a page.

use std::io;
use std::net::SocketAddr;
use std::thread;

use catalogue::{CatalogueError, Keeper};
use configuration::Partition;
use partition::machine::{Findings, judge};
use partition::{NotKept, Placement};
use service::{
    BadReferences, Carriers, CarriersError, Desk, Identity, IdentityError, References, ServeError, SessionKey,
};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use terminal::{Exit, complain};

use crate::cli::ServeArgs;
use crate::loading::load;
use crate::succession;

/// Serves a partition until it is interrupted.
pub(crate) fn serve(args: &ServeArgs) -> Exit {
    let (partition, places) = match load(&args.config, &args.overrides, &args.playing) {
        Ok(loaded) => loaded,
        Err(error) => {
            complain(&error.to_string());
            return Exit::Wrong;
        }
    };
    let Findings { errors, warnings } = judge(&partition, &places, !args.one_process || !partition.host.is_empty());
    warnings.iter().for_each(|warning| complain(&format!("warning: {warning}")));
    errors.iter().for_each(|error| complain(&error.to_string()));
    if !errors.is_empty() {
        return Exit::Wrong;
    }
    let warnings = warnings.iter().map(ToString::to_string).collect();
    match served(args, partition, warnings) {
        Ok(()) => Exit::Well,
        Err(error) => {
            complain(&format!("weir: {error}"));
            Exit::NotStarted
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum NotServed {
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    #[error(transparent)]
    References(#[from] BadReferences),
    #[error(transparent)]
    Kept(#[from] NotKept),
    #[error(transparent)]
    Carriers(#[from] CarriersError),
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error("signals cannot be caught, threads begun or keys drawn: {0}")]
    System(#[from] io::Error),
}

fn served(args: &ServeArgs, partition: Partition, warnings: Vec<String>) -> Result<(), NotServed> {
    let name = partition.partition.name.clone();
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let identity = identity(args, &host)?;
    let carriers = Carriers::of(&partition)?;
    let catalogue = succession::catalogue(&partition);
    let references = partition.control.references.as_ref().map(|file| References::read(file.as_ref())).transpose()?;
    let keeper = Keeper::at(&catalogue, &partition)?;
    let succession = succession::begin(&partition, args.take_over)?;
    let key = SessionKey::draw()?;
    let placement = if args.one_process { Placement::local() } else { Placement::processes() };
    let references = references.unwrap_or_default();
    let (desk, leaving) = Desk::open(partition, warnings, placement, keeper, references, succession)?;
    let interrupts = interrupts(&desk);
    let served = service::serve(&desk, &key, args.listen, identity.as_ref(), carriers, |address| {
        let url = url(address, &host, identity.is_some());
        complain(&format!("partition {name}: open {url}/#key={} (Ctrl-C ends it)", key.text()));
        if let Some(identity) = &identity {
            complain(&format!("certificate: SHA-256 {}", identity.fingerprint()));
        }
    });
    // Of a desk that nobody serves, or that was left already.
    desk.leave();
    leaving.wait();
    interrupts?.close();
    Ok(served?)
}

/// None where nobody else can listen in.
fn identity(args: &ServeArgs, host: &str) -> Result<Option<Identity>, IdentityError> {
    match (&args.certificate, &args.certificate_key) {
        (Some(certificate), Some(key)) => Identity::read(certificate, key).map(Some),
        _ if args.listen.ip().is_loopback() => Ok(None),
        _ => Identity::draw(args.listen.ip(), host).map(Some),
    }
}

/// What people open. It names the host where the service listens at any address.
fn url(address: SocketAddr, host: &str, is_encrypted: bool) -> String {
    let scheme = if is_encrypted { "https" } else { "http" };
    if address.ip().is_unspecified() && !host.is_empty() {
        format!("{scheme}://{host}:{}", address.port())
    } else {
        format!("{scheme}://{address}")
    }
}

/// The first signal ends the run in order, and then the service; the second one ends the run at once.
fn interrupts(desk: &Desk) -> io::Result<Handle> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let (handle, desk) = (signals.handle(), desk.clone());
    thread::Builder::new().name("interrupts".into()).spawn(move || signals.forever().for_each(|_| desk.leave()))?;
    Ok(handle)
}
