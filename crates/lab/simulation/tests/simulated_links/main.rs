//! Simulated networks behind the trait of links, under the conformance suite of the transports. It tests order, loss,
//! doubled frames, all lengths, back-pressure, the death of a peer. The raw network of datagrams delivers doubles,
//! which components tell apart; here it makes none. It has no address that a stranger could write to.

#[macro_use]
#[expect(unused_macros, reason = "not all of the suite's rules hold for simulated links")]
#[path = "../../../../machine/transport/tests/conformance/rules.rs"]
mod rules;

mod fixtures;
#[path = "../../../../machine/transport/tests/conformance/may_lose.rs"]
mod may_lose;
#[path = "../../../../machine/transport/tests/network/mod.rs"]
mod network;
#[path = "../../../../machine/transport/tests/conformance/suite.rs"]
mod suite;

may_lose!(simulated_udp, fixtures::SimulatedFixture<false>);
may_lose!(simulated_tcp_as_if_it_lost, fixtures::SimulatedFixture<true>);
conformance!(simulated_tcp, fixtures::SimulatedFixture<true>);
