//! What must not get in: a join taken twice, a former life or run, who says what is not his to say.

use std::time::Duration;

use base::ids::{Incarnation, NodeId, RunNumber};
use base::time::Time;
use dataflow::component::PeerState;
use dataflow::message::{Command, Envelope, Message, PeerPlace};
use dataflow::node::RUN_CONTROL;
use membership::challenge::Member;
use membership::participant::{End, Identity, Participant, ParticipantDriver, Place, Ties, Welcome};
use membership::passage::{Driver, LinkId, Medium, Passage, Recipient, Strand, Way};
use membership::registrar::{AfterDeath, Applicant, Registrar, RegistrarDriver, RegistrarParameters, RunToJoin};
use membership::severity::Severity;

#[test]
fn a_life_joins_once() {
    let (mut registrar, mut did) = registrar();
    join(&mut registrar, &mut did, LinkId(1), (SFI, Incarnation::FIRST));
    assert_eq!(did.take(), ["opens 1", "says Welcome over 1", "tells of 2: Up(Incarnation(0))"]);
    join(&mut registrar, &mut did, LinkId(2), (SFI, Incarnation::FIRST));
    assert_eq!(did.take(), ["refuses 2"]);
    assert_eq!(registrar.link(SFI), Some(LinkId(1)));
}

/// It has joined, and says so again over the same connection: that is lost, and its process with it.
#[test]
fn who_joins_again_over_its_connection_is_lost() {
    let (mut registrar, mut did) = registrar();
    join(&mut registrar, &mut did, LinkId(1), (SFI, Incarnation::FIRST));
    join(&mut registrar, &mut did, LinkId(1), (SFI, Incarnation::FIRST));
    assert_eq!((registrar.link(SFI), registrar.next_deadline()), (None, Some(SECOND)));
    did.take();
    did.now = SECOND;
    registrar.on_deadline(&mut did);
    assert_eq!(did.take(), ["kills 2"]);
}

#[test]
fn neither_a_former_nor_a_future_life_joins() {
    let (mut registrar, mut did) = registrar();
    for (node, link) in [(ROS, 1), (SFI, 2)] {
        join(&mut registrar, &mut did, LinkId(link), (node, Incarnation::FIRST));
        registrar.on_message(&mut did, LinkId(link), envelope((node, Incarnation::FIRST)), ready());
    }
    assert!(registrar.all_ready());
    registrar.begin();
    registrar.on_lost(&mut did, LinkId(2));
    registrar.on_ended(&mut did, SFI, "killed by SIGKILL");
    did.take();
    registrar.on_deadline(&mut did);
    assert_eq!(did.take(), ["tells of 2: Down", "starts 2 in life 1"]);
    for (link, life) in [(3, 0), (4, 2)] {
        join(&mut registrar, &mut did, LinkId(link), (SFI, Incarnation(life)));
        assert_eq!(did.take(), [format!("refuses {link}")]);
    }
    join(&mut registrar, &mut did, LinkId(5), (SFI, NEXT_LIFE));
    assert_eq!(did.take()[..2], ["opens 5", "says Welcome over 5"]);
}

#[test]
fn an_application_that_may_not_return_ends_the_run_and_others_are_told() {
    let (mut registrar, mut did) = registrar();
    for (node, link) in [(ROS, 1), (SFI, 2)] {
        join(&mut registrar, &mut did, LinkId(link), (node, Incarnation::FIRST));
    }
    registrar.begin();
    did.take();
    registrar.on_ended(&mut did, ROS, "exited with status 1");
    assert_eq!(
        did.take(),
        [
            "says Gone over 2",
            "tells of 1: Gone",
            "loses 1 for good: exited with status 1; a run cannot go on without ros-1"
        ]
    );
}

/// Its peers go on without it, until it is wanted back.
#[test]
fn who_is_stopped_at_its_host_returns_when_it_is_wanted_there() {
    let (mut registrar, mut did) = registrar();
    join_all(&mut registrar, &mut did);
    registrar.begin();
    assert!(registrar.on_wanted(&mut did, SFI).is_err(), "it is there");
    did.take();
    registrar.on_stopped(&mut did, SFI, "stopped by the local agent");
    registrar.on_deadline(&mut did);
    assert!(did.take().is_empty(), "what it has sent is taken first");
    registrar.on_lost(&mut did, LinkId(2));
    did.now = SECOND;
    registrar.on_deadline(&mut did);
    assert_eq!(did.take(), ["tells of 2: Down"]);
    did.now = SECOND + Duration::from_secs(100);
    registrar.on_deadline(&mut did);
    assert!(did.take().is_empty() && registrar.next_deadline().is_none());
    registrar.on_wanted(&mut did, SFI).unwrap();
    registrar.on_deadline(&mut did);
    assert_eq!(did.take(), ["starts 2 in life 1"]);
    assert!(registrar.on_wanted(&mut did, SFI).is_err());
    assert_eq!(registrar.returned().len(), 1);
}

