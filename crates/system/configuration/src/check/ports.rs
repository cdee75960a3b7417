//! What several network ports of read-out systems demand: of `ros.ports`.

use dataflow::report::PORTS_MAX;

use super::Checker;

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
        let other_family = ports.iter().find(|port| port.is_ipv4() != transport.host.is_ipv4());
        if let Some(port) = other_family.filter(|_| transport.has_datagrams()) {
            let message = format!(
                "datagrams need addresses of the same family as transport.host, which is {}, found {port}",
                transport.host
            );
            self.problem(&["ros.ports", "transport.host"], message);
        }
    }
}
