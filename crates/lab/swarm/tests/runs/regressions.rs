//! A bug leaves a test that is named after it.

use std::time::Duration;

use base::ids::{NodeId, Role};
use control::losses::Cause;
use dataflow::building::dfm::ClearAfter;
use dataflow::filter::policy::FilterPolicy;
use dataflow::level1::dead_time::DeadTimeParameters;
use dataflow::level1::pace::Spacing;
use dataflow::level2::steering::Strategy;
use dataflow::report::SfoCounters;

use simulator::world::{Fault, Links};
use swarm::{Counts, EDITION_OF_LINKS, EDITION_OF_SLICES, EDITION_OF_WITHHELD, InputKind, Plan};

/// Results of events that a dead supervisor had taken with it filled the pROS, and L2PUs waited for it to take more.
#[test]
fn results_of_a_dead_supervisor_do_not_keep_an_l2pu_from_draining() {
    holds(7_001_059, 3);
}

/// Behind the last clears came new empty groups for ever: where much is lost, read-out systems missed more than they caught up.
#[test]
fn the_last_clears_are_caught_up_with_where_much_is_lost() {
    let links = Links { loss: 0.35, corruption: 0.15, ..Links::perfect() };
    for seed in 0..40 {
        passes(&Plan::plain(20).with(|plan| {
            plan.seed = seed;
            plan.network.links = links;
            plan.counts = Counts { ros: 4, ..Plan::plain(0).counts };
        }));
    }
}

/// An application was killed in the moment in which the run began, and run control was told of it before.
#[test]
fn a_death_in_the_first_moment_ends_the_run() {
    holds(1_795_324_697_387, 3);
}

/// Events that went to a second builder were counted twice where the DFM died.
#[test]
fn events_assigned_twice_by_a_dead_dfm_count_once() {
    holds(50_006_488, 3);
}

/// A DFM that had returned took over and finished an event that an SFI held, before a slow connection brought level 1's
/// word of it. It was built again.
#[test]
fn a_source_that_is_heard_late_brings_no_event_twice() {
    let plan = Plan::plain(3).with(|plan| {
        plan.seed = 181;
        plan.input = InputKind::Level1;
        plan.counts = Counts { ros: 3, ..Plan::plain(0).counts };
        plan.readout.robs_per_ros = 1;
        plan.triggers.first = 16_777_211;
        plan.triggers.spacing = Spacing::Poisson(Duration::from_micros(300));
        plan.triggers.in_flight = 2;
        plan.building.at_once = 1;
        plan.building.events = 2;
        plan.filter.policy = FilterPolicy::Prescale { factor: 3 };
        plan.network.slow_channels = 0.2;
    });
    for us in (0..10_000).step_by(100) {
        for seed in [181, 182] {
            passes(&plan.clone().with(|plan| {
                plan.seed = seed;
                plan.course.faults = vec![restart(us, 5, 1_000)];
            }));
        }
    }
}

/// A builder told a DFM that had returned what it held, and only then that it had no room for more.
#[test]
fn a_full_builder_gets_no_event_from_a_dfm_that_returns() {
    let plan = Plan::plain(3).with(|plan| {
        plan.input = InputKind::Level1;
        plan.counts = Counts { l2sv: 1, l2pu: 1, ros: 1, sfi: 1, efd: 1, sfo: 1 };
        plan.triggers.spacing = Spacing::Fixed(Duration::from_micros(200));
        plan.building.at_once = 2;
        plan.building.events = 2;
        plan.course.late = vec![(NodeId(6), Duration::from_millis(17))];
        plan.course.faults = vec![restart(9_510, 3, 2_000)];
    });
    passes(&plan);
}

/// While the DFM was away, the EFD had nobody to tell the fate of an event whose SFI had died. And a DFM that triggers
/// itself used again the numbers of events that a dead SFI had built.
#[test]
fn numbers_of_events_are_not_used_twice_by_a_dfm_that_returns() {
    for seed in [2847, 9178] {
        for us in (0..10_000).step_by(250) {
            passes(&Plan::plain(14).with(|plan| {
                plan.seed = seed;
                plan.input = InputKind::SelfTrigger;
                plan.counts = Counts { ros: 1, ..Plan::plain(0).counts };
                plan.triggers.spacing = Spacing::Poisson(Duration::from_micros(300));
                plan.building.clear_after = ClearAfter::Recorded;
                plan.filter.policy = FilterPolicy::Random { accept: 0.5, seed };
                plan.network.service = Duration::from_micros(16);
                plan.course.faults = vec![restart(us, 2, 5_000), restart(us + 2_000, 4, 2_000)];
            }));
        }
    }
}

