//! The processes of a partition: on this machine as children of run control, and on other hosts through an agent on each.
//!
//! [`Children`] is all that run control sees of them. [`Agent`] is `weir agent`, which starts, watches and ends the applications
//! of its host; [`HostService`] is `weir host`, which starts agents. What both sides decide is in `membership::agents`; here are sockets, processes and the thread that serves them.
//!
//! `docs/hosts.md` says how to use it, `docs/protocols/agents.md` how it works.
#![forbid(unsafe_code)]

mod agent;
mod call;
mod calls;
mod children;
mod desk;
mod farm;
mod farm_key;
mod fence;
mod host_service;
mod hub;
mod inquiry;
mod introduction;
mod launcher;
mod ldaq;
mod open_door;
mod peer;
mod process;
mod roll;
mod serving;
mod visit;
mod window;

pub use agent::{Agent, AgentError};
pub use call::{CallError, PORT, call};
pub use children::{Child, Children, Left};
pub use desk::{Local, Status};
pub use farm::{Estate, Farm, Start};
pub use farm_key::{FarmKey, FarmKeyError};
pub use fence::Fence;
pub use host_service::{HostService, HostServiceError};
pub use hub::Fate;
pub use inquiry::{HostNow, Inquirer, Inquiries, inquiries};
pub use introduction::{Introduction, OfAgent};
pub use ldaq::{Ldaq, LdaqError};
pub use peer::Gone;
pub use process::end_with_parent;
pub use roll::{Present, Roll};
pub use serving::{Home, Serving};
pub use window::{Wanted, Window};
