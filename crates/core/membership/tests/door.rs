//! Who stays at the door of a process, in virtual time.

use std::collections::VecDeque;
use std::time::Duration;

use base::ids::NodeId;
use base::time::Time;
use membership::door::Door;
use membership::passage::LinkId;

#[test]
fn strangers_stay_no_longer_than_members_need() {
    let mut visits = Visits::of_crowd(1);
    assert_eq!(visits.stay(), 1000, "nobody has proved anything yet");
    (0..5).for_each(|_| visits.prove(MEMBER, 1));
    assert_eq!(visits.stay(), 100);
    visits.prove(MEMBER, 50);
    assert_eq!(visits.stay(), 400, "one is slow");
    visits.prove(MEMBER, 1);
    assert_eq!(visits.stay(), 200, "and is forgotten");
    visits.prove(MEMBER, 900);
    assert_eq!(visits.stay(), 1000);
}

#[test]
fn strangers_stay_longer_the_longer_a_member_is_missed() {
    let mut visits = Visits::of_crowd(1);
    (0..5).for_each(|_| visits.prove(MEMBER, 1));
    let gone = visits.now;
    visits.door.miss(MEMBER, gone);
    assert_eq!(visits.stay(), 100, "it is not late yet");
    visits.door.miss(MEMBER, visits.now);
    visits.now = gone + Duration::from_secs(80);
    assert_eq!(visits.stay(), 10_000, "it is late, and since it was gone first");
    visits.prove(OTHER, 1);
    assert!(visits.stay() > 10_000, "another one is not");
    visits.now = gone + Duration::from_secs(10_000);
    assert_eq!(visits.stay(), TIMEOUT.as_millis(), "nobody stays longer");
    visits.prove(MEMBER, 1);
    assert_eq!(visits.stay(), 100);
    visits.door.miss(MEMBER, visits.now);
    visits.now = visits.now + Duration::from_secs(80);
    visits.door.clear();
    assert_eq!(visits.stay(), 100, "in another run nobody is missed");
}

/// Slower than members are, it was shown out each time it came, as others came again at once.
#[test]
fn a_slow_member_that_returns_was_shown_out_for_strangers_again_and_again() {
    for (slowness, away_max) in [(50, 2_000), (300, 10_000), (2_000, 60_000)] {
        let mut visits = Visits::of_crowd(512);
        (0..5).for_each(|_| visits.prove(MEMBER, 1));
        visits.door.miss(MEMBER, visits.now);
        let away = visits.until_heard(3_000, Duration::from_millis(slowness)).as_millis();
        assert!(away >= u128::from(slowness) && away < away_max, "{away} ms for one that needs {slowness} ms");
    }
}

#[test]
fn a_crowd_of_one_origin_takes_no_place_of_another() {
    let mut door = Door::new(6, TIMEOUT);
    let came = ["member", "crowd", "member", "crowd", "crowd", "third"];
    for (link, origin) in came.into_iter().enumerate() {
        assert_eq!(door.admit(LinkId(link), origin, Time::ZERO), None);
    }
    let shown_out: Vec<_> = (6..1000).filter_map(|link| door.admit(LinkId(link), "crowd", Time::ZERO)).collect();
    let crowd = [1, 3, 4].into_iter().chain(6..997).map(LinkId);
    assert_eq!(shown_out, crowd.collect::<Vec<_>>(), "the oldest of the crowd");
    assert_eq!(door.crowd(), [("crowd", 3), ("member", 2), ("third", 1)]);
    door.leave(LinkId(997));
    assert_eq!(door.admit(LinkId(1000), "fourth", Time::ZERO), None, "there is a place");
    assert_eq!(door.admit(LinkId(1001), "fourth", Time::ZERO), Some(LinkId(0)), "of as many the oldest of all");
}