/// What was built is more than the supervisors know, where the one that accepted it has died as well as the DFM.
#[test]
fn the_account_knows_events_whose_supervisor_and_dfm_have_returned() {
    for us in (0..8_000).step_by(250) {
        passes(&Plan::plain(20).with(|plan| {
            plan.seed = 72;
            plan.counts = Counts { l2sv: 2, l2pu: 1, ros: 1, sfi: 1, efd: 1, sfo: 1 };
            plan.level2.strategy = Strategy::TwoStep { robs_per_step: 2, step_accept: 1.0 };
            plan.course.faults = vec![restart(us + 4_000, 7, 9_000), restart(us, 3, 8_000)];
        }));
    }
}

/// A recorder that had closed its files left a filter daemon without an answer. Deaths and a split of the network had
/// brought the daemon an event late. The DFM waited for its fate until run control gave it up.
#[test]
fn a_recorder_that_has_closed_refuses_what_comes_late() {
    holds(710_006_233, 5);
    holds(710_007_596, 5);
}

/// Nobody was left to say how many events there had been, where the DFM had died for good and a builder as well. The files held more.
#[test]
fn the_files_tell_what_was_built_by_those_that_died() {
    holds(710_000_078, 5);
    holds(710_019_677, 5);
}

/// What a DFM had taken for lost with a builder its next life was told of again, and had it built.
#[test]
fn what_was_lost_for_a_former_life_of_the_dfm_may_be_found() {
    holds(710_046_132, 5);
}

/// The DFM and the builder died when the run had been drained. The next DFM was told again of the built events, and the
/// run ended while it was busy with that.
#[test]
fn a_dfm_that_is_told_again_at_the_end_may_be_busy() {
    holds(841_022_570, 5);
}

/// A builder had told all it had when a DFM returned and gave it events once more: the DFM reported before it knew their fates.
#[test]
fn a_dfm_that_returns_at_the_end_waits_for_what_it_gives_to_builders_that_had_finished() {
    holds_in(7, 890_003_130, 5);
}

/// A DFM that triggers itself had given up an event that only it and a builder that died had seen. Its next life was
/// told of the loss, and not that it had triggered the event.
#[test]
fn an_event_that_was_given_up_was_triggered() {
    holds_in(7, 890_009_558, 5);
}

/// A supervisor and a DFM died. The next supervisor decided anew, on all data, events that level 2 had accepted on a
/// part of them. It rejected some that were being built.
#[test]
fn what_a_returned_dfm_knows_to_be_accepted_is_not_decided_again() {
    holds_in(7, 890_015_610, 5);
}

/// A clear group that overtook another had that asked for. Repeated, it brought a bound above an event whose own clear
/// was still on its way. A read-out system without room let the event go at once.
#[test]
fn a_repeated_clear_group_may_overtake_the_clear_of_an_event_below_its_bound() {
    holds_in(7, 910_014_755, 0);
}

/// The pROS was full of results that a returned supervisor had decided anew. All workers waited for room in it with
/// later events of the former life: nothing moved any more.
#[test]
fn workers_do_not_wait_for_a_pros_with_what_a_lost_supervisor_had_given_them() {
    holds(900_003_792, 4);
}

fn restart(at_us: u64, node: u16, after_us: u64) -> (Duration, Fault) {
    (Duration::from_micros(at_us), Fault::Restart(NodeId(node), Duration::from_micros(after_us)))
}

fn passes(plan: &Plan) {
    assert_eq!(plan.verdict(), None, "{plan:#?}");
}

/// A DFM that returned answered a supervisor that had returned meanwhile with words for its former life. The DFM took
/// its decisions twice and cleared twice.
#[test]
fn a_dfm_that_catches_up_does_not_answer_former_lives() {
    holds(4125, 2);
}

/// Results that were lost while the pROS was away counted nowhere, and their events did not say that one was missing.
#[test]
fn a_result_that_is_lost_with_the_pros_is_flagged() {
    for seed in [5_000_018, 5_000_045, 5_000_085] {
        holds_in(5, seed, 4);
    }
    holds_in(5, 5_000_017, 2);
}