#[test]
fn who_stays_away_when_the_run_ends_is_lost_and_may_return_behind_it() {
    let (mut registrar, mut did) = registrar();
    join_all(&mut registrar, &mut did);
    registrar.begin();
    registrar.on_lost(&mut did, LinkId(2));
    registrar.on_stopped(&mut did, SFI, "stopped by the local agent");
    registrar.on_deadline(&mut did);
    did.take();
    (0..2).for_each(|_| registrar.give_up_held(&mut did));
    let lost = "loses 2 for good: stopped by the local agent, and not started again";
    assert_eq!(did.take(), ["says Gone over 1", "tells of 2: Gone", lost]);
    assert!(registrar.on_wanted(&mut did, SFI).is_err());
    registrar.disconnect(&mut did);
    registrar.wait(&mut did);
    did.take();
    registrar.on_wanted(&mut did, SFI).unwrap();
    registrar.on_deadline(&mut did);
    assert_eq!(did.take(), ["starts 2 in life 0"]);
}

#[test]
fn a_run_ends_with_one_that_is_stopped_and_may_not_return() {
    let (mut registrar, mut did) = registrar();
    join_all(&mut registrar, &mut did);
    registrar.begin();
    did.take();
    registrar.on_stopped(&mut did, ROS, "stopped by the local agent");
    assert!(did.take().last().unwrap().starts_with("loses 1 for good: stopped by the local agent; a run cannot go on"));
    assert!(registrar.on_wanted(&mut did, ROS).is_err());
}

/// It was away when another was lost for good, and waited for that one in vain.
#[test]
fn a_new_life_is_told_who_is_gone_and_waits_for_nobody_else() {
    let (mut registrar, mut did) = registrar();
    for (node, link) in [(ROS, 1), (SFI, 2)] {
        join(&mut registrar, &mut did, LinkId(link), (node, Incarnation::FIRST));
    }
    registrar.begin();
    registrar.on_lost(&mut did, LinkId(2));
    registrar.on_ended(&mut did, SFI, "killed by SIGKILL");
    registrar.on_deadline(&mut did);
    registrar.on_ended(&mut did, ROS, "killed by SIGKILL");
    did.take();
    join(&mut registrar, &mut did, LinkId(3), (SFI, NEXT_LIFE));
    let said: Vec<String> = did.take().into_iter().filter(|done| done.starts_with("says")).collect();
    assert_eq!(said, ["says Welcome over 3", "says Gone over 3", "says Peers over 3"]);
    assert_eq!(did.introduced, 0);
}

#[test]
fn a_lost_connection_that_a_death_explains_is_no_reason_to_stop() {
    for is_explained in [false, true] {
        let (mut registrar, mut did) = registrar();
        for (node, link) in [(ROS, 1), (SFI, 2)] {
            join(&mut registrar, &mut did, LinkId(link), (node, Incarnation::FIRST));
        }
        registrar.begin();
        let lost = Message::Lost { node: SFI, life: Incarnation::FIRST, reason: "closed".into() };
        registrar.on_message(&mut did, LinkId(1), envelope((ROS, Incarnation::FIRST)), lost);
        did.take();
        did.now = SECOND;
        if is_explained {
            registrar.on_ended(&mut did, SFI, "killed by SIGKILL");
        }
        registrar.on_deadline(&mut did);
        let stops = did.take().iter().any(|done| done == "stops: ros-1: connection to sfi-1 lost: closed");
        assert_eq!(stops, !is_explained);
    }
}

#[test]
fn a_death_is_told_with_what_led_to_it() {
    let (mut registrar, mut did) = registrar();
    for (node, link) in [(ROS, 1), (SFI, 2)] {
        join(&mut registrar, &mut did, LinkId(link), (node, Incarnation::FIRST));
    }
    registrar.begin();
    let failed = Message::Failed("no room: a quota".into());
    registrar.on_message(&mut did, LinkId(2), envelope((SFI, Incarnation::FIRST)), failed);
    registrar.on_lost(&mut did, LinkId(2));
    registrar.on_ended(&mut did, SFI, "exited with status 1");
    registrar.on_deadline(&mut did);
    registrar.on_ended(&mut did, SFI, "host b is lost: its agent is gone: connection: reset");
    registrar.on_ended(&mut did, ROS, "killed by SIGKILL");
    let told = [
        "sfi-1 died; it is started again <- exited with status 1 <- no room: a quota",
        "sfi-1 died; it is started again <- host b is lost <- its agent is gone <- connection: reset",
        "ros-1 died; a run cannot go on without ros-1; the run ends <- killed by SIGKILL",
    ];
    assert_eq!(did.deaths, told);
    let (mut registrar, mut did) = between_runs([AfterDeath::EndsRun, AfterDeath::Returns]);
    registrar.on_ended(&mut did, ROS, "killed by SIGKILL");
    assert_eq!(did.deaths, ["ros-1 is dead between two runs; no run can begin <- killed by SIGKILL"]);
}

