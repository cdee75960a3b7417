//! What several hosts demand: of `[[host]]`.

use super::{Checker, is_word};

impl Checker<'_> {
    pub(super) fn hosts(&mut self) {
        let (hosts, here) = (&self.partition.host, self.partition.transport.host);
        for (place, host) in hosts.iter().enumerate() {
            let key = |key: &str| format!("host.{place}.{key}");
            if !is_word(&host.name) {
                let message =
                    format!("expected letters, digits, `_` and `-`, such as \"daq-1\", found {:?}", host.name);
                self.problem(&[&key("name"), "host"], message);
            } else if hosts[..place].iter().any(|other| other.name == host.name) {
                let message = format!("expected a name of its own, found {:?} a second time", host.name);
                self.problem(&[&key("name"), "host"], message);
            }
            // The launcher's command would take it for an option.
            if host.address.as_ref().is_some_and(|address| address.is_empty() || address.starts_with('-')) {
                let message = format!("expected the name or address of a host, found {:?}", host.address());
                self.problem(&[&key("address"), "host"], message);
            }
            if let Some(metrics) = host.metrics.filter(|at| at.ip().is_unspecified() || at.ip().is_multicast()) {
                let message = format!("expected the address of an interface and a port, found {metrics}");
                self.problem(&[&key("metrics"), "host"], message);
            }
            match host.data(here) {
                None => {
                    let message = format!(
                        "missing; expected its address in the network that carries data, as {:?} is none",
                        host.address()
                    );
                    self.problem(&[&key("data"), "host"], message);
                }
                Some(data) if data.is_unspecified() || data.is_multicast() => {
                    self.problem(
                        &[&key("data"), "host"],
                        format!("expected the address of an interface, found {data}"),
                    );
                }
                Some(data) if data.is_ipv4() != here.is_ipv4() => {
                    let message = format!(
                        "expected an address of the same family as transport.host, which is {here}, found {data}"
                    );
                    self.problem(&[&key("data"), "transport.host"], message);
                }
                Some(data) if here.is_loopback() && !data.is_loopback() => {
                    let message = format!(
                        "expected an address of this machine that host {} at {data} reaches, found {here}",
                        host.name
                    );
                    self.problem(&["transport.host", &key("data"), "host"], message);
                }
                Some(_) => {}
            }
        }
        if !hosts.is_empty() && !self.partition.ros.ports.is_empty() {
            let message = "not with hosts: each host has addresses of its own".to_owned();
            self.problem(&["ros.ports", "host"], message);
        }
        if !hosts.is_empty() && self.partition.l2pu.as_ref().is_some_and(|l2pu| l2pu.phased) {
            let message = "not with hosts: it is for units and builders in one process".to_owned();
            self.problem(&["l2pu.phased", "host"], message);
        }
        if let Err(misplaced) = self.partition.placement() {
            self.problem(&["host"], misplaced.to_string());
        }
    }
}
