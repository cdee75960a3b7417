//! What the keys of datagrams demand: of `[transport]` and `[transport.udp]`.

use super::{Checker, word};
use crate::tables::{ClearCarrier, DATAGRAM_LOOPBACK_MAX, DATAGRAM_MIN};
use crate::units::Size;

impl Checker<'_> {
    pub(super) fn datagrams(&mut self) {
        let transport = &self.partition.transport;
        let (least, most) = (Size::from_bytes(DATAGRAM_MIN), Size::from_bytes(DATAGRAM_LOOPBACK_MAX));
        if let Some(datagram) = transport.udp.datagram.filter(|datagram| !(least..=most).contains(datagram)) {
            self.problem(&["transport.udp.datagram"], format!("expected {least} to {most}, found {datagram}"));
        }
        if transport.udp.window == Some(Size::from_bytes(0)) {
            self.problem(&["transport.udp.window"], format!("expected at least {}", Size::from_bytes(1)));
        }
        if transport.udp.retransmit_after.duration().is_zero() {
            self.problem(&["transport.udp.retransmit_after"], "expected more than \"0 s\"".to_owned());
        }
        if transport.clear == ClearCarrier::Multicast && transport.multicast_interface().is_none() {
            let message = format!(
                "{} is for IPv4, and transport.host is {}: expected \"udp\" or \"connection\"",
                word(transport.clear),
                transport.host
            );
            self.problem(&["transport.clear", "transport.host"], message);
        }
        if transport.has_datagrams() && transport.host.is_unspecified() {
            let message =
                format!("expected the address of one interface, by which peers know it, found {}", transport.host);
            self.problem(&["transport.host"], message);
        }
    }
}