/// What was said to a former life is said to the next one; what was lifted or doubled is not.
#[test]
fn a_new_life_is_told_what_the_former_one_was_told() {
    let (mut registrar, mut did) = registrar();
    join(&mut registrar, &mut did, LinkId(1), (SFI, Incarnation::FIRST));
    registrar.begin();
    let [pause, resume] = [Command::Pause, Command::Resume];
    let stamps = [Command::Stamps, Command::Stamps, Command::NoStamps, Command::NoStamps];
    for command in [Command::Start, resume, pause, pause, resume, resume, Command::Progress].into_iter().chain(stamps) {
        registrar.remember(SFI, &Message::Command(command));
    }
    registrar.on_lost(&mut did, LinkId(1));
    registrar.on_ended(&mut did, SFI, "killed by SIGKILL");
    registrar.on_deadline(&mut did);
    did.take();
    join(&mut registrar, &mut did, LinkId(2), (SFI, NEXT_LIFE));
    let said: Vec<String> = did.take().into_iter().filter(|done| done.starts_with("says")).collect();
    assert_eq!(said, ["says Welcome over 2", "says Command over 2", "says Peers over 2"]);
}

#[test]
fn a_new_life_is_told_which_stamps_were_wanted_last() {
    let (mut registrar, _) = registrar();
    for command in [Command::Stamps, Command::Start, Command::StampPolls] {
        registrar.remember(SFI, &Message::Command(command));
    }
    assert_eq!(registrar.legacy().commands[&SFI], [Command::Start, Command::StampPolls]);
}

/// It is in its second life, and joins as that: in the next run it is in its first one.
#[test]
fn all_join_again_after_a_run_and_are_in_their_first_lives() {
    let (mut registrar, mut did) = registrar();
    for (node, link) in [(ROS, 1), (SFI, 2)] {
        join(&mut registrar, &mut did, LinkId(link), (node, Incarnation::FIRST));
        registrar.on_message(&mut did, LinkId(link), envelope((node, Incarnation::FIRST)), ready());
    }
    registrar.begin();
    registrar.on_lost(&mut did, LinkId(2));
    registrar.on_ended(&mut did, SFI, "killed by SIGKILL");
    registrar.on_deadline(&mut did);
    join(&mut registrar, &mut did, LinkId(3), (SFI, NEXT_LIFE));
    did.take();
    registrar.disconnect(&mut did);
    assert_eq!(did.take(), ["says Command over 1", "says Command over 3"]);
    // It was on its way when the run was over.
    registrar.on_message(&mut did, LinkId(3), envelope((SFI, NEXT_LIFE)), ready());
    assert!(!registrar.all_living_joined());
    join(&mut registrar, &mut did, LinkId(1), (ROS, Incarnation::FIRST));
    join(&mut registrar, &mut did, LinkId(3), (SFI, NEXT_LIFE));
    assert_eq!(did.take(), ["opens 1", "takes 1 for 1 in life 0", "opens 3", "takes 3 for 2 in life 0"]);
    assert!(registrar.all_joined());
    registrar.wait(&mut did);
    registrar.configure(&mut did, run(NEXT_RUN, false));
    let done = did.take();
    let said: Vec<&String> = done.iter().filter(|done| done.starts_with("says")).collect();
    assert_eq!(said, ["says Welcome over 1", "says Welcome over 3", "says Peers over 1", "says Peers over 3"]);
    assert!(!registrar.all_ready() && registrar.returned().is_empty());
    for (node, link) in [(ROS, 1), (SFI, 3)] {
        registrar.on_message(&mut did, LinkId(link), envelope((node, Incarnation::FIRST)), ready());
    }
    assert!(registrar.all_ready());
}

/// Between two runs, a second process of the same life does not take the place of the first.
#[test]
fn who_comes_over_another_connection_does_not_join_for_one_that_has_left_a_run() {
    let (mut registrar, mut did) = registrar();
    join_all(&mut registrar, &mut did);
    registrar.begin();
    registrar.disconnect(&mut did);
    did.take();
    join(&mut registrar, &mut did, LinkId(7), (SFI, Incarnation::FIRST));
    assert_eq!(did.take(), ["refuses 7"]);
    join(&mut registrar, &mut did, LinkId(2), (SFI, Incarnation::FIRST));
    assert_eq!(
        (did.take(), registrar.link(SFI)),
        (vec!["opens 2".into(), "takes 2 for 2 in life 0".into()], Some(LinkId(2)))
    );
}

/// It cannot be told that the run is over, and what it knows is of no use any more.
#[test]
fn who_has_not_joined_when_a_run_is_over_is_ended() {
    let (mut registrar, mut did) = registrar();
    join(&mut registrar, &mut did, LinkId(1), (ROS, Incarnation::FIRST));
    did.take();
    registrar.disconnect(&mut did);
    assert_eq!(did.take(), ["says Command over 1", "kills 2"]);
}

