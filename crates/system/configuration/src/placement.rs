//! Which host has which application.

use core::fmt;
use std::collections::BTreeMap;

use base::ids::Role;

use crate::partition::{Application, Partition};
use crate::tables::Cores;

/// Why applications and hosts do not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misplaced {
    /// Hosts name more applications of a role than there are.
    TooMany {
        /// The role.
        role: Role,
        /// So many the hosts name.
        named: usize,
        /// So many the partition has.
        there_are: usize,
    },
    /// Every host says what it has, and this application is left.
    Left(String),
}

impl fmt::Display for Misplaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany { role, named, there_are } => {
                write!(f, "expected {there_are} {role} on all hosts together, found {named}")
            }
            Self::Left(name) => {
                write!(
                    f,
                    "no host has {name}: expected it in the roles of one, or a host without roles, which takes what is left"
                )
            }
        }
    }
}

impl core::error::Error for Misplaced {}

impl Partition {
    /// The host of each [application](Partition::applications), as its place in `host`; none if there are no hosts. Each host first gets
    /// what it names; hosts that name nothing get the rest in turn.
    ///
    /// # Errors
    /// What hosts name does not fit what there is.
    pub fn placement(&self) -> Result<Vec<usize>, Misplaced> {
        if self.host.is_empty() {
            return Ok(Vec::new());
        }
        let applications = self.applications();
        for role in Role::IN_DRAIN_ORDER {
            let (named, there_are) =
                (self.named(role).count(), applications.iter().filter(|app| app.role == role).count());
            if named > there_are {
                return Err(Misplaced::TooMany { role, named, there_are });
            }
        }
        let mut free = (0..self.host.len()).filter(|place| self.host[*place].roles.is_none()).cycle();
        let place = |app: Application| {
            let host = self.named(app.role).nth(app.index).or_else(|| free.next());
            host.ok_or(Misplaced::Left(app.name))
        };
        applications.into_iter().map(place).collect()
    }

    /// The processor core of each [application](Partition::applications), if it is bound to one. On each host, those of a role take the cores of
    /// that role in turn.
    pub fn bound(&self) -> Vec<Option<u32>> {
        // What a configuration that was checked cannot be.
        let placement = self.placement().unwrap_or_default();
        let mut counts: BTreeMap<(Option<usize>, Role), usize> = BTreeMap::new();
        let core = |(place, app): (usize, Application)| {
            let host = placement.get(place).copied();
            let before = counts.entry((host, app.role)).or_default();
            let core = self.cores_on(host).of(app.role, *before);
            *before += 1;
            core
        };
        self.applications().into_iter().enumerate().map(core).collect()
    }

    /// The key that binds the applications of a host to cores, by its place in `host`; without hosts that of this machine.
    pub fn key_of_cores(&self, host: Option<usize>) -> String {
        match host.filter(|host| self.host[*host].cores.is_some()) {
            Some(host) => format!("host.{host}.cores"),
            None => "processes.cores".to_owned(),
        }
    }

    /// Names a host at the beginning of a message: `host NAME: `. Takes its place in the table `host`; without one the text is empty.
    pub fn whose(&self, host: Option<usize>) -> String {
        host.map(|host| format!("host {}: ", self.host[host].name)).unwrap_or_default()
    }

    fn cores_on(&self, host: Option<usize>) -> &Cores {
        host.and_then(|host| self.host[host].cores.as_ref()).unwrap_or(&self.processes.cores)
    }

    /// The hosts that name applications of this role, each as often as it does.
    fn named(&self, role: Role) -> impl Iterator<Item = usize> {
        let counts = self.host.iter().map(move |host| host.roles.map_or(0, |roles| roles.of(role)));
        counts.enumerate().flat_map(|(place, count)| std::iter::repeat_n(place, count as usize))
    }
}

#[cfg(test)]
mod tests {
    use crate::Partition;

