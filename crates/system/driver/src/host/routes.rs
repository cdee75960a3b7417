//! Where the applications of a partition are, as one process knows it.

use base::ids::NodeId;
use membership::passage::LinkId;

use super::carriers::Routes;

/// By node.
pub(super) struct RouteTable {
    /// Those of the messages of components.
    pub(super) data: Vec<Route>,
    /// Those of the messages of run control, which keep to the connection by which a process joined.
    pub(super) control: Vec<Route>,
    /// Further connections.
    pub(super) further: Vec<Routes>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    Nowhere,
    Here,
    Link(LinkId),
}

impl RouteTable {
    pub(super) fn new(node_count: usize) -> Self {
        Self {
            data: vec![Route::Nowhere; node_count],
            control: vec![Route::Nowhere; node_count],
            further: vec![Routes::default(); node_count],
        }
    }

    /// Nothing leads to a node any more.
    pub(super) fn lose(&mut self, node: NodeId) {
        let index = usize::from(node.0);
        self.data[index] = Route::Nowhere;
        self.control[index] = Route::Nowhere;
        self.further[index].clear();
    }
}