#[test]
fn who_dies_between_two_runs_is_started_again_in_its_first_life() {
    for is_asked in [false, true] {
        let (mut registrar, mut did) = between_runs([AfterDeath::ReturnsBetweenRuns, AfterDeath::Returns]);
        registrar.on_ended(&mut did, ROS, "killed by SIGKILL");
        assert!(!registrar.has_joined(ROS));
        if is_asked {
            registrar.start_missing(&mut did).unwrap();
        } else {
            registrar.on_deadline(&mut did);
        }
        assert_eq!(did.take(), ["starts 1 in life 0"]);
        join(&mut registrar, &mut did, LinkId(3), (ROS, Incarnation::FIRST));
        assert!(registrar.all_joined());
    }
}

#[test]
fn who_is_lost_between_two_runs_is_started_when_that_is_asked_for() {
    let (mut registrar, mut did) = between_runs([AfterDeath::EndsRun, AfterDeath::Returns]);
    registrar.on_ended(&mut did, ROS, "exited with status 1");
    registrar.on_deadline(&mut did);
    assert_eq!(did.take(), ["loses 1 for good: exited with status 1"]);
    registrar.start_missing(&mut did).unwrap();
    assert_eq!(did.take(), ["starts 1 in life 0"]);
}

/// Of a process that components here share memory with.
#[test]
fn a_greeting_of_another_life_or_run_is_no_connection_to_the_components_of_run_control() {
    let (mut registrar, mut did) = registrar_of([AfterDeath::Returns; 2], true);
    join(&mut registrar, &mut did, LinkId(1), (SFI, Incarnation::FIRST));
    did.take();
    registrar.on_message(&mut did, LinkId(2), envelope((SFI, NEXT_LIFE)), greeting());
    assert_eq!(did.take(), ["refuses 2"]);
    registrar.disconnect(&mut did);
    did.take();
    registrar.on_message(&mut did, LinkId(3), envelope((SFI, Incarnation::FIRST)), greeting());
    assert_eq!(did.take(), ["refuses 3"]);
    join(&mut registrar, &mut did, LinkId(1), (SFI, Incarnation::FIRST));
    registrar.configure(&mut did, run(NEXT_RUN, true));
    did.take();
    registrar.on_message(&mut did, LinkId(4), envelope((SFI, Incarnation::FIRST)), greeting());
    assert_eq!(did.take(), ["opens 4", "says Greet over 4", "tells of 2: Up(Incarnation(0))"]);
    registrar.on_lost(&mut did, LinkId(4));
    registrar.on_message(&mut did, LinkId(5), envelope((SFI, Incarnation::FIRST)), greeting());
    assert_eq!(did.take(), ["refuses 5"], "it has lost one, and is about to end");
}

#[test]
fn an_application_joins_again_after_a_run_and_knows_nobody_of_it() {
    let (mut participant, mut did) = participant();
    participant.on_message(&mut did, LinkId(1), envelope((SFI, NEXT_LIFE)), greeting());
    did.take();
    let of_control = || envelope((RUN_CONTROL, Incarnation::FIRST));
    participant.on_message(&mut did, CONTROL, of_control(), Message::Command(Command::Disconnect));
    assert_eq!(did.take(), ["leaves its place", "says Join over 0"]);
    assert!(!participant.has_place() && participant.knows(SFI).is_none());
    participant.on_message(&mut did, LinkId(2), envelope((SFI, Incarnation::FIRST)), greeting());
    assert_eq!(participant.knows(SFI), None, "before it has a place");
    let of_next = Envelope { run: NEXT_RUN, ..of_control() };
    participant.on_message(&mut did, CONTROL, of_next, welcome());
    participant.on_message(&mut did, LinkId(3), envelope((SFI, Incarnation::FIRST)), greeting());
    assert_eq!(participant.knows(SFI), Some(Incarnation::FIRST), "lives begin again");
    participant.notice(&mut did, "words".into());
    assert_eq!(did.said_last.as_ref().unwrap().run, NEXT_RUN);
    participant.on_lost(&mut did, CONTROL, "closed");
    assert_eq!(participant.end(), Some(&End::Orphaned));
}

#[test]
fn an_application_without_run_control_between_two_runs_is_orphaned() {
    let (mut participant, mut did) = participant();
    let of_control = envelope((RUN_CONTROL, Incarnation::FIRST));
    participant.on_message(&mut did, CONTROL, of_control, Message::Command(Command::Disconnect));
    participant.on_lost(&mut did, CONTROL, "closed");
    assert_eq!(participant.end(), Some(&End::Orphaned));
}

#[test]
fn a_greeting_of_a_former_life_is_turned_away() {
    for is_told in [false, true] {
        let (mut participant, mut did) = participant();
        if is_told {
            let places = vec![PeerPlace { node: SFI, life: NEXT_LIFE, address: String::new() }];
            participant.on_message(
                &mut did,
                CONTROL,
                envelope((RUN_CONTROL, Incarnation::FIRST)),
                Message::Peers(places),
            );
        } else {
            participant.on_message(&mut did, LinkId(1), envelope((SFI, NEXT_LIFE)), greeting());
            assert_eq!(participant.knows(SFI), Some(NEXT_LIFE));
            participant.on_lost(&mut did, LinkId(1), "closed");
        }
        did.take();
        participant.on_message(&mut did, LinkId(2), envelope((SFI, Incarnation::FIRST)), greeting());
        assert_eq!((did.take(), participant.knows(SFI)), (vec!["refuses 2".to_owned()], None));
    }
}

