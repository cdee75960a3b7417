//! Events of an application for whoever is logged in at its host.

use agents::{Wanted, Window};
use base::ids::NodeId;
use base::sampling::SamplingRule;
use base::time::Time;
use driver::{Assembly, Host};
use transport::poller::Poller;
use transport::scheduler::Context;

use crate::samples::{Sampled, Shown};

pub(super) struct Showing {
    window: Window,
}

impl Showing {
    /// Without a window the application works as well.
    pub(super) fn open(name: &str, poller: &mut Poller) -> Option<Self> {
        match Window::open(poller) {
            Ok(window) => Some(Self { window }),
            Err(cause) => {
                eprintln!("weir node {name}: `weir ldaq sample` does not reach it: {cause}");
                None
            }
        }
    }

    /// Whether somebody has come, gone or waits. No system call.
    pub(super) fn is_due(&self, context: &Context<'_, Host>) -> bool {
        context.shared.has_shown() || self.window.is_due(context.now)
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.window.next_deadline()
    }

    /// Asks the component for as many samples as the partition allows at a time, and shows what it gives.
    pub(super) fn serve(&mut self, context: &mut Context<'_, Host>, assembly: Option<&Assembly>, node: NodeId) {
        let shown = context.shared.take_shown();
        let app = assembly.and_then(|assembly| Some((assembly, assembly.application(node)?)));
        if let Some((assembly, app)) = app.filter(|_| !shown.is_empty()) {
            let all = Shown::of(assembly);
            for recording in shown {
                let of = (app.name.clone(), app.role);
                self.window.show(&Sampled::new(&all, of, context.now, recording).event());
            }
        }
        if let Some(wanted) = self.window.serve(context.now, context.poller) {
            let rule = assembly.and_then(|assembly| Some(rule(assembly, wanted?)));
            context.shared.watch(context.now, rule);
        }
    }
}

fn rule(assembly: &Assembly, wanted: Wanted) -> SamplingRule {
    let Wanted { trigger_types, prescale } = wanted;
    let sampling = &assembly.partition.sampling;
    let bytes = usize::try_from(sampling.size.bytes()).unwrap_or(usize::MAX);
    SamplingRule { trigger_types, items: 0, prescale, samples: sampling.samples, bytes }
}
