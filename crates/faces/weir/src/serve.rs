//! `weir serve`: run control of a partition as a service, with a page.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::thread;

use catalogue::{CatalogueError, Keeper};
use partition::{NotKept, Placement};
use service::{
    Authority, AuthorityError, BadReferences, Carriers, CarriersError, Configured, Desk, Identity, IdentityError,
    MessageLog, Reader, References, ServeError, Succession,
};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use terminal::{Exit, complain};

use crate::cli::ServeArgs;
use crate::loading::load_well;
use crate::succession;

/// Serves a partition until it is interrupted.
pub(crate) fn serve(args: &ServeArgs) -> Exit {
    let configured = match configured(args, &args.config) {
        Ok(configured) => configured,
        Err(wrong) => {
            complain(&wrong);
            return Exit::Wrong;
        }
    };
    configured.warnings.iter().for_each(|warning| complain(&format!("warning: {warning}")));
    match served(args, configured) {
        Ok(()) => Exit::Well,
        Err(error) => {
            complain(&format!("weir: {error}"));
            Exit::NotStarted
        }
    }
}

fn configured(args: &ServeArgs, file: &Path) -> Result<Configured, String> {
    let (partition, warnings) = load_well(file, (&args.overrides, &args.playing), !args.one_process)?;
    Ok(Configured { partition, warnings })
}

/// Another configuration has the same changes by the command line.
fn reader(args: &ServeArgs) -> Reader {
    let args = args.clone();
    Reader::by(move |file| configured(&args, file.unwrap_or(&args.config)))
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
    Authority(#[from] AuthorityError),
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error("signals cannot be caught, threads begun or keys drawn: {0}")]
    System(#[from] io::Error),
}

fn served(args: &ServeArgs, configured: Configured) -> Result<(), NotServed> {
    let partition = &configured.partition;
    let name = partition.partition.name.clone();
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let identity = identity(args, &host)?;
    let carriers = Carriers::of(partition)?;
    let catalogue = succession::catalogue(partition);
    let references = partition.control.references.as_ref().map(|file| References::read(file.as_ref())).transpose()?;
    let keeper = Keeper::at(&catalogue, partition)?;
    let log = MessageLog::open(&catalogue, &name);
    let succession = succession::begin(partition, args.take_over)?;
    let authority = match (&args.key_file, &succession) {
        (Some(file), _) => Authority::kept_in(file)?,
        (None, Some(Succession { left, .. })) => {
            Authority::passed_on_in(&succession::key_file(partition), left.is_some())?
        }
        (None, None) => Authority::drawn()?,
    };
    let key = authority.key().clone();
    let placement = if args.one_process { Placement::local() } else { Placement::processes() };
    let references = references.unwrap_or_default();
    let (desk, leaving) =
        Desk::open((configured, reader(args)), authority, placement, (keeper, log), references, succession)?;
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
