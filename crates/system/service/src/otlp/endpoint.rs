//! Where a collector is, and who vouches for it.

use core::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use configuration::{Control, OtlpCompression};
use hyper::Uri;
use hyper::header::HeaderMap;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::ring};

use super::{TelemetryError, headers};

/// A collector.
pub(super) struct Endpoint {
    pub(super) host: String,
    pub(super) port: u16,
    /// What stands before `/v1/metrics`.
    path: String,
    /// The value of the header `Host`.
    pub(super) authority: String,
    /// With the name that its certificate has to have, where it is encrypted.
    pub(super) tls: Option<(TlsConnector, ServerName<'static>)>,
    /// What it wants to read at the head of each request.
    pub(super) headers: HeaderMap,
    pub(super) compression: Option<OtlpCompression>,
}

impl Endpoint {
    /// The one at this address, as the configuration wants it.
    ///
    /// # Errors
    /// It is no address, nobody could vouch for it, or its headers cannot be read.
    pub(super) fn asked_for(url: &str, control: &Control) -> Result<Self, TelemetryError> {
        let headers = control.otlp_headers.as_deref().map(|file| headers::read(file.as_ref())).transpose()?;
        let endpoint = Self::of(url, control.otlp_certificate.as_deref().map(str::as_ref))?;
        Ok(Self { headers: headers.unwrap_or_default(), compression: control.otlp_compression, ..endpoint })
    }

    /// Of an address, with a file of authorities instead of those that the machine knows.
    ///
    /// # Errors
    /// It is no address, or nobody could vouch for it.
    fn of(url: &str, authorities: Option<&Path>) -> Result<Self, TelemetryError> {
        let malformed = || TelemetryError::Url { url: url.to_owned() };
        let uri: Uri = url.parse().map_err(|_| malformed())?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else { return Err(malformed()) };
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let (port, tls) = match scheme {
            "http" => (80, None),
            "https" => {
                let name = ServerName::try_from(host.clone()).map_err(|_| malformed())?;
                (443, Some((connector(url, authorities)?, name)))
            }
            _ => return Err(malformed()),
        };
        let path = uri.path().trim_end_matches('/').to_owned();
        let port = authority.port_u16().unwrap_or(port);
        let (authority, headers, compression) = (authority.to_string(), HeaderMap::new(), None);
        Ok(Self { host, port, path, authority, tls, headers, compression })
    }

    /// The path of a signal.
    pub(super) fn path(&self, signal: &str) -> String {
        format!("{}/v1/{signal}", self.path)
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({}{})", self.authority, self.path)
    }
}

fn connector(url: &str, authorities: Option<&Path>) -> Result<TlsConnector, TelemetryError> {
    let mut roots = RootCertStore::empty();
    match authorities {
        Some(path) => {
            let failed = |cause: &dyn fmt::Display| TelemetryError::Certificate {
                path: path.to_owned(),
                cause: cause.to_string(),
            };
            for certificate in CertificateDer::pem_file_iter(path).map_err(|cause| failed(&cause))? {
                let certificate = certificate.map_err(|cause| failed(&cause))?;
                roots.add(certificate).map_err(|cause| failed(&cause))?;
            }
            if roots.is_empty() {
                return Err(failed(&"none"));
            }
        }
        None => {
            // Those of the system that cannot be read vouch for nobody.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if roots.is_empty() {
                return Err(TelemetryError::NoAuthority { url: url.to_owned() });
            }
        }
    }
    let failed = |cause| TelemetryError::Tls { url: url.to_owned(), cause: io::Error::other(cause) };
    let versions = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let versions = versions.with_safe_default_protocol_versions().map_err(failed)?;
    Ok(TlsConnector::from(Arc::new(versions.with_root_certificates(roots).with_no_client_auth())))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use testkit::TempDir;

    use super::*;

    #[test]
    fn an_address_has_a_port_and_a_path_of_its_own_or_the_usual_ones() {
        let of = |url| {
            let endpoint = Endpoint::of(url, None).unwrap();
            (endpoint.host.clone(), endpoint.port, endpoint.path("logs"))
        };
        let expected = |host: &str, port, path: &str| (host.to_owned(), port, path.to_owned());
        assert_eq!(of("http://collector:4318"), expected("collector", 4318, "/v1/logs"));
        assert_eq!(of("http://collector/"), expected("collector", 80, "/v1/logs"));
        assert_eq!(of("http://[::1]:4318/site/a/"), expected("::1", 4318, "/site/a/v1/logs"));
        for bad in ["collector:4318", "grpc://collector", "/v1"] {
            assert!(matches!(Endpoint::of(bad, None), Err(TelemetryError::Url { .. })), "{bad}");
        }
    }

    #[test]
    fn authorities_that_are_none_are_named() {
        let directory = TempDir::new("authorities");
        let path = directory.join("ca.pem");
        let of = || Endpoint::of("https://collector", Some(&path)).unwrap_err().to_string();
        assert!(of().contains("ca.pem: expected certificates in PEM"), "{}", of());
        fs::write(&path, "no certificate").unwrap();
        assert!(of().ends_with("found none"), "{}", of());
        let made = rcgen::generate_simple_self_signed(vec!["collector".to_owned()]).unwrap();
        fs::write(&path, made.cert.pem()).unwrap();
        assert!(Endpoint::of("https://collector", Some(&path)).unwrap().tls.is_some());
    }
}
