//! An application of a host that hangs while its agent is well.

use super::farm::Farm;
use super::{closing_files, taking_over};
use crate::silence::{check_named_until_they_answer, recording};

#[test]
fn an_application_that_hangs_on_a_host_is_named_with_it() {
    let hung = [("l2pu-1", " on host a"), ("ros-1", " on host b"), ("sfi-1", " on host b"), ("sfo-1", " on host a")];
    check_named_until_they_answer(recording(taking_over::farm()), &hung);
}

#[test]
fn and_on_a_host_with_an_address_of_its_own() {
    let Some(mut farm) = Farm::to_log_in("silence::and_on_a_host_with_an_address_of_its_own") else { return };
    let job = farm.logged_in(taking_over::patient(closing_files()), "10.77.0.4");
    check_named_until_they_answer(recording(job), &[("sfo-1", " on host b"), ("sfi-1", " on host c")]);
}