/// Who knows the secret said so: components took it for the one that they had lost, which had seen what they had said meanwhile.
#[test]
fn a_life_that_was_lost_is_turned_away() {
    let (mut participant, mut did) = participant();
    participant.on_message(&mut did, LinkId(1), envelope((SFI, Incarnation::FIRST)), greeting());
    participant.on_lost(&mut did, LinkId(1), "closed");
    did.take();
    participant.on_message(&mut did, LinkId(2), envelope((SFI, Incarnation::FIRST)), greeting());
    assert_eq!((did.take(), participant.knows(SFI)), (vec!["refuses 2".to_owned()], None));
    participant.on_message(&mut did, LinkId(3), envelope((SFI, NEXT_LIFE)), greeting());
    assert_eq!(participant.knows(SFI), Some(NEXT_LIFE));
}

/// One that had never been met there was let in, after run control had said that it will not return.
#[test]
fn one_that_will_not_return_is_turned_away_in_any_life() {
    let (mut participant, mut did) = participant();
    participant.on_message(&mut did, CONTROL, envelope((RUN_CONTROL, Incarnation::FIRST)), Message::Gone(SFI));
    did.take();
    for (link, life) in [(1, Incarnation::FIRST), (2, NEXT_LIFE)] {
        participant.on_message(&mut did, LinkId(link), envelope((SFI, life)), greeting());
        assert_eq!((did.take(), participant.knows(SFI)), (vec![format!("refuses {link}")], None));
    }
}

#[test]
fn the_next_life_replaces_one_whose_loss_was_not_seen() {
    let (mut participant, mut did) = participant();
    participant.on_message(&mut did, LinkId(1), envelope((SFI, Incarnation::FIRST)), greeting());
    assert_eq!(did.take(), ["says Greet over 1", "opens 1", "tells of 2: Up(Incarnation(0))"]);
    participant.on_message(&mut did, LinkId(2), envelope((SFI, NEXT_LIFE)), greeting());
    let done = ["tells of 2: Down", "says Greet over 2", "opens 2", "tells of 2: Up(Incarnation(1))"];
    assert_eq!(did.take(), done);
    participant.on_lost(&mut did, LinkId(1), "closed");
    assert_eq!((did.take(), participant.knows(SFI)), (Vec::<String>::new(), Some(NEXT_LIFE)));
}

/// Two processes in one life: the second finds the place taken.
#[test]
fn a_second_connection_of_a_life_that_is_there_is_turned_away() {
    let (mut participant, mut did) = participant();
    participant.on_message(&mut did, LinkId(1), envelope((SFI, Incarnation::FIRST)), greeting());
    did.take();
    participant.on_message(&mut did, LinkId(2), envelope((SFI, Incarnation::FIRST)), greeting());
    assert_eq!(did.take(), ["refuses 2"]);
    assert_eq!(participant.knows(SFI), Some(Incarnation::FIRST));
}

#[test]
fn who_greets_twice_over_a_connection_is_lost() {
    let (mut participant, mut did) = participant();
    participant.on_message(&mut did, LinkId(1), envelope((SFI, Incarnation::FIRST)), greeting());
    did.take();
    participant.on_message(&mut did, LinkId(1), envelope((SFI, Incarnation::FIRST)), greeting());
    assert_eq!(did.take(), ["refuses 1", "tells of 2: Down", "says Lost over 0"]);
    assert_eq!(participant.knows(SFI), None);
}

#[test]
fn an_application_without_run_control_ends() {
    let (mut participant, mut did) = participant();
    participant.on_lost(&mut did, CONTROL, "closed");
    assert_eq!(participant.end(), Some(&End::Orphaned));
    participant.on_message(&mut did, LinkId(1), envelope((SFI, Incarnation::FIRST)), greeting());
    assert_eq!(participant.knows(SFI), None);
}

#[test]
fn a_connection_takes_messages_of_the_member_that_it_has_proved_alone() {
    let mut passage = Passage::new((SFI, NEXT_LIFE));
    let credit = Message::Credit(0);
    assert_eq!(passage.recipient(&envelope((SFI, NEXT_LIFE)), &credit), Recipient::Joining);
    passage.open();
    assert_eq!(passage.recipient(&envelope((SFI, NEXT_LIFE)), &credit), Recipient::Component);
    assert_eq!(passage.recipient(&envelope((SFI, NEXT_LIFE)), &greeting()), Recipient::Joining);
    for other in [(SFI, Incarnation::FIRST), (ROS, NEXT_LIFE), (RUN_CONTROL, Incarnation::FIRST)] {
        assert_eq!(passage.recipient(&envelope(other), &credit), Recipient::Nobody, "{other:?}");
    }
    let mut of_control = Passage::new((RUN_CONTROL, Incarnation::FIRST));
    of_control.open();
    assert_eq!(
        of_control.recipient(&envelope((SFI, Incarnation::FIRST)), &credit),
        Recipient::Component,
        "it hosts some"
    );
}

