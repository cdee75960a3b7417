//! One suite for all links, in two parts: each transport adds a [`suite::Fixture`], says what it guarantees, and passes the
//! same tests as all that guarantee it. What a link that may lose frames must do, all must do.

mod fixtures;
mod may_lose;
#[path = "../network/mod.rs"]
mod network;
mod suite;

macro_rules! may_lose {
    ($transport:ident, $fixture:ty) => {
        mod $transport {
            use super::suite::Fixture as _;
            use super::{fixtures, may_lose, suite};

            #[test]
            fn frames_of_all_lengths_arrive_whole() {
                may_lose::frames_of_all_lengths_arrive_whole(<$fixture>::new(suite::PAGE_LEN));
            }
            #[test]
            fn both_directions_at_once() {
                may_lose::both_directions_at_once(<$fixture>::new(suite::PAGE_LEN));
            }
            #[test]
            fn many_small_frames() {
                may_lose::many_small_frames(<$fixture>::new(suite::PAGE_LEN));
            }
            #[test]
            fn bulk_in_several_slices() {
                may_lose::bulk_in_several_slices(<$fixture>::new(suite::PAGE_LEN));
            }
            #[test]
            fn a_receiver_that_stops_costs_bounded_memory() {
                may_lose::a_receiver_that_stops_costs_bounded_memory(<$fixture>::new(suite::PAGE_LEN));
            }
            #[test]
            fn frames_of_up_to_64_mb_arrive() {
                suite::frames_of_up_to_64_mb_arrive::<$fixture>();
            }
            #[test]
            fn a_sender_survives_that_its_peer_went() {
                may_lose::a_sender_survives_that_its_peer_went(<$fixture>::new(suite::PAGE_LEN));
            }
            #[test]
            fn nothing_comes_twice() {
                may_lose::nothing_comes_twice(<$fixture>::new(suite::PAGE_LEN));
            }
            #[test]
            fn a_stranger_harms_nobody() {
                may_lose::a_stranger_harms_nobody(<$fixture>::new(suite::PAGE_LEN));
            }
            #[test]
            fn a_link_is_made_anew() {
                may_lose::a_link_is_made_anew(<$fixture>::new(suite::PAGE_LEN));
            }
            #[test]
            fn parking_schedulers_move_all_frames() {
                may_lose::parking_schedulers_move_all_frames(<$fixture>::new(suite::PAGE_LEN));
            }
        }
    };
}

macro_rules! keeps_order {
    ($fixture:ty) => {
        #[test]
        fn frames_of_up_to_64_mb_arrive() {
            suite::frames_of_up_to_64_mb_arrive::<$fixture>();
        }
        #[test]
        fn frames_of_all_lengths_arrive_in_order() {
            suite::frames_of_all_lengths_arrive_in_order(<$fixture>::new(suite::PAGE_LEN));
        }
        #[test]
        fn both_directions_at_once() {
            suite::both_directions_at_once(<$fixture>::new(suite::PAGE_LEN));
        }
        #[test]
        fn many_small_frames() {
            suite::many_small_frames(<$fixture>::new(suite::PAGE_LEN));
        }
        #[test]
        fn bulk_in_several_slices() {
            suite::bulk_in_several_slices(<$fixture>::new(suite::PAGE_LEN));
        }
        #[test]
        fn a_receiver_that_stops_stops_its_sender() {
            suite::a_receiver_that_stops_stops_its_sender(<$fixture>::new(suite::PAGE_LEN));
        }
    };
}

macro_rules! conformance {
    ($transport:ident, $fixture:ty) => {
        mod $transport {
            use super::suite::Fixture as _;
            use super::{fixtures, suite};

            keeps_order!($fixture);
            #[test]
            fn frames_sent_before_the_peer_went_are_received() {
                suite::frames_sent_before_the_peer_went_are_received(<$fixture>::new(suite::PAGE_LEN));
            }
            #[test]
            fn a_sender_learns_that_its_peer_went() {
                suite::a_sender_learns_that_its_peer_went(<$fixture>::new(suite::PAGE_LEN));
            }
            #[test]
            fn a_lost_link_is_made_anew() {
                suite::a_lost_link_is_made_anew(<$fixture>::new(suite::PAGE_LEN));
            }
            #[test]
            fn parking_schedulers_move_all_frames() {
                suite::parking_schedulers_move_all_frames(<$fixture>::new(suite::PAGE_LEN));
            }
        }
    };
}

/// What keeps order and loses nothing, without a word when a peer closes.
macro_rules! acknowledged {
    ($transport:ident, $fixture:ty) => {
        mod $transport {
            use super::suite::Fixture as _;
            use super::{fixtures, may_lose, suite};

            keeps_order!($fixture);
            #[test]
            fn nothing_comes_twice() {
                may_lose::nothing_comes_twice(<$fixture>::new(suite::PAGE_LEN));
            }
            #[test]
            fn a_stranger_harms_nobody() {
                may_lose::a_stranger_harms_nobody(<$fixture>::new(suite::PAGE_LEN));
            }
            #[test]
            fn a_sender_survives_that_its_peer_went() {
                may_lose::a_sender_survives_that_its_peer_went(<$fixture>::new(suite::PAGE_LEN));
            }
            #[test]
            fn a_link_is_made_anew() {
                may_lose::a_link_is_made_anew(<$fixture>::new(suite::PAGE_LEN));
            }
            #[test]
            fn parking_schedulers_move_all_frames() {
                may_lose::parking_schedulers_move_all_frames(<$fixture>::new(suite::PAGE_LEN));
            }
        }
    };
}

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
