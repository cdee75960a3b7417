//! Which tests a link runs, by what it guarantees. Where they are called there are modules `fixtures`, `may_lose` and `suite`.

/// Tests of one of these modules, each with a fixture of its own.
macro_rules! tests {
    ($module:ident, $fixture:ty, $($test:ident)*) => {
        $(
            #[test]
            fn $test() {
                $module::$test(<$fixture>::new(suite::PAGE_LEN));
            }
        )*
    };
}

macro_rules! may_lose {
    ($transport:ident, $fixture:ty) => {
        mod $transport {
            use super::suite::Fixture as _;
            use super::{fixtures, may_lose, suite};

            long_frames!($fixture);
            without_a_word!($fixture);
            tests!(may_lose, $fixture,
                frames_of_all_lengths_arrive_whole
                both_directions_at_once
                many_small_frames
                bulk_in_several_slices
                a_receiver_that_stops_costs_bounded_memory
            );
        }
    };
}

macro_rules! conformance {
    ($transport:ident, $fixture:ty) => {
        mod $transport {
            use super::suite::Fixture as _;
            use super::{fixtures, suite};

            keeps_order!($fixture);
            tests!(suite, $fixture,
                frames_sent_before_the_peer_went_are_received
                a_sender_learns_that_its_peer_went
                a_lost_link_is_made_anew
                parking_schedulers_move_all_frames
            );
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
            without_a_word!($fixture);
        }
    };
}

macro_rules! keeps_order {
    ($fixture:ty) => {
        long_frames!($fixture);
        tests!(suite, $fixture,
            frames_of_all_lengths_arrive_in_order
            both_directions_at_once
            many_small_frames
            bulk_in_several_slices
            a_receiver_that_stops_stops_its_sender
        );
    };
}

/// What nobody tells that a peer closes.
macro_rules! without_a_word {
    ($fixture:ty) => {
        tests!(may_lose, $fixture,
            a_sender_survives_that_its_peer_went
            nothing_comes_twice
            a_stranger_harms_nobody
            a_link_is_made_anew
            parking_schedulers_move_all_frames
        );
    };
}

macro_rules! long_frames {
    ($fixture:ty) => {
        #[test]
        fn frames_of_up_to_64_mb_arrive() {
            suite::frames_of_up_to_64_mb_arrive::<$fixture>();
        }
    };
}
