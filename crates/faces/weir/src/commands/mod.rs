//! The commands that need no run: each writes its results to one stream and what is wrong to another.

mod check;
mod file;
mod init;
mod pt;
mod runs;
mod schema;

pub use check::check;
pub use file::file;
pub use init::init;
pub(crate) use pt::pt;
pub(crate) use runs::operator;
pub use runs::runs;
pub use schema::schema;
