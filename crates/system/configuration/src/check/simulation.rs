//! What `[simulation]` demands.

use base::ids::Role;

use super::Checker;
use crate::problem::did_you_mean;
use crate::tables::Layout;
use crate::units::Size;

impl Checker<'_> {
    pub(super) fn simulation(&mut self) {
        let p = self.partition;
        let Some(simulation) = &p.simulation else { return };
        let ranges = [
            ("simulation.cores", simulation.cores, 1..=1024),
            ("simulation.edge_hosts", simulation.edge_hosts, 1..=10_000),
            ("simulation.link_mbit_per_s", simulation.link_mbit_per_s, 1..=1_000_000),
            ("simulation.trunk_mbit_per_s", simulation.trunk_mbit_per_s, 1..=1_000_000),
            ("simulation.trunk_cables", simulation.trunk_cables, 1..=1_000),
            ("simulation.datagram_header", simulation.datagram_header, 0..=128),
            ("simulation.mtu", simulation.mtu, 256..=65_535),
        ];
        for (key, value, range) in ranges {
            if !range.contains(&value) {
                let message = format!("expected an integer from {} to {}, found {value}", range.start(), range.end());
                self.problem(&[key], message);
            }
        }
        let (least, window) = (Size::from_bytes(65_535), simulation.tcp_window);
        if window < least {
            self.problem(&["simulation.tcp_window"], format!("expected at least {least}, found {window}"));
        }
        if simulation.layout == Layout::Hosts && p.host.is_empty() {
            self.problem(&["simulation.layout"], "\"hosts\": expected [[host]], which says who runs where".to_owned());
        }
        if simulation.disk_per_s == Some(Size::from_bytes(0)) {
            self.problem(&["simulation.disk_per_s"], "expected more than 0 B".to_owned());
        }
        let slice = simulation.driver.as_ref().map(|driver| driver.slice);
        if let Some(slice) = slice.filter(|slice| slice.ns() < 1_000) {
            self.problem(&["simulation.driver.slice"], format!("expected at least 1 us, found {slice}"));
        }
        let stems = Role::IN_DRAIN_ORDER.map(Role::stem);
        let of_costs = simulation.cost.iter().map(|cost| &cost.role);
        let roles = simulation.edge_roles.iter().chain(&simulation.second_port_roles).chain(of_costs);
        let unknown = roles.filter(|role| !role.is_empty() && !stems.contains(&role.as_str()));
        let unknown: Vec<String> = unknown.cloned().collect();
        for role in unknown {
            let message =
                format!("expected one of {}, found {role:?}{}", stems.join(", "), did_you_mean(&role, &stems));
            self.problem(&["simulation.cost", "simulation.edge_roles", "simulation.second_port_roles"], message);
        }
        self.faults();
    }
}
