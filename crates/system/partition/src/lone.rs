//! One read-out system with its whole driver and without the rest of its partition: what does a fragment cost?

use base::ids::{Incarnation, NodeId, Role};
use base::time::Time;
use configuration::Partition;
use core::time::Duration;
use dataflow::component::{Component, Input};
use dataflow::message::{Command, Message};
use dataflow::report::Report;
use rol::Inputs;
use transport::clock;
use transport::scheduler::{Context, Scheduler, Task};

use crate::conductor::{StartError, idle, link_key, new_host};
use driver::Assembly;
use driver::{Host, Links, RestingLinks, Workshop};

/// The read-out system of a partition. All others of the partition are components of the caller, in the same thread.
pub struct LoneReadOut {
    scheduler: Scheduler<'static, Host>,
    host: Host,
    ros: NodeId,
}

/// What a [`LoneReadOut`] has done so far.
pub struct Seen<'a> {
    /// The time.
    pub now: Time,
    /// What its component has counted.
    pub report: Report,
    /// What was said for people since the last look.
    pub notices: &'a [String],
}

impl LoneReadOut {
    /// Listens for the sources. `others` makes the component of each other application.
    ///
    /// # Errors
    /// An address that is not to be had, or memory.
    ///
    /// # Panics
    /// If the partition has several read-out systems.
    pub fn open(
        configuration: Partition,
        mut others: impl FnMut(&Assembly, Role) -> Box<dyn Component + Send>,
    ) -> Result<Self, StartError> {
        let scheduler = Scheduler::<Host>::new(idle(&configuration))?;
        let inputs = Inputs::open(&configuration)?;
        let assembly = Assembly::new(configuration, inputs.shares().to_vec())?;
        let &[ros] = &assembly.of(Role::Ros)[..] else { panic!("one read-out system") };
        let mut host = new_host(&assembly, Links::default());
        host.host_control();
        let key = link_key(&assembly.partition);
        for app in &assembly.applications {
            let (component, workshop) = if app.node == ros {
                let links = (&RestingLinks::default(), &scheduler.waker());
                let workshop = Workshop::new(&assembly, Some(&inputs), ros, key.as_ref(), links)?;
                (assembly.component(ros, None), workshop)
            } else {
                (others(&assembly, app.role), Workshop::default())
            };
            host.set_life(app.node, Incarnation::FIRST);
            host.host(clock::now(), app.node, component, workshop, |a, b| assembly.talk(a, b));
        }
        Ok(Self { scheduler, host, ros })
    }

    /// Where the sources connect to, by their place in the configuration.
    pub fn addresses(&self) -> Vec<String> {
        self.host.addresses_of_sources()
    }

    /// Runs until `watch` says that it is enough; it looks every few milliseconds.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn run(mut self, watch: impl FnMut(&Seen<'_>) -> bool) -> Result<(), StartError> {
        let nodes: Vec<NodeId> = self.host.hosted().collect();
        for node in nodes {
            self.host.input(clock::now(), node, Input::Command(Command::Start));
        }
        let watching = Watching { ros: self.ros, watch, next: clock::now(), notices: Vec::new() };
        Ok(self.host.run(self.scheduler, watching)?)
    }
}

struct Watching<W> {
    ros: NodeId,
    watch: W,
    next: Time,
    notices: Vec<String>,
}

impl<W: FnMut(&Seen<'_>) -> bool> Task<Host> for Watching<W> {
    fn poll(&mut self, context: &mut Context<'_, Host>) -> bool {
        context.now >= self.next
    }

    fn action(&mut self, context: &mut Context<'_, Host>) {
        let host = &mut *context.shared;
        while let Some((_, message)) = host.next_for_control() {
            if let Message::Notice(text) | Message::News(text) = message {
                self.notices.push(text);
            }
        }
        self.next = context.now + BETWEEN_LOOKS;
        let report = host.report(context.now, self.ros).expect("the read-out system is here");
        if (self.watch)(&Seen { now: context.now, report, notices: &self.notices }) {
            context.stop();
        }
        self.notices.clear();
    }

    fn next_deadline(&self) -> Option<Time> {
        Some(self.next)
    }
}

const BETWEEN_LOOKS: Duration = Duration::from_millis(5);