#[test]
fn who_says_nothing_is_shown_out_when_its_time_is_over() {
    let mut door = Door::new(3, TIMEOUT);
    door.admit(LinkId(1), (), Time::ZERO);
    door.admit(LinkId(2), (), Time::ZERO + TIMEOUT);
    let late = Time::ZERO + TIMEOUT + Duration::from_millis(1);
    assert_eq!((door.next_deadline(), door.next_late(Time::ZERO + TIMEOUT)), (Some(late), None));
    assert_eq!((door.next_late(late), door.next_late(late)), (Some(LinkId(1)), None));
    assert_eq!((door.next_deadline(), door.crowd()), (Some(late + TIMEOUT), vec![((), 1)]));
    door.clear();
    assert_eq!((door.next_deadline(), door.crowd()), (None, vec![]), "whoever came for a former run");
}

#[test]
fn a_door_without_places_has_no_room_until_it_has_some() {
    let mut door = Door::<()>::new(0, TIMEOUT);
    let later = Time::ZERO + 2 * TIMEOUT;
    assert_eq!((door.has_room(later), door.room_at()), (false, None));
    door.renew(1, TIMEOUT);
    assert!(door.has_room(Time::ZERO));
    door.admit(LinkId(0), (), later);
    assert_eq!((door.has_room(later), door.room_at()), (false, Some(later + Duration::from_secs(1))));
    assert!(door.has_room(later + Duration::from_secs(1)));
    door.close();
    assert_eq!((door.has_room(later + TIMEOUT), door.room_at(), door.crowd().len()), (false, None, 1));
}

/// A door at which all places are taken.
struct Visits {
    door: Door<&'static str>,
    places: usize,
    now: Time,
    next: usize,
}

impl Visits {
    fn of_crowd(places: usize) -> Self {
        let mut visits = Self { door: Door::new(places, TIMEOUT), places, now: Time::ZERO, next: 0 };
        visits.fill();
        visits
    }

    fn fill(&mut self) {
        (0..self.places).for_each(|_| _ = self.come());
    }

    /// When there is room, one comes; who, and who goes for it.
    fn come(&mut self) -> (LinkId, Option<LinkId>) {
        if let Some(at) = self.door.room_at() {
            self.now = self.now.max(at);
        }
        assert!(self.door.has_room(self.now));
        let link = LinkId(self.next);
        self.next += 1;
        (link, self.door.admit(link, "crowd", self.now))
    }

    /// How long one stays that comes now and has the only place, in milliseconds.
    fn stay(&mut self) -> u128 {
        self.come();
        self.door.room_at().expect("all places are taken").since(self.now).as_millis()
    }

    /// A member comes, and proves itself so many milliseconds later.
    fn prove(&mut self, member: NodeId, took: u64) {
        let (link, _) = self.come();
        self.now = self.now + Duration::from_millis(took);
        self.door.prove(link, member, self.now);
        self.come();
    }

    /// So many strangers come again as soon as they are shown out, all in one queue. A member says nothing for so long after it
    /// was let in. How long it was away when it is heard.
    fn until_heard(&mut self, strangers: usize, slowness: Duration) -> Duration {
        let began = self.now;
        let waiting = strangers - self.places;
        let mut queue: VecDeque<Guest> = (0..waiting).map(|_| Guest::Stranger).chain([Guest::Member]).collect();
        let mut member: Option<(LinkId, Time)> = None;
        loop {
            if let Some((_, heard)) = member.filter(|(_, heard)| self.door.room_at().is_none_or(|room| *heard <= room))
            {
                return heard.since(began);
            }
            assert!(self.now.since(began) < Duration::from_secs(3600), "it is shown out each time");
            let guest = queue.pop_front().expect("more wait than have places");
            let (link, leaver) = self.come();
            let member_leaves = leaver.is_some() && leaver == member.map(|(link, _)| link);
            member = member.filter(|_| !member_leaves);
            queue.push_back(if member_leaves { Guest::Member } else { Guest::Stranger });
            if guest == Guest::Member {
                member = Some((link, self.now + slowness));
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Guest {
    Member,
    Stranger,
}

const MEMBER: NodeId = NodeId(1);
const OTHER: NodeId = NodeId(2);
const TIMEOUT: Duration = Duration::from_secs(240);