#[test]
fn an_application_waits_for_run_control_and_obeys_its_next_life_alone() {
    let (mut participant, mut did) = waiting_participant();
    participant.on_lost(&mut did, LinkId(1), "closed");
    participant.on_lost(&mut did, CONTROL, "closed");
    assert!(participant.is_alone() && participant.end().is_none());
    assert_eq!(participant.next_deadline(), Some(SECOND));
    did.take();
    participant.on_message(&mut did, LinkId(5), envelope((RUN_CONTROL, NEXT_LIFE)), greeting());
    assert_eq!(did.take(), ["opens 5", "says Ready over 5", "says Lost over 5", "says all again"]);
    assert!(!participant.is_alone() && participant.next_deadline().is_none());
    for life in [Incarnation::FIRST, NEXT_LIFE] {
        participant.on_message(&mut did, LinkId(6), envelope((RUN_CONTROL, life)), greeting());
        assert_eq!(did.take(), ["refuses 6"], "a former life, or the same one again");
    }
    // What comes over the connection of the former life is not for anybody.
    participant.on_message(
        &mut did,
        CONTROL,
        envelope((RUN_CONTROL, Incarnation::FIRST)),
        Message::Command(Command::Exit),
    );
    assert_eq!((did.take(), participant.end()), (vec!["refuses 0".to_owned()], None));
    participant.on_message(
        &mut did,
        LinkId(5),
        envelope((RUN_CONTROL, Incarnation::FIRST)),
        Message::Command(Command::Exit),
    );
    assert_eq!(participant.end(), Some(&End::Dismissed));
}

#[test]
fn an_application_that_waits_in_vain_is_orphaned() {
    let (mut participant, mut did) = waiting_participant();
    participant.on_lost(&mut did, CONTROL, "closed");
    participant.on_deadline(SECOND);
    assert_eq!(participant.end(), Some(&End::Orphaned));
    did.take();
    participant.on_message(&mut did, LinkId(5), envelope((RUN_CONTROL, NEXT_LIFE)), greeting());
    assert_eq!((did.take(), participant.end()), (Vec::new(), Some(&End::Orphaned)), "it has given up");
}

/// It is connected to the event builder, and waits for run control for a second.
fn waiting_participant() -> (Participant, Did) {
    let (mut participant, mut did) = participant_of(Did { patience: Duration::from_secs(1), ..Did::default() });
    let places = vec![PeerPlace { node: SFI, life: Incarnation::FIRST, address: String::new() }];
    participant.on_message(&mut did, CONTROL, envelope((RUN_CONTROL, Incarnation::FIRST)), Message::Peers(places));
    participant.on_message(&mut did, LinkId(1), envelope((SFI, Incarnation::FIRST)), greeting());
    assert!(participant.is_ready());
    did.take();
    (participant, did)
}

#[test]
fn who_takes_over_calls_those_that_live_and_starts_others_again_when_it_knows_all() {
    let (registrar, mut did) = taken_over();
    let mut registrar = registrar;
    registrar.on_found(&mut did, ROS, Incarnation::FIRST);
    assert_eq!(did.take(), ["calls 1 in life 0 at 1"]);
    registrar.on_proven(&mut did, CALLED);
    assert_eq!(did.take(), ["opens 9", "says Greet over 9"]);
    assert_eq!(did.said_last.unwrap().from_incarnation, NEXT_LIFE, "of run control");
    registrar.on_ended(&mut did, SFI, "killed by SIGKILL");
    assert!(did.take().is_empty() && !registrar.knows_all(), "nobody hears of it yet");
    registrar.on_message(&mut did, CALLED, envelope((ROS, Incarnation::FIRST)), ready());
    assert!(registrar.knows_all());
    registrar.go_on(&mut did);
    registrar.on_deadline(&mut did);
    assert_eq!(did.take(), ["tells of 2: Down", "starts 2 in life 4"]);
    assert_eq!(registrar.returned().len(), 1);
}

#[test]
fn who_takes_over_ends_those_that_were_on_their_way() {
    let (mut registrar, mut did) = taken_over();
    registrar.on_found(&mut did, SFI, Incarnation(4));
    assert_eq!(did.take(), ["kills 2"], "its life is not the one that had joined");
    registrar.on_found(&mut did, ROS, Incarnation::FIRST);
    registrar.on_lost(&mut did, CALLED);
    did.take();
    did.now = SECOND;
    registrar.on_deadline(&mut did);
    assert_eq!(did.take(), ["kills 1"], "it has turned the call away");
    registrar.on_ended(&mut did, ROS, "killed by SIGKILL");
    registrar.on_ended(&mut did, SFI, "killed by SIGKILL");
    registrar.go_on(&mut did);
    assert_eq!(
        did.take(),
        ["tells of 1: Gone", "loses 1 for good: killed by SIGKILL; a run cannot go on without ros-1"]
    );
}

