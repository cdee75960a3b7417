//! What the choice of carriers demands: of `[transport]` and `[transport.udp]`.

use super::{Checker, word};
use crate::tables::{
    Authenticate, BuildingMode, Carrier, Connections, DATAGRAM_LOOPBACK_MAX, DATAGRAM_MIN, Layout, MessageType, Way,
};
use crate::units::Size;

impl Checker<'_> {
    pub(super) fn carriers(&mut self) {
        self.carriers_of_pushing();
        self.shared_memory();
        self.multicasts();
        self.datagrams();
    }

    /// What is never sent has no carrier.
    fn carriers_of_pushing(&mut self) {
        let (transport, building) = (&self.partition.transport, self.partition.dfm.building);
        let pushes = building != BuildingMode::Pull;
        let any = "\"push\" and \"push-by-number\"";
        let chosen = [
            (MessageType::Pushed, transport.pushed.is_some(), pushes, any),
            (MessageType::Credit, transport.credit != Carrier::Connection, pushes, any),
            (MessageType::Push, transport.push.is_some(), building == BuildingMode::Push, "\"push\""),
        ];
        for (of, _, _, modes) in chosen.into_iter().filter(|(_, is_chosen, is_sent, _)| *is_chosen && !is_sent) {
            let message = format!("only for dfm.building = {modes}, which is {}", word(building));
            self.problem(&[of.key(), "dfm.building"], message);
        }
    }

    fn shared_memory(&mut self) {
        let transport = &self.partition.transport;
        if self.partition.simulation.as_ref().is_none_or(|simulation| simulation.layout != Layout::Farm) {
            return;
        }
        let farm = "shared memory does not reach from host to host, and simulation.layout is \"farm\"";
        let is_default = transport.connections == Connections::Shm;
        if is_default {
            let message = format!("{farm}: expected \"tcp\"");
            self.problem(&["transport.connections", "simulation.layout"], message);
        }
        // What has no key of its own follows another.
        let is_chosen = |of: &MessageType| match of {
            MessageType::Pushed => transport.pushed.is_some(),
            MessageType::Push => transport.push.is_some(),
            _ => true,
        };
        let shared = |of: &MessageType| is_chosen(of) && transport.way(*of) == Way::Shm;
        for of in MessageType::ALL.into_iter().filter(|of| !is_default && shared(of)) {
            let message = format!("{farm}: expected \"tcp\", or \"udp\" where the key takes it");
            self.problem(&[of.key(), "simulation.layout"], message);
        }
    }

    fn multicasts(&mut self) {
        let transport = &self.partition.transport;
        if transport.multicast_interface().is_some() {
            return;
        }
        let host = transport.host;
        let types = [Some(MessageType::Clear), transport.push.map(|_| MessageType::Push)];
        for of in types.into_iter().flatten().filter(|of| transport.way(*of) == Way::Multicast) {
            let message = format!(
                "\"multicast\" is for IPv4, and transport.host is {host}: expected \"connection\", \"tcp\", \"shm\" or \"udp\""
            );
            self.problem(&[of.key(), "transport.host"], message);
        }
    }

    fn datagrams(&mut self) {
        let transport = &self.partition.transport;
        let (least, most) = (Size::from_bytes(DATAGRAM_MIN), Size::from_bytes(DATAGRAM_LOOPBACK_MAX));
        if let Some(datagram) = transport.udp.datagram.filter(|datagram| !(least..=most).contains(datagram)) {
            self.problem(&["transport.udp.datagram"], format!("expected {least} to {most}, found {datagram}"));
        }
        if transport.udp.checksum == Some(true) && transport.udp.authenticate == Authenticate::Everything {
            let message =
                "only where transport.udp.authenticate is \"header\": the tag of each datagram covers its payload";
            self.problem(&["transport.udp.checksum", "transport.udp.authenticate"], message.to_owned());
        }
        if transport.udp.window == Some(Size::from_bytes(0)) {
            self.problem(&["transport.udp.window"], format!("expected at least {}", Size::from_bytes(1)));
        }
        if transport.udp.retransmit_after.duration().is_zero() {
            self.problem(&["transport.udp.retransmit_after"], "expected more than \"0 s\"".to_owned());
        }
        if transport.has_datagrams() && transport.host.is_unspecified() {
            let message =
                format!("expected the address of one interface, by which peers know it, found {}", transport.host);
            self.problem(&["transport.host"], message);
        }
    }
}
