//! A pass of a driver, as every component has it.

use base::time::Time;
use dataflow::component::{Action, Component, Input, Outbox};
use dataflow::message::{EventInfo, Message};

/// Level 1 accepts events, of which it knows no times.
pub(crate) fn accept(events: Vec<EventInfo>) -> Message {
    Message::L1Accept { events, times: Vec::new() }
}

/// What a component makes of all that is there at once.
pub(crate) fn pass(component: &mut impl Component, now: Time, inputs: impl IntoIterator<Item = Input>) -> Vec<Action> {
    let mut out = Outbox::new();
    for input in inputs {
        component.handle(now, input, &mut out);
        component.check();
    }
    component.flush(now, &mut out);
    spread(&mut out)
}

/// The actions, with a message to several peers as one to each of them.
pub(crate) fn spread(out: &mut Outbox) -> Vec<Action> {
    let each = |action| match action {
        Action::Broadcast { to, message } => {
            to.iter().map(|&to| Action::Send { to, message: message.clone() }).collect()
        }
        action => vec![action],
    };
    out.drain().flat_map(each).collect()
}