/// A slow DFM heard that a supervisor wanted its first groups forgotten before it had told it of those of its former
/// life. As those have the same numbers, it forgot them, and the supervisor decided their events again.
#[test]
fn groups_of_a_new_life_of_a_supervisor_are_not_taken_for_those_of_its_former_life() {
    holds_in(5, 10_011_746, 2);
}

/// A filter daemon had more in hand of a builder that died often than of two lives, as the disk behind it was full.
#[test]
fn a_filter_daemon_may_have_events_of_several_lives_of_a_builder() {
    holds_in(5, 10_030_483, 5);
}

/// A clock made a DFM impatient with a builder that its assignment had not reached: the revocation came after the end, too.
#[test]
fn a_builder_far_away_may_not_know_at_the_end_what_was_revoked() {
    holds_in(5, 20_021_054, 1);
}

/// A DFM died with rejections that it had taken and not cleared. Results of events that level 2 had accepted and an
/// override rejected filled the pROS. A worker waited for room in it with an older event that was not to be forced.
#[test]
fn events_that_an_override_rejects_leave_no_result_in_the_pros() {
    holds_in(5, 20_021_377, 4);
}

/// One builder with room for one event, four slow connections for each: 92 events took longer than a stop without progress may.
#[test]
fn a_slow_plan_is_no_stall() {
    holds_in(6, 7_705_007_780, 5);
}

/// A builder and a DFM that triggers itself died together. A filter daemon told the next life of an event that only
/// they knew, and the DFM triggered it a second time.
#[test]
fn an_event_that_a_filter_daemon_tells_of_is_not_triggered_again() {
    holds_in(7, 202_822, 5);
}

/// A clear that closed a group let the DFM tell its counts before it had counted the event that it was for.
#[test]
fn what_is_cleared_is_counted_before_anybody_is_told() {
    holds_in(7, 100_582, 4);
}

/// The builder that died had the newest bound, with which filter daemons forgot what they had told it. The DFM that
/// died as well had its events built again, from data that were cleared.
#[test]
fn a_filter_daemon_forgets_what_the_dfm_has_counted_and_nothing_else() {
    holds_in(7, 100_351, 5);
}

/// A late clear group said less than the last of the run: a read-out system took that for a contradiction, and kept a page.
#[test]
fn a_late_clear_does_not_contradict_the_last_one() {
    holds_in(7, 880_008_797, 2);
    holds_in(7, 880_011_697, 4);
}

/// A supervisor and a DFM died: nobody counted which events had been accepted without all their data.
#[test]
fn events_accepted_without_all_data_are_counted_though_a_supervisor_and_the_dfm_die() {
    holds_in(7, 880_006_073, 5);
}

/// A DFM that triggers itself died with a builder, for good. Nobody counted the events that only they had, though they
/// had asked the read-out systems for them.
#[test]
fn events_of_a_dfm_that_triggers_itself_are_counted_though_it_dies_with_a_builder() {
    holds_in(8, 2_354_424_110_440, 5);
}

/// An L2SV died and the DFM hung: nobody counted which events had been accepted without all their data.
#[test]
fn events_accepted_without_all_data_are_counted_though_a_supervisor_dies_and_the_dfm_hangs() {
    holds_in(8, 1_629_768_347_156, 3);
}

/// Rejected without all its data, an event was to be in no file, and not to be missed either.
#[test]
fn an_incomplete_event_that_the_event_filter_rejects_counts_as_a_loss() {
    let account = Plan::plain(100)
        .with(|plan| {
            plan.input = InputKind::Level1;
            plan.network.links = Links { loss: 0.6, ..Links::perfect() };
            plan.building.request_timeout = Duration::from_micros(300);
            plan.filter.policy = FilterPolicy::Random { accept: 0.0, seed: 1 };
        })
        .run_checked()
        .account;
    assert_eq!((account.filter_rejected, account.recorded), (100, 0), "{account:#?}");
    assert!(account.built_incomplete > 0, "{account:#?}");
    let losses: Vec<(Cause, u64)> = account.losses().map(|loss| (loss.cause, loss.events)).collect();
    assert_eq!(losses, [(Cause::BuiltIncomplete, account.built_incomplete)]);
}

