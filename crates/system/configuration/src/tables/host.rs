//! `[[host]]`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use base::ids::Role;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cores::Cores;

/// `[[host]]`: a machine of the partition. An agent starts, watches and ends its applications. Without hosts all applications run on the
/// machine of run control. On a host all messages may go through shared memory; between hosts TCP carries what is to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    default,
    deny_unknown_fields,
    expecting = "a table such as { name = \"b\", launcher = \"ssh\", address = \"10.0.0.2\" }"
)]
pub struct Host {
    /// Its name in messages. Required. With a range, such as `node[01-16]`, the table stands for as many hosts; `address`, `data` and `metrics`
    /// may have ranges as long.
    pub name: String,
    /// What starts its agent.
    pub launcher: Launcher,
    /// Whom the launcher calls: of `ssh` a host, perhaps with a user; of `slurm` a node; of `service` a host, perhaps with a port. By default its
    /// name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Its address in the network that carries data. By default `address` if that is an IP address; with `local` `transport.host`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<IpAddr>,
    /// How many applications of each role it has, such as `{ ros = 2, sfi = 1 }`, and no others. Hosts without the key share what is left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roles: Option<Counts>,
    /// Processor cores for the applications that it has, in the place of `processes.cores`. Its first application of a role has the first core
    /// of that role's list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cores: Option<Cores>,
    /// Further options of the launcher's command, such as `["-p", "2222"]`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// Where its agent shows metrics, such as `10.0.0.11:9100`. By default a free port at loopback with `local`, and else at the address in the
    /// network that carries data. Port 0 is a free one, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<SocketAddr>,
    /// The program `weir` there. By default the path that it has here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The folder in which its applications work: where relative paths begin. By default the one in which `weir` was started here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
}

/// What starts the agent of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Launcher {
    /// Run control itself, on its own machine.
    #[default]
    Local,
    /// `ssh`, with a key that asks for no password.
    Ssh,
    /// `srun`, best within an allocation that has the node.
    Slurm,
    /// `weir host`, which runs there for good.
    Service,
}

/// Applications of a host, by role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table such as { ros = 2, sfi = 1 }")]
pub struct Counts {
    /// Sources of level-1 triggers.
    pub level1: u32,
    /// Level-2 supervisors.
    pub l2sv: u32,
    /// Level-2 processing units.
    pub l2pu: u32,
    /// The pseudo-ROS.
    pub pros: u32,
    /// Read-out systems.
    pub ros: u32,
    /// Fronts of read-out crates.
    pub trg: u32,
    /// Collectors of read-out crates.
    pub ebif: u32,
    /// The dataflow manager.
    pub dfm: u32,
    /// Event builders.
    pub sfi: u32,
    /// Dataflow daemons of the event filter.
    pub efd: u32,
    /// Recorders.
    pub sfo: u32,
}

impl Host {
    /// Whom the launcher calls.
    pub fn address(&self) -> &str {
        self.address.as_deref().unwrap_or(&self.name)
    }

    /// Its address in the network that carries data, where run control listens at `here`; `None` if nothing says it.
    pub fn data(&self, here: IpAddr) -> Option<IpAddr> {
        let of_launcher = match self.launcher {
            Launcher::Local => Some(here),
            // Perhaps with a user before it.
            Launcher::Ssh | Launcher::Slurm => self.address().rsplit('@').next()?.parse().ok(),
            // Perhaps with a port behind it.
            Launcher::Service => {
                let address = self.address();
                address.parse().ok().or_else(|| address.parse::<SocketAddr>().ok().map(|address| address.ip()))
            }
        };
        self.data.or(of_launcher)
    }

    /// Where its agent shows metrics, if `data` is its address in the network that carries data. Port 0 is a free one.
    pub fn metrics(&self, data: IpAddr) -> SocketAddr {
        let is_here = self.launcher == Launcher::Local && !data.is_loopback();
        let address = if is_here { Ipv4Addr::LOCALHOST.into() } else { data };
        self.metrics.unwrap_or(SocketAddr::new(address, 0))
    }
}

impl Launcher {
    /// Its name in the file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Ssh => "ssh",
            Self::Slurm => "slurm",
            Self::Service => "service",
        }
    }
}

impl Counts {
    /// Of a role.
    pub const fn of(&self, role: Role) -> u32 {
        match role {
            Role::RunControl => 0,
            Role::Level1 => self.level1,
            Role::L2sv => self.l2sv,
            Role::L2pu => self.l2pu,
            Role::Pros => self.pros,
            Role::Ros => self.ros,
            Role::Trg => self.trg,
            Role::Ebif => self.ebif,
            Role::Dfm => self.dfm,
            Role::Sfi => self.sfi,
            Role::Efd => self.efd,
            Role::Sfo => self.sfo,
        }
    }
}
