//! Run control that comes back calls the agents of its former life.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use base::time::Time;
use transport::clock;

/// Connections to these agents. Each is made by a thread of its own: a host that is cut off holds up nobody.
pub(crate) struct Calls {
    /// Wakes whoever looks at them.
    wake: Wake,
    done: SyncSender<Made>,
    made: Receiver<Made>,
    /// Where each of them listens, if it has said so.
    agents: BTreeMap<usize, Option<SocketAddr>>,
    /// Those on which an agent has still to prove who it is, with its host.
    unproven: BTreeMap<usize, usize>,
    /// Who is called again, and when.
    again: Vec<(Time, usize)>,
    /// Hosts that were called in vain.
    in_vain: BTreeSet<usize>,
    between: Duration,
    /// Nobody is called any more.
    until: Time,
}

pub(crate) type Wake = Arc<dyn Fn() + Send + Sync>;

/// A host, and the connection to its agent.
type Made = (usize, io::Result<TcpStream>);

impl Calls {
    /// Calls all of them, and again for so long.
    pub(crate) fn begin(
        agents: impl Iterator<Item = (usize, Option<SocketAddr>)>,
        patience: Duration,
        wake: Wake,
    ) -> Self {
        let (done, made) = sync_channel(CALLED_MAX);
        let (unproven, again, in_vain) = (BTreeMap::new(), Vec::new(), BTreeSet::new());
        let (agents, between, until) = (agents.collect(), patience / TRIES, clock::now() + patience);
        let calls = Self { wake, done, made, agents, unproven, again, in_vain, between, until };
        calls.agents.keys().for_each(|host| calls.dial(clock::now(), *host));
        calls
    }

    /// A connection that was made, or why not.
    pub(crate) fn next(&self) -> Option<Made> {
        self.made.try_recv().ok()
    }

    /// An agent has still to prove on this connection that it is that of the host.
    pub(crate) fn await_proof(&mut self, link: usize, host: usize) {
        self.unproven.insert(link, host);
    }

    /// Nothing has to be proved any more on this connection; which host was to prove it is there, if one was.
    pub(crate) fn end_proof(&mut self, link: usize) -> Option<usize> {
        self.unproven.remove(&link)
    }

    /// Calls the agent of a host again, which was called in vain, if there is time and it has said where it listens. Whether it does.
    pub(crate) fn call_again(&mut self, now: Time, host: usize) -> bool {
        let at = now + self.between;
        let is_called = at < self.until && self.agents.get(&host).is_some_and(Option::is_some);
        self.again.extend(is_called.then_some((at, host)));
        is_called
    }

    /// Remembers that a host was called in vain; whether that is so for the first time.
    pub(crate) fn note_in_vain(&mut self, host: usize) -> bool {
        self.in_vain.insert(host)
    }

    /// Calls those again whose time has come.
    pub(crate) fn redial(&mut self, now: Time) {
        let due: Vec<_> = self.again.extract_if(.., |(at, _)| *at <= now).collect();
        due.iter().for_each(|(_, host)| self.dial(now, *host));
    }

    fn dial(&self, now: Time, host: usize) {
        let (done, wake, address) = (self.done.clone(), Arc::clone(&self.wake), self.agents[&host]);
        // Zero is no time to wait.
        let patience = self.until.since(now).max(SHORTEST);
        let call = move || {
            let unknown = || io::Error::other("it has not said where it listens");
            let stream = address.ok_or_else(unknown).and_then(|at| TcpStream::connect_timeout(&at, patience));
            // The hub may be gone.
            let _ = done.send((host, stream));
            wake();
        };
        // A host that is not called for want of a thread does not answer.
        let _ = thread::Builder::new().name("call".into()).spawn(call);
    }
}

/// How often an agent is called within the time that it has, at most.
const TRIES: u32 = 8;
const SHORTEST: Duration = Duration::from_millis(1);
/// So many connections may wait to be looked at; the others wait in the threads that have made them.
const CALLED_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn who_breaks_off_is_called_again_within_its_time() {
        let agent = TcpListener::bind("127.0.0.1:0").unwrap();
        let hosts = [(0, Some(agent.local_addr().unwrap())), (1, None)];
        let mut calls = Calls::begin(hosts.into_iter(), PATIENCE, Arc::new(|| ()));
        let made = || calls.made.recv().unwrap();
        let [(one, of_one), (other, of_other)] = [made(), made()];
        let ((_, reached), (_, unknown)) =
            if one < other { ((one, of_one), (other, of_other)) } else { ((other, of_other), (one, of_one)) };
        assert!(reached.is_ok() && unknown.is_err());
        drop(agent.accept().unwrap());
        calls.await_proof(7, 0);
        assert_eq!((calls.end_proof(7), calls.end_proof(7)), (Some(0), None));

        let now = clock::now();
        assert!(calls.call_again(now, 0) && calls.note_in_vain(0) && !calls.note_in_vain(0));
        assert!(!calls.call_again(now, 1), "nobody knows where");
        calls.redial(now);
        assert!(calls.next().is_none(), "it is not time yet");
        calls.redial(now + PATIENCE / TRIES);
        let (host, stream) = calls.made.recv().unwrap();
        assert!(host == 0 && stream.is_ok() && agent.accept().is_ok());
        assert!(!calls.call_again(now + PATIENCE, 0), "its time is over");
    }

    /// Only what hangs meets it.
    const PATIENCE: Duration = Duration::from_secs(600);
}
