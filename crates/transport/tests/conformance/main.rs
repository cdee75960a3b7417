//! One suite for all links: each transport adds a [`suite::Fixture`] and passes the same tests.

mod fixtures;
mod suite;

macro_rules! conformance {
    ($transport:ident, $fixture:ty) => {
        mod $transport {
            use super::{fixtures, suite};

            #[test]
            fn frames_of_all_lengths_arrive_in_order() {
                suite::frames_of_all_lengths_arrive_in_order(<$fixture>::default());
            }
            #[test]
            fn both_directions_at_once() {
                suite::both_directions_at_once(<$fixture>::default());
            }
            #[test]
            fn many_small_frames() {
                suite::many_small_frames(<$fixture>::default());
            }
            #[test]
            fn bulk_in_several_slices() {
                suite::bulk_in_several_slices(<$fixture>::default());
            }
            #[test]
            fn a_receiver_that_stops_stops_its_sender() {
                suite::a_receiver_that_stops_stops_its_sender(<$fixture>::default());
            }
            #[test]
            fn frames_sent_before_the_peer_went_are_received() {
                suite::frames_sent_before_the_peer_went_are_received(<$fixture>::default());
            }
            #[test]
            fn a_sender_learns_that_its_peer_went() {
                suite::a_sender_learns_that_its_peer_went(<$fixture>::default());
            }
            #[test]
            fn a_lost_link_is_made_anew() {
                suite::a_lost_link_is_made_anew(<$fixture>::default());
            }
            #[test]
            fn parking_schedulers_move_all_frames() {
                suite::parking_schedulers_move_all_frames(<$fixture>::default());
            }
        }
    };
}

conformance!(tcp, fixtures::TcpFixture);
conformance!(local, fixtures::LocalFixture);
