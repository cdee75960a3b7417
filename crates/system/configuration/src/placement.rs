//! Which host has which application.

use core::fmt;

use base::ids::Role;

use crate::partition::{Application, Partition};

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