/// Once disks healed with the links, seeds of the first edition drew other random numbers from then on, and met other runs.
#[test]
fn disks_of_the_first_edition_do_not_heal() {
    let failures = |edition| {
        let disks_heal = Plan::draw_in(edition, 1, 1).recording.disks_heal;
        let healed_after = Some(Duration::from_millis(10));
        let spacing = Spacing::Fixed(Duration::from_micros(200));
        let plan = Plan::plain(200).with(|plan| {
            plan.recording.failures = 0.5;
            plan.triggers.spacing = spacing;
            plan.course.healed_after = healed_after;
            plan.recording.disks_heal = disks_heal;
        });
        let reports = plan.run_checked().ending.reports;
        SfoCounters::total(reports.values().filter(|report| report.role == Role::Sfo)).failures
    };
    let (first, second) = (failures(1), failures(2));
    assert!(0 < second && second < first / 4, "{first} and {second}");
}

/// Level 1 was always a little late with offers that nobody had room for, and was called again at once, without end.
#[test]
fn a_level_1_that_is_always_a_little_late_gets_on() {
    holds_in(7, 930_001_220, 1);
    holds_in(7, 930_003_891, 5);
}

/// The outside said that there were no more triggers shortly before the run was paused. When it went on, the next
/// crossing was still to come, and level 1 did not ask to be called then.
#[test]
fn triggers_from_outside_that_are_over_end_a_run_that_was_paused() {
    for us in (1_000..3_000).step_by(50) {
        passes(&Plan::plain(7).with(|plan| {
            plan.triggers.credit = Some(3);
            plan.triggers.limited = false;
            plan.triggers.crossings = Some(DeadTimeParameters { simple: 7468, complex: Vec::new() });
            plan.course.faults = vec![(Duration::from_micros(us), Fault::Pause(Duration::from_micros(17_445)))];
        }));
    }
}

/// Behind the end of a connection a former life of the DFM greeted once more. A builder gave up what the next one asked it for.
#[test]
fn a_life_that_was_lost_is_not_taken_in_again() {
    holds_in(9, 2_702_635_577_588, 2);
}

/// A DFM that triggers itself died while its message to one builder was on its way, and behind that came word of its
/// next life. Nobody knew of the event, and others knew of later ones.
#[test]
fn a_dfm_that_triggers_itself_gives_out_again_what_nobody_knows() {
    holds_in(10, 115, 4);
    holds_in(10, 66, 5);
    holds_in(10, 5_000_000_003_309, 5);
}

/// A builder that returned got events before it had found the read-out systems, and its requests went nowhere.
#[test]
fn a_source_that_was_out_of_reach_is_asked_when_it_comes() {
    holds_in(10, 5_000_000_000_331, 5);
    holds_in(10, 5_000_000_003_433, 5);
}

/// Events that were on their way from a level 1 that died reached nobody, and later ones did. So it was with a DFM that triggered itself
/// when a builder and the read-out system died, too.
#[test]
fn what_is_known_of_one_that_triggered_and_died_need_not_be_its_first_events() {
    holds_in(10, 5_000_000_002_929, 3);
    holds_in(10, 6_000_000_001_727, 5);
}

/// A run had ended before an application died, as whose former life an impostor was to speak. He spoke as the present one, and was let in.
#[test]
fn nobody_speaks_as_a_former_life_of_one_that_has_not_died() {
    holds_in(10, 10_000_000_007_660, 5);
}

/// One event at a time, over slow connections, and a trigger offered each microsecond: more than a million in vain.
#[test]
fn a_plan_with_many_offers_in_vain_is_not_endless() {
    holds_in(8, 10_000_000_004_210, 5);
}

/// Over a slow connection a pause came to the next life, which it was not meant for. That life, told to go on by then, was taken for paused.
#[test]
fn a_pause_that_a_former_life_was_told_does_not_hold_the_next_one() {
    holds_in(8, 10_000_000_006_037, 2);
}

/// A filter daemon died twice while a recorder had its events and had not synced them: the recorder answered all its lives.
#[test]
fn a_recorder_answers_what_the_present_life_of_a_daemon_has_asked_for() {
    holds_in(8, 20_000_000_008_975, 5);
}

/// A dataflow manager that triggers itself was told to go on when it had drained: it offered triggers to nobody, without end.
#[test]
fn who_has_drained_offers_no_triggers_when_a_pause_ends() {
    holds_in(8, 30_000_000_001_424, 4);
}

