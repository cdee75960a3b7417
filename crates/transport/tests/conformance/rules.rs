//! Which tests a link runs, by what it guarantees. Where they are called there are modules `fixtures`, `may_lose` and `suite`.

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
