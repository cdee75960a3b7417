//! What goes on when a run is over: the processes of the applications, for another run in them.

use base::ids::{Incarnation, NodeId};
use base::time::Time;
use membership::passage::LinkId;

use super::joining::{JoinEvent, Joining, START_TIMEOUT};
use super::joins::Moment;
use super::outcomes::Outcomes;
use super::{Agenda, Arriving, Event, What, World};

/// The processes of a run that is over, and what they still say to run control.
pub struct Processes {
    joining: Joining,
    agenda: Agenda,
    lives: Vec<Incarnation>,
}

impl World {
    /// Runs to the end. The processes go on, if all of them do: at once, or when those are back that were on their way.
    ///
    /// # Panics
    /// As [`World::run`].
    pub fn run_and_keep(mut self, at_once: bool) -> (Outcomes, Option<Processes>) {
        self.run_to_end();
        if at_once {
            self.only_join();
        } else {
            self.settle_joining();
        }
        let all_go_on = self.slots.iter().all(|slot| !slot.gone && !slot.hangs);
        let lives = self.slots.iter().map(|slot| slot.incarnation).collect();
        let kept = self.joining.take_if(|_| all_go_on);
        let kept = kept.map(|joining| Processes { joining, agenda: core::mem::take(&mut self.agenda), lives });
        (self.conclude(), kept)
    }

    /// A run of the same applications in the processes of a former one, which they leave first.
    #[must_use]
    pub fn in_processes_of(mut self, mut former: Processes) -> Self {
        self.now = former.agenda.queue.now().to_time();
        while let Some(event) = former.agenda.queue.pop() {
            let Event::Pending(index) = event else { continue };
            match former.agenda.pending.remove(index) {
                What::Join(JoinEvent::Fault(_)) => {}
                // What is said in the former run is of no use in this one.
                what @ (What::Join(_) | What::Arrives(_, Arriving::Message(..))) => {
                    self.schedule(former.agenda.queue.now().to_time(), what);
                }
                _ => {}
            }
        }
        for (slot, life) in self.slots.iter_mut().zip(former.lives) {
            slot.incarnation = life;
        }
        self.joining = self.joining.map(|new| former.joining.for_run_of(new));
        self
    }

    /// All give up what they have of the former run, and join again.
    pub(super) fn lead_on(&mut self) {
        self.schedule_faults(Moment::BetweenRuns);
        self.with_registrar(|registrar, hands| registrar.disconnect(hands));
        self.join_until(|joining| joining.registrar().all_living_joined());
        self.with_registrar(|registrar, hands| registrar.wait(hands));
        self.join_until(Joining::is_complete);
        self.joining().leads_on();
    }

    fn join_until(&mut self, done: impl Fn(&Joining) -> bool) {
        let deadline: Time = self.now + START_TIMEOUT;
        while !done(self.joining()) {
            match self.next_until(deadline) {
                Some(What::Join(event)) => self.on_join_event(event),
                Some(_) => {}
                None => panic!(
                    "between two runs {:?} have not joined",
                    self.joining().registrar().missing().collect::<Vec<_>>()
                ),
            }
        }
    }

    /// The application of this connection gives up its component, and all other connections.
    pub(super) fn leave(&mut self, here: NodeId, control: LinkId) {
        let member = (here, self.slot(here).incarnation);
        self.joining().forget(here);
        for link in self.joining().links_of(member) {
            if link != control {
                self.close(link);
            }
        }
    }
}
