//! What several network ports of read-out systems demand: of `ros.ports`.

use super::Checker;
use crate::tables::{Carrier, Connections};

impl Checker<'_> {
    pub(super) fn ports(&mut self) {
        let (ports, transport) = (&self.partition.ros.ports, &self.partition.transport);
        if ports.is_empty() {
            return;
        }
        if ports.len() > PORTS_MAX {
            self.problem(&["ros.ports"], format!("expected at most {PORTS_MAX}, found {}", ports.len()));
        }
        for (index, port) in ports.iter().enumerate() {
            if port.is_unspecified() || port.is_multicast() || ports[..index].contains(port) {
                let message = format!("expected the addresses of different interfaces, found {port}");
                self.problem(&["ros.ports"], message);
            }
        }
        if transport.connections == Connections::Shm {
            let message = "shared memory has no network ports: expected transport.connections = \"tcp\"".to_owned();
            self.problem(&["transport.connections", "ros.ports"], message);
        }
        let spread = [
            ("transport.event_request", transport.event_request),
            ("transport.event_reply", transport.event_reply),
            ("transport.roi_request", transport.roi_request),
            ("transport.roi_reply", transport.roi_reply),
        ];
        for (key, _) in spread.into_iter().filter(|(_, carrier)| *carrier == Carrier::Udp) {
            let message = "requests and replies are spread over connections only: expected \"connection\"".to_owned();
            self.problem(&[key, "ros.ports"], message);
        }
    }
}

/// More than any host has.
const PORTS_MAX: usize = 16;