/// An application that had died before a later life of its peer came was gone. When an impostor spoke as it there, it might have returned.
#[test]
fn nobody_speaks_as_one_that_will_not_return() {
    holds_in(10, 30_000_000_004_512, 5);
}

/// Level 1 came late, and met a read-out system behind a slow connection when it had issued all. Fragments that it had
/// passed over there counted as those of events.
#[test]
fn who_is_met_by_a_late_level_1_takes_all_before_for_issued() {
    holds_in(11, 228_393_986_973, 1);
}

/// Two read-out systems returned while level 1 issued what they had told it. The leading source began anew, and
/// fragments that it sent again filled the window of told triggers, for ever.
#[test]
fn triggers_that_were_issued_are_not_told_again() {
    holds_in(11, 1_670_903_253_534, 2);
}

/// A source sent fragments again whose events were cleared ahead of the oldest valid one. The read-out system
/// remembered as many such events as it can. So they stayed, and were collected as fragments of events.
#[test]
fn what_comes_again_after_a_clear_that_is_forgotten_is_collected() {
    holds_in(11, 1_863_481_022_402, 1);
    holds_in(11, 1_155_645_973_465, 1);
}

/// All died who knew what became of events that were cleared: what was built again without data counts, not the first copy in the files.
#[test]
fn without_a_ledger_the_copy_that_was_built_last_counts() {
    holds_in(8, 1_155_645_973_369, 5);
}

/// A group of decisions came in the very nanosecond in which a process became free, and overtook the group before it,
/// which waited for that. No connection does this.
#[test]
fn what_comes_as_a_process_becomes_free_overtakes_nothing() {
    holds_in(8, 43_000_000_016_196, 1);
    holds_in(8, 43_000_000_016_196, 2);
}

/// Level 1 had died while a network was split. What it had said came later, and read-out systems took it, as they knew of no death.
#[test]
fn slices_that_a_dead_level_1_has_issued_are_made_by_who_knows_of_no_death() {
    holds_in(EDITION_OF_SLICES, 101_338, 3);
}

/// A read-out system returned when all slices so far had been left out, and was not told of them. It was full of older chunks for ever.
#[test]
fn a_read_out_system_that_returns_hears_of_slices_left_out() {
    holds_in(EDITION_OF_SLICES, 710_004_960, 4);
}

/// A link was full, and level 1 heard first that slices were taken: it issued as many again.
#[test]
fn level_1_hears_that_a_link_is_full_before_it_has_room_for_more() {
    holds_in(EDITION_OF_SLICES, 710_003_037, 0);
}

/// The last word of what was left out came to a read-out system after the run.
#[test]
fn what_is_left_out_at_last_is_known_where_it_was_said() {
    holds_in(EDITION_OF_SLICES, 700_008_538, 0);
}

/// Links became full and had room again as often as slices were left out, and nothing bounded what was said of that on its way.
#[test]
fn what_is_said_of_room_is_bounded_over_slow_connections() {
    holds_in(EDITION_OF_SLICES, 700_001_587, 0);
    holds_in(EDITION_OF_SLICES, 700_013_911, 2);
}

/// Level 1 was told of a window of slices at a time. Over a slow connection it left them out more slowly than time went on.
#[test]
fn slices_are_left_out_as_fast_as_time_goes_on_over_slow_connections() {
    holds_in(EDITION_OF_SLICES, 700_009_518, 1);
}

/// An event was recorded, its builder died, and it was built again without a source: it was dropped, too, and counted as rejected alone.
#[test]
fn an_event_that_is_recorded_and_then_dropped_counts_as_recorded() {
    holds_in(EDITION_OF_WITHHELD, 3651, 3);
    holds_in(EDITION_OF_WITHHELD, 1520, 5);
}

/// A dataflow manager and a builder returned after the drain, when all but one had reported. They took up old events again.
#[test]
fn who_returns_after_the_drain_may_be_busy_when_the_run_ends() {
    holds_in(EDITION_OF_LINKS, 1_246_479_063_945, 5);
}

fn holds(seed: u64, level: u32) {
    holds_in(1, seed, level);
}

fn holds_in(edition: u32, seed: u64, level: u32) {
    let plan = Plan::draw_in(edition, seed, level);
    assert_eq!(plan.verdict(), None, "{plan:#?}");
}
