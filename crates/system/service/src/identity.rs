//! The certificate of a service beyond loopback, where all that is said is encrypted.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use catalogue::now;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, date_time_ymd};
use ring::digest::{SHA256, digest};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{self, ServerConfig};

/// A certificate and its private key.
pub struct Identity {
    acceptor: TlsAcceptor,
    fingerprint: String,
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what is wrong")]
pub enum IdentityError {
    #[error("{}: expected {expected} in PEM, found none: {cause}", path.display())]
    File { path: PathBuf, expected: &'static str, cause: pem::Error },
    #[error("certificate and private key cannot be used: {0}")]
    Unusable(#[from] rustls::Error),
    #[error("no certificate can be made: {0}")]
    Made(#[from] rcgen::Error),
}

impl Identity {
    /// A certificate that the service makes itself, for this machine's name, an address and loopback. It is valid for a year at least.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn draw(address: IpAddr, host: &str) -> Result<Self, IdentityError> {
        let loopback = [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)];
        let own = Some(address).filter(|address| !address.is_unspecified());
        let addresses = loopback.into_iter().chain(own).map(|address| address.to_string());
        let is_name = |name: &&str| !name.is_empty() && name.is_ascii();
        let names = ["localhost", host].into_iter().filter(is_name).map(str::to_owned);
        let mut parameters = CertificateParams::new(names.chain(addresses).collect::<Vec<_>>())?;
        parameters.distinguished_name = DistinguishedName::new();
        parameters.distinguished_name.push(DnType::CommonName, format!("weir serve on {host}"));
        let year = year();
        parameters.not_before = date_time_ymd(year, 1, 1);
        // Some browsers take nothing that is valid for longer.
        parameters.not_after = date_time_ymd(year + 2, 1, 1);
        let key = KeyPair::generate()?;
        let certificate = parameters.self_signed(&key)?;
        Self::of(vec![certificate.der().clone()], PrivatePkcs8KeyDer::from(key.serialize_der()).into())
    }

    /// A certificate of one's own, with the chain behind it, and its private key, both in PEM.
    ///
    /// # Errors
    /// A file cannot be read or has none, or they do not belong together.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, IdentityError> {
        let failed = |path: &Path, expected| {
            let path = path.to_owned();
            move |cause| IdentityError::File { path, expected, cause }
        };
        let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let chain = chain.and_then(|chain| if chain.is_empty() { Err(pem::Error::NoItemsFound) } else { Ok(chain) });
        let chain = chain.map_err(failed(certificate, "a certificate"))?;
        Self::of(chain, PrivateKeyDer::from_pem_file(key).map_err(failed(key, "a private key"))?)
    }

    fn of(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Result<Self, IdentityError> {
        let fingerprint = fingerprint(&chain[0]);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let versions = ServerConfig::builder_with_provider(provider).with_protocol_versions(&[&TLS13])?;
        let config = versions.with_no_client_auth().with_single_cert(chain, key)?;
        Ok(Self { acceptor: Arc::new(config).into(), fingerprint })
    }

    /// The SHA-256 of the certificate, as browsers show it.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        self.acceptor.clone()
    }
}

impl core::fmt::Debug for Identity {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Identity({})", self.fingerprint)
    }
}

fn fingerprint(certificate: &[u8]) -> String {
    let bytes = digest(&SHA256, certificate);
    bytes.as_ref().iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(":")
}

/// The year that it surely is by now: for a day in January it may be the one before.
fn year() -> i32 {
    const YEAR_S: u64 = 31_556_952;
    const DAY_S: u64 = 86_400;
    let since_1970 = now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    1970 + i32::try_from(since_1970.saturating_sub(DAY_S) / YEAR_S).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use testkit::TempDir;

    use super::*;

    #[test]
    fn each_has_a_certificate_of_its_own() {
        let draw = || Identity::draw(Ipv4Addr::UNSPECIFIED.into(), "daq-1").unwrap();
        let (one, other) = (draw(), draw());
        assert_ne!(one.fingerprint(), other.fingerprint());
        assert_eq!(one.fingerprint().len(), 32 * 3 - 1);
        assert!(!format!("{one:?}").to_lowercase().contains("key"));
    }

    #[test]
    fn files_that_hold_none_or_another_are_named() {
        let directory = TempDir::new("identity");
        let path = |name: &str| directory.join(name);
        let made = [0, 1].map(|_| rcgen::generate_simple_self_signed(["daq-1".to_owned()]).unwrap());
        fs::write(path("certificate"), made[0].cert.pem()).unwrap();
        fs::write(path("key"), made[0].signing_key.serialize_pem()).unwrap();
        fs::write(path("other"), made[1].signing_key.serialize_pem()).unwrap();
        let read = |certificate: &str, key: &str| Identity::read(&path(certificate), &path(key));
        assert_eq!(read("certificate", "key").unwrap().fingerprint(), fingerprint(made[0].cert.der()));
        for (certificate, key, why) in [
            ("absent", "key", "absent: expected a certificate"),
            ("key", "key", "key: expected a certificate"),
            ("certificate", "certificate", "certificate: expected a private key"),
            ("certificate", "other", "cannot be used"),
        ] {
            let error = read(certificate, key).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
