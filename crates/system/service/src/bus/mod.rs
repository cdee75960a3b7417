//! The bus: a NATS server by which others see what the page sees.
//!
//! Run control publishes, as one more of those who watch its desk. It has the observation of all hosts already, in the order and with
//! the numbers that the page shows. So one login is enough. Commands and leases never go this way, so losing the bus touches no run.

mod login;
#[cfg(feature = "nats")]
mod nats;
#[cfg(feature = "nats")]
mod observer;
#[cfg(feature = "nats")]
mod stream;
#[cfg(feature = "nats")]
mod subjects;
mod traffic;

use std::path::PathBuf;
use std::sync::Arc;

use configuration::Partition;

use crate::desk::Desk;

use login::Login;
pub use login::LoginError;
use traffic::Traffic;
pub(crate) use traffic::TrafficNow;

/// Where run control tells all that is observed. Clones are the same bus.
#[derive(Clone, Debug)]
pub struct Bus(Arc<Shared>);

#[derive(Debug)]
#[cfg_attr(not(feature = "nats"), expect(dead_code, reason = "nobody connects"))]
struct Shared {
    /// Such as `nats://daq-1:4222`.
    server: String,
    login: Option<PathBuf>,
    traffic: Traffic,
}

/// Why a partition cannot have the bus that it asks for.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what is wrong")]
pub enum BusError {
    #[error(
        "{server} is a NATS server, and this program was built without NATS; build it with `cargo build --release -p weir --features nats`, or leave the key out"
    )]
    NotBuilt { server: String },
    #[error(transparent)]
    Login(#[from] LoginError),
}

impl Bus {
    /// The bus of a partition, if it has one.
    ///
    /// # Errors
    /// The program was built without it, or the login cannot be read.
    pub fn of(partition: &Partition) -> Result<Option<Self>, BusError> {
        let Some(server) = partition.control.bus.clone() else { return Ok(None) };
        if !cfg!(feature = "nats") {
            return Err(BusError::NotBuilt { server });
        }
        let login = partition.control.bus_login.as_ref().map(PathBuf::from);
        login.as_deref().map(Login::read).transpose()?;
        Ok(Some(Self(Arc::new(Shared { server, login, traffic: Traffic::default() }))))
    }

    /// Tells what a desk has to tell, until the desk is left.
    #[cfg(feature = "nats")]
    pub(crate) async fn tell(self, desk: Desk) {
        nats::tell(&self.0, &desk).await;
    }

    /// There is no bus without NATS.
    #[cfg(not(feature = "nats"))]
    pub(crate) async fn tell(self, _: Desk) {}

    /// What went there until now.
    pub(crate) fn traffic(&self) -> TrafficNow {
        self.0.traffic.now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_it_says_how_to_build_it() {
        let text = "partition.name = \"p\"\nros.count = 1\nsfi.count = 1\n";
        let of = |more: &[String]| Bus::of(&Partition::parse("p", text, more).unwrap());
        assert!(of(&[]).unwrap().is_none());
        match of(&["control.bus=nats://daq-1".to_owned()]) {
            Ok(bus) => assert!(cfg!(feature = "nats") && bus.is_some_and(|bus| !bus.traffic().connected)),
            Err(error) => assert!(!cfg!(feature = "nats") && error.to_string().contains("--features nats"), "{error}"),
        }
    }
}
