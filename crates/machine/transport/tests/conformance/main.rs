//! One suite for all links, in two parts. Each transport adds a [`suite::Fixture`], says what it guarantees, and passes the
//! same tests as all that guarantee it. What a link that may lose frames must do, all must do.

#[macro_use]
mod rules;

mod fixtures;
mod may_lose;
#[path = "../network/mod.rs"]
mod network;
mod suite;
#[path = "../../../../lab/benchmarks/src/bench/link/udp_link.rs"]
mod udp_link;

may_lose!(udp_ethernet, fixtures::UdpFixture<1472, false>);
may_lose!(udp_ethernet_offloaded, fixtures::UdpFixture<1472, true>);
may_lose!(udp_loopback, fixtures::UdpFixture<65_507, false>);
may_lose!(udp_bad_network, fixtures::BadNetworkFixture<false>);
may_lose!(udp_acknowledged_as_if_it_lost, fixtures::AcknowledgedFixture<1472, true>);
may_lose!(tcp_as_if_it_lost, fixtures::TcpFixture);
may_lose!(local_as_if_it_lost, fixtures::LocalFixture);
may_lose!(shared_memory_as_if_it_lost, fixtures::ShmFixture<true>);
acknowledged!(udp_acknowledged_ethernet, fixtures::AcknowledgedFixture<1472, false>);
acknowledged!(udp_acknowledged_ethernet_offloaded, fixtures::AcknowledgedFixture<1472, true>);
acknowledged!(udp_acknowledged_loopback, fixtures::AcknowledgedFixture<65_507, false>);
acknowledged!(udp_acknowledged_bad_network, fixtures::BadNetworkFixture<true>);
conformance!(tcp, fixtures::TcpFixture);
conformance!(local, fixtures::LocalFixture);
conformance!(shared_memory_lent, fixtures::ShmFixture<true>);
conformance!(shared_memory_copied, fixtures::ShmFixture<false>);
