//! `weir serve`: run control of a partition as a service, with a page.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread;

use catalogue::{CatalogueError, Keeper};
use configuration::Partition;
use partition::machine::{Findings, judge};
use partition::{Keeping, NotKept, Placement};
use service::{
    BadReferences, Carriers, CarriersError, Desk, Identity, IdentityError, References, ServeError, SessionKey,
    Succession,
};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use terminal::{Exit, complain};

use crate::cli::ServeArgs;

/// Serves a partition until it is interrupted.
pub(crate) fn serve(args: &ServeArgs) -> Exit {
    let (partition, places) = match Partition::load_with_places(&args.config, &args.overrides.set) {
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
    let catalogue = partition.control.catalogue.as_ref().map_or_else(|| PathBuf::from(CATALOGUE), PathBuf::from);
    let references = partition.control.references.as_ref().map(|file| References::read(file.as_ref())).transpose()?;
    let keeper = Keeper::at(&catalogue, &partition)?;
    let succession = succession(args, &partition, &catalogue)?;
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

/// Beside the catalogue; none without hosts, where all applications end with this process.
fn succession(args: &ServeArgs, partition: &Partition, catalogue: &Path) -> Result<Option<Succession>, NotKept> {
    if partition.host.is_empty() {
        return Ok(None);
    }
    let mut path = catalogue.as_os_str().to_owned();
    path.push(format!("{KEPT}{}", partition.partition.name));
    let keeping = Keeping::begin(Path::new(&path), args.take_over, end_at_once)?;
    let left = keeping.left(partition)?;
    Ok(Some(Succession { keeping, left }))
}

/// Another service has taken over: what this one would end belongs to that.
fn end_at_once() {
    complain("weir: another service has taken over: this one ends");
    #[expect(clippy::disallowed_methods, reason = "what dropping would end belongs to somebody else")]
    std::process::exit(i32::from(Exit::Aborted as u8));
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

/// Behind the name of the catalogue: what the next life of run control has to find.
const KEPT: &str = ".control.";
/// Where runs are kept unless `control.catalogue` says so.
const CATALOGUE: &str = "runs.sqlite";
