//! The bus of those who watch.

use super::Checker;

impl Checker<'_> {
    pub(super) fn bus(&mut self) {
        let control = &self.partition.control;
        match &control.bus {
            Some(server) if server.contains('@') => {
                let message = "a secret: everybody may read this key; expected user and password in control.bus_login";
                self.problem(&["control.bus"], message.to_owned());
            }
            Some(server) if !is_server(server) => {
                let message = format!("expected a NATS server such as \"nats://daq-1:4222\", found {server:?}");
                self.problem(&["control.bus"], message);
            }
            None if control.bus_login.is_some() => {
                let message = "needs control.bus, the server, which is absent".to_owned();
                self.problem(&["control.bus_login", "control.bus"], message);
            }
            _ => {}
        }
    }
}

/// Whether this is a scheme, a host, and a port where one wants it.
fn is_server(text: &str) -> bool {
    SCHEMES.iter().find_map(|scheme| text.strip_prefix(scheme)).is_some_and(is_place)
}

/// Whether this is a host, and a port where one wants it.
pub(super) fn is_place(place: &str) -> bool {
    let (host, port) = match place.rsplit_once(':') {
        // An address of version 6 without a port has colons of its own.
        Some((host, port)) if !place.ends_with(']') => (host, port),
        _ => (place, "1"),
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_host = match address {
        Some(address) => address.parse::<core::net::Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.chars().all(is_plain),
    };
    is_host && port.parse::<u16>().is_ok_and(|port| port > 0)
}

const SCHEMES: [&str; 2] = ["nats://", "tls://"];

#[cfg(test)]
mod tests {
    use super::is_server;

    #[test]
    fn a_server_has_a_scheme_and_a_host() {
        for good in ["nats://daq-1", "nats://daq-1.lab:4222", "tls://10.0.0.1:1", "nats://[::1]", "nats://[::1]:4222"] {
            assert!(is_server(good), "{good}");
        }
        for bad in ["", "daq-1:4222", "nats://", "nats://:4222", "nats://a:0", "nats://a:b", "nats://a/b", "nats://::1"]
        {
            assert!(!is_server(bad), "{bad}");
        }
    }
}