#[test]
fn who_is_not_back_is_given_up_and_its_next_life_is_known_before_it_starts() {
    for for_good in [false, true] {
        let (mut registrar, mut did) = taken_over();
        registrar.on_found(&mut did, ROS, Incarnation::FIRST);
        registrar.on_proven(&mut did, CALLED);
        registrar.on_message(&mut did, CALLED, envelope((ROS, Incarnation::FIRST)), ready());
        registrar.on_known_life((SFI, Incarnation(5)));
        did.take();
        registrar.give_up_missing(&mut did, for_good);
        assert_eq!(did.take(), ["kills 2"]);
        assert!(registrar.knows_all());
        registrar.go_on(&mut did);
        assert_eq!(registrar.is_about_to_start(Time::ZERO), !for_good);
        let sfi = registrar.legacy().members.remove(1);
        registrar.on_deadline(&mut did);
        registrar.on_ended(&mut did, SFI, "killed by SIGKILL");
        if for_good {
            assert_eq!(sfi.life, Incarnation(5));
            let lost = ["says Gone over 9", "tells of 2: Gone", "loses 2 for good: did not come back"];
            assert_eq!(did.take(), lost);
            assert!(!registrar.is_about_to_start(SECOND), "its end comes too late");
        } else {
            assert_eq!((sfi.life, sfi.address), (Incarnation(6), None));
            assert_eq!(did.take(), ["tells of 2: Down", "starts 2 in life 6"]);
        }
    }
}

/// The next life of run control, with what the former one knew: the event builder was in its fourth life.
fn taken_over() -> (Registrar, Did) {
    let (mut registrar, mut did) = registrar();
    join_all(&mut registrar, &mut did);
    registrar.begin();
    registrar.remember(ROS, &Message::Command(Command::Start));
    let mut legacy = registrar.legacy();
    legacy.members[1].life = Incarnation(3);
    let (mut next, _) = self::registrar();
    next.inherit(NEXT_LIFE, run(RUN, false), legacy.clone());
    assert_eq!(next.legacy(), legacy);
    did.take();
    (next, did)
}

/// The read-out system and the event builder are started for a run.
fn registrar() -> (Registrar, Did) {
    registrar_of([AfterDeath::ReturnsBetweenRuns, AfterDeath::Returns], false)
}

fn registrar_of([of_ros, of_sfi]: [AfterDeath; 2], shares: bool) -> (Registrar, Did) {
    let applicant =
        |(node, name, after_death): (NodeId, &str, AfterDeath)| Applicant { node, name: name.into(), after_death };
    let applicants = [(ROS, "ros-1", of_ros), (SFI, "sfi-1", of_sfi)].map(applicant).to_vec();
    let (start_timeout, restarts, window) = (Duration::from_secs(10), 5, Duration::from_secs(60));
    let mut registrar = Registrar::new(RegistrarParameters { applicants, start_timeout, restarts, window });
    let mut did = Did::default();
    registrar.start_missing(&mut did).unwrap();
    registrar.configure(&mut did, run(RUN, shares));
    assert_eq!(did.take(), ["starts 1 in life 0", "starts 2 in life 0"]);
    (registrar, did)
}

/// Both have had a run, and wait for another one.
fn between_runs(after_death: [AfterDeath; 2]) -> (Registrar, Did) {
    let (mut registrar, mut did) = registrar_of(after_death, false);
    join_all(&mut registrar, &mut did);
    registrar.begin();
    registrar.disconnect(&mut did);
    join_all(&mut registrar, &mut did);
    registrar.wait(&mut did);
    did.take();
    (registrar, did)
}

fn join_all(registrar: &mut Registrar, did: &mut Did) {
    for (node, link) in [(ROS, 1), (SFI, 2)] {
        join(registrar, did, LinkId(link), (node, Incarnation::FIRST));
    }
}

fn run(number: RunNumber, shares: bool) -> RunToJoin {
    RunToJoin { number, welcome: welcome(), shares }
}

fn welcome() -> Message {
    Message::Welcome { configuration: String::new(), hosted: Vec::new(), robs: Vec::new(), datagrams: Box::default() }
}

/// It has joined as somebody of the run; no name is wrong.
fn join(registrar: &mut Registrar, did: &mut Did, link: LinkId, member: Member) {
    let name = if member.0 == SFI { "sfi-1" } else { "ros-1" };
    let join = Message::Join { name: name.into(), address: format!("at {}", link.0) };
    registrar.on_message(did, link, envelope(member), join);
}

/// The read-out system, which has its place.
fn participant() -> (Participant, Did) {
    participant_of(Did::default())
}

fn participant_of(mut did: Did) -> (Participant, Did) {
    let identity = Identity {
        run: RUN,
        member: (ROS, Incarnation::FIRST),
        name: "ros-1".into(),
        address: String::new(),
        control: String::new(),
        control_life: Incarnation::FIRST,
    };
    let mut participant = Participant::join(&mut did, identity).unwrap();
    participant.on_proven(&mut did, CONTROL);
    participant.on_message(&mut did, CONTROL, envelope((RUN_CONTROL, Incarnation::FIRST)), welcome());
    assert_eq!(did.take(), ["connects to 0", "says Join over 0"]);
    assert!(participant.has_place());
    (participant, did)
}

