//! The controller and the account, without a network.

mod accounting;
mod accounting_in_full;
mod controller;
