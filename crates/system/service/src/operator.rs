//! Who commands: one client at a time, others watch.

use serde::Serialize;

/// A client that commands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Operator {
    /// What the person is called.
    pub name: String,
    /// Which client it is, by a word that it has drawn.
    #[serde(skip)]
    pub client: String,
}

/// Who may command now.
#[derive(Debug, Default)]
pub(crate) struct Command {
    holder: Option<Operator>,
}

/// Somebody else commands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name} commands this partition: take over, or wait until command is given up")]
pub(crate) struct Held {
    pub(crate) name: String,
}

impl Command {
    /// This client commands, if one does.
    pub(crate) fn held_by(holder: Option<Operator>) -> Self {
        Self { holder }
    }

    /// Who commands.
    pub(crate) fn holder(&self) -> Option<&Operator> {
        self.holder.as_ref()
    }

    /// Gives command to a client, if nobody has it or if it takes over. Whom it was taken from.
    pub(crate) fn take(&mut self, client: Operator, takes_over: bool) -> Result<Option<Operator>, Held> {
        match &self.holder {
            Some(holder) if holder.client != client.client && !takes_over => Err(Held { name: holder.name.clone() }),
            _ => {
                let before = self.holder.replace(client);
                Ok(before.filter(|before| Some(&before.client) != self.holder.as_ref().map(|holder| &holder.client)))
            }
        }
    }

    /// Gives command up. Whether this client had it.
    pub(crate) fn give_up(&mut self, client: &str) -> bool {
        self.holder.take_if(|holder| holder.client == client).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(name: &str) -> Operator {
        Operator { name: name.to_owned(), client: format!("client of {name}") }
    }

    #[test]
    fn one_client_commands_until_it_gives_up_or_another_takes_over() {
        let mut command = Command::default();
        assert_eq!(command.take(client("anna"), false), Ok(None));
        assert_eq!(command.take(client("anna"), false), Ok(None));
        assert_eq!(command.take(client("bob"), false), Err(Held { name: "anna".into() }));
        assert_eq!(command.take(client("bob"), true), Ok(Some(client("anna"))));
        assert!(!command.give_up("client of anna"));
        assert!(command.give_up("client of bob"));
        assert_eq!((command.take(client("anna"), false), command.holder()), (Ok(None), Some(&client("anna"))));
    }
}