fn envelope((from, from_incarnation): Member) -> Envelope {
    Envelope { from, to: ROS, run: RUN, from_incarnation, to_incarnation: Incarnation::FIRST }
}

fn greeting() -> Message {
    Message::Greet { part: 0, datagrams: Box::default() }
}

fn ready() -> Message {
    Message::Ready { datagrams: Box::default() }
}

/// What was done, in words.
struct Did {
    words: Vec<String>,
    /// What was announced of deaths, with causes.
    deaths: Vec<String>,
    /// How many places the last words about peers held.
    introduced: usize,
    said_last: Option<Envelope>,
    now: Time,
    /// Of an application, for run control.
    patience: Duration,
}

impl Default for Did {
    fn default() -> Self {
        Self {
            words: Vec::new(),
            deaths: Vec::new(),
            introduced: 0,
            said_last: None,
            now: Time::ZERO,
            patience: Duration::ZERO,
        }
    }
}

impl Did {
    fn take(&mut self) -> Vec<String> {
        core::mem::take(&mut self.words)
    }

    fn did(&mut self, what: String) {
        self.words.push(what);
    }
}

impl Driver for Did {
    fn say(&mut self, link: LinkId, envelope: Envelope, message: Message) {
        self.said_last = Some(envelope);
        self.did(format!("says {} over {}", message.name(), link.0));
        if let Message::Peers(places) = message {
            self.introduced = places.len();
        }
    }

    fn open(&mut self, link: LinkId) {
        self.did(format!("opens {}", link.0));
    }

    fn close(&mut self, _: LinkId) {}

    fn refuse(&mut self, link: LinkId) {
        self.did(format!("refuses {}", link.0));
    }

    fn deliver(&mut self, _: Envelope, message: Message) {
        self.did(format!("delivers {}", message.name()));
    }

    fn route(&mut self, _: NodeId, _: LinkId, _: Way) {}

    fn tell(&mut self, node: NodeId, state: PeerState) {
        self.did(format!("tells of {}: {state:?}", node.0));
    }

    fn now(&self) -> Time {
        self.now
    }
}

impl RegistrarDriver for Did {
    fn start(&mut self, (node, life): Member) -> Result<(), String> {
        self.did(format!("starts {} in life {}", node.0, life.0));
        Ok(())
    }

    fn call(&mut self, (node, life): Member, address: &str) -> Result<LinkId, String> {
        self.did(format!("calls {} in life {} {address}", node.0, life.0));
        Ok(CALLED)
    }

    fn kill(&mut self, node: NodeId) {
        self.did(format!("kills {}", node.0));
    }

    fn rename(&mut self, link: LinkId, (node, life): Member) {
        self.did(format!("takes {} for {} in life {}", link.0, node.0, life.0));
    }

    fn life_over(&mut self, _: NodeId) {}

    fn lost_for_good(&mut self, node: NodeId, how: &str) {
        self.did(format!("loses {} for good: {how}", node.0));
    }

    fn stop_because(&mut self, reason: &str) {
        self.did(format!("stops: {reason}"));
    }

    fn name(&self, node: NodeId) -> String {
        if node == SFI { "sfi-1".into() } else { "ros-1".into() }
    }

    fn talk(&self, _: NodeId, _: NodeId) -> bool {
        true
    }

    fn announce(&mut self, _: Severity, _: &str) {}

    fn announce_death(&mut self, _: Severity, _: NodeId, text: &str, causes: Vec<String>) {
        self.deaths.push(format!("{text} <- {}", causes.join(" <- ")));
    }
}

impl ParticipantDriver for Did {
    fn connect(&mut self, to: Member, _: &str, _: Strand) -> Result<LinkId, String> {
        self.did(format!("connects to {}", to.0.0));
        Ok(CONTROL)
    }

    fn take_place(&mut self, _: Welcome, _: LinkId) -> Result<Place, String> {
        let ties = Ties { strands: vec![Strand { medium: Medium::Tcp, port: None }], returns: true };
        Ok(Place { peers: [(SFI, ties)].into(), patience: self.patience, ..Place::default() })
    }

    fn leave_place(&mut self, _: LinkId) {
        self.did("leaves its place".into());
    }

    fn say_again(&mut self) {
        self.did("says all again".into());
    }

    fn medium(&self, _: LinkId) -> Option<Medium> {
        Some(Medium::Tcp)
    }
}

const RUN: RunNumber = RunNumber(1);
const NEXT_RUN: RunNumber = RunNumber(2);
const ROS: NodeId = NodeId(1);
const SFI: NodeId = NodeId(2);
const NEXT_LIFE: Incarnation = Incarnation(1);
const CONTROL: LinkId = LinkId(0);
/// That by which run control calls.
const CALLED: LinkId = LinkId(9);
const SECOND: Time = Time::from_ns(1_000_000_000);