    fn placed(hosts: &str) -> Result<String, String> {
        let text = "partition.name = \"p\"\nros.count = 4\nsfi.count = 2\n";
        let partition = Partition::parse("p", text, &[format!("host={hosts}")]).map_err(|error| error.to_string())?;
        let placement = partition.placement().unwrap();
        let of = |(app, host): (crate::Application, &usize)| format!("{}@{}", app.name, partition.host[*host].name);
        Ok(partition.applications().into_iter().zip(&placement).map(of).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn hosts_that_name_nothing_share_what_is_left() {
        assert_eq!(placed("[]").unwrap(), "");
        assert_eq!(
            placed("[{name=\"a\"},{name=\"b\"}]").unwrap(),
            "ros-1@a ros-2@b ros-3@a ros-4@b dfm-1@a sfi-1@b sfi-2@a"
        );
        assert_eq!(
            placed("[{name=\"a\",roles={ros=3}},{name=\"b\"},{name=\"c\"}]").unwrap(),
            "ros-1@a ros-2@a ros-3@a ros-4@b dfm-1@c sfi-1@b sfi-2@c"
        );
        let all = placed("[{name=\"a\",roles={ros=1,dfm=1}},{name=\"b\",roles={ros=3,sfi=2}}]").unwrap();
        assert_eq!(all, "ros-1@a ros-2@b ros-3@b ros-4@b dfm-1@a sfi-1@b sfi-2@b");
    }

    fn bound(cores: &str, hosts: &str) -> Result<String, String> {
        let text = "partition.name = \"p\"\nros.count = 4\nsfi.count = 2\n";
        let set = [format!("processes.cores={cores}"), format!("host={hosts}")];
        let partition = Partition::parse("p", text, &set).map_err(|error| error.to_string())?;
        let of = |core: Option<u32>| core.map_or("-".to_owned(), |core| core.to_string());
        Ok(partition.bound().into_iter().map(of).collect::<Vec<_>>().join(" "))
    }

    /// In the order of the applications: four ROSs, which two hosts have in turn, the DFM, and two builders.
    #[test]
    fn a_host_has_cores_of_its_own_and_counts_its_own_applications() {
        assert_eq!(bound("{ros=[2,5],sfi=[7]}", "[]").unwrap(), "2 5 2 5 - 7 7");
        let shared = bound("{ros=[2,5],sfi=[7]}", "[{name=\"a\"},{name=\"b\"}]").unwrap();
        assert_eq!(shared, "2 2 5 5 - 7 7", "each host has the first core for its first one");
        let own = "[{name=\"a\",cores={ros=[0,1],dfm=[3]}},{name=\"b\"}]";
        assert_eq!(bound("{ros=[2,5],sfi=[7]}", own).unwrap(), "0 2 1 5 3 7 -");
        let none = "[{name=\"a\",cores={}},{name=\"b\"}]";
        assert_eq!(bound("{ros=[2,5],sfi=[7]}", none).unwrap(), "- 2 - 5 - 7 -");
    }

    #[test]
    fn a_core_that_no_machine_has_is_said_with_its_host() {
        let refused = bound("{}", "[{name=\"a\"},{name=\"b\",cores={ros=[0,1024]}}]").unwrap_err();
        let expected = "host.1.cores: host b: expected cores from 0 to 1023, found 1024";
        assert!(refused.contains(expected), "{refused}");
        assert!(bound("{}", "[{name=\"a\",cores={rose=[0]}}]").unwrap_err().contains("rose"));
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let refused = |hosts: &str| placed(hosts).unwrap_err();
        assert!(refused("[{name=\"a\",roles={ros=4,sfi=2}}]").contains("no host has dfm-1"));
        assert!(
            refused("[{name=\"a\",roles={ros=5}},{name=\"b\"}]")
                .contains("expected 4 ros on all hosts together, found 5")
        );
        assert!(refused("[{name=\"a\",roles={sfo=1}},{name=\"b\"}]").contains("expected 0 sfo"));
        assert!(refused("[{name=\"a\"},{name=\"a\"}]").contains("host.1.name"));
        assert!(refused("[{name=\"a b\"}]").contains("host.0.name"));
        assert!(refused("[{name=\"a\",launcher=\"ssh\"}]").contains("host.0.data"));
        assert!(refused("[{name=\"a\",launcher=\"ssh\",address=\"10.0.0.2\"}]").contains("transport.host"));
        assert!(
            refused("[{name=\"a\",launcher=\"ssh\",address=\"-oProxyCommand=x\",data=\"127.0.0.2\"}]")
                .contains("host.0.address")
        );
        assert!(placed("[{name=\"a\",launcher=\"ssh\",address=\"me@127.0.0.2\"}]").is_ok());
    }
}
