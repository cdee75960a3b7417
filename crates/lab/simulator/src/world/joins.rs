//! How applications join in a world, and what goes wrong with that.

use std::time::Duration;

use base::ids::NodeId;

/// How applications join, and what goes wrong with that.
#[derive(Clone, Debug, PartialEq)]
pub struct Joins {
    /// The longest time until the end of a connection is seen: a peer may return before.
    pub notice_max: Duration,
    /// What goes wrong, and when.
    pub faults: Vec<(Moment, JoinFault)>,
}

/// When something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// So long after the processes were started.
    OfStart(Duration),
    /// So long after the run has begun.
    OfRun(Duration),
    /// So long after the run before was over, if there was one in the same processes.
    BetweenRuns(Duration),
}

impl Moment {
    /// How long after what it counts from.
    pub fn after(self) -> Duration {
        let (Self::OfStart(after) | Self::OfRun(after) | Self::BetweenRuns(after)) = self;
        after
    }
}

/// What can go wrong with joining.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JoinFault {
    /// Somebody connects and says that he is another.
    Impostor(Impostor),
    /// The connection of an application to run control breaks.
    Cut(NodeId),
    /// The process of an application ends.
    Death(NodeId),
}

/// Somebody who connects and says that he is another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Impostor {
    /// Which application he says he is.
    pub as_whom: NodeId,
    /// In which life, as seen from the one that it has: a former one below 0.
    pub lives_ahead: i32,
    /// To whom he connects.
    pub at: NodeId,
    /// Whether he knows the secret of the run, as a second process of that application does.
    pub knows_secret: bool,
    /// Whether he says what he comes for without a proof.
    pub skips_proof: bool,
}
