//! The commands that need no run: each writes its results to one stream and what is wrong to another.

mod check;
mod file;
mod init;
mod pt;
mod schema;

pub use check::check;
pub use file::file;
pub use init::init;
pub(crate) use pt::pt;
pub use schema::schema;
