//! Processors and who runs on them.

/// Processors and who runs on them.
#[derive(Clone, Debug, Default)]
pub struct Hosts {
    /// Cores of each host.
    pub cores: Vec<u32>,
    /// The host of each process.
    pub processes: Vec<usize>,
    /// The process of each application, in their order.
    pub applications: Vec<usize>,
    /// The core of its host to which each process is bound, below their number; without one it runs on any that is free.
    pub bound: Vec<Option<u32>>,
}

impl Hosts {
    /// A host of its own for each of so many applications.
    pub fn separate(applications: usize) -> Self {
        Self {
            cores: vec![1; applications],
            processes: (0..applications).collect(),
            applications: (0..applications).collect(),
            bound: vec![None; applications],
        }
    }
}
