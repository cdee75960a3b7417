use super::*;
use dataflow::work_kind::WorkKind;
use driver::Sample;

fn costs() -> Costs {
    let input = |kind, layout, base| Input {
        role: Role::Sfi,
        kind,
        layout,
        level2: false,
        fit: Fit { base, each: 0.0, per_byte: 0.5 },
        from: (layout == Layout::Processes).then_some("one process"),
    };
    let inputs =
        vec![input(WorkKind::EventReply, Layout::Process, 120.4), input(WorkKind::Write, Layout::Processes, 1e4)];
    Costs {
        cores: 3,
        share: 1.0,
        course: 100.0..=140.0,
        closings: Vec::new(),
        closed: vec![(Way::Tcp, CoreCount::OneCore), (Way::Tcp, CoreCount::TwoCores)],
        driver: vec![("pass", 700.0), ("wake", 9e3), ("read", 500.0), ("far", 300.0)],
        shared: vec![("write", 80.0)],
        datagrams: vec![("write", 90.0)],
        inputs,
    }
}

#[test]
fn what_is_written_is_read() {
    let simulation = costs().simulation().unwrap();
    assert_eq!(simulation.cores, 3);
    let driver = simulation.driver.unwrap();
    assert_eq!((driver.pass.ns(), driver.wake.ns(), driver.encode.ns()), (700, 9_000, 0));
    assert_eq!([driver.shm, driver.udp].map(|carrying| carrying.unwrap().write.ns()), [80, 90]);
    let [reply, write] = &simulation.cost[..] else { panic!("{:?}", simulation.cost) };
    assert_eq!((reply.role.as_str(), reply.input.as_str(), reply.message.ns()), ("sfi", "event-reply", 120));
    assert_eq!((reply.each.ns(), reply.per_kib.ns(), reply.layout), (0, 512, Some(Layout::Process)));
    assert_eq!((write.input.as_str(), write.message.ns(), write.level2), ("write", 10_000, Some(false)));
    assert_eq!((reply.source.as_str(), write.source.as_str()), ("", "metered in one process"));
}

#[test]
fn gaps_are_told() {
    let gaps: Vec<String> = costs().gaps().collect();
    let expected = "in processes without level 2, inputs of sfi cost what they do in one process, where not metered";
    assert_eq!(gaps, [expected]);
}

#[test]
fn what_could_not_be_closed_is_told() {
    let doubts: Vec<String> = Costs { share: 0.5, ..costs() }.doubts().collect();
    assert!(doubts[0].contains("runs had 50 %") && doubts[1].contains("in shared memory, over UDP"), "{doubts:?}");
}

#[test]
fn as_many_shapes_as_factors_close_nothing() {
    let partition = Partition::parse("calibration", "partition.name = \"a\"\nros.count = 1\nsfi.count = 1\n", &[]);
    let spread = Spread::of([1e5, 2e5].into_iter()).unwrap();
    let live = [Apart { partition: partition.unwrap(), events_per_s: spread }];
    assert!(!costs().closed_apart(Way::Datagrams, CoreCount::TwoCores, &live).is_closed(Way::Datagrams));
    assert!(costs().is_closed(Way::Tcp) && !costs().is_closed(Way::SharedMemory));
    let two_cores_alone = Costs { closed: vec![(Way::Tcp, CoreCount::TwoCores)], ..costs() };
    assert!(!two_cores_alone.is_closed(Way::Tcp));
}

#[test]
fn runs_of_a_shape_that_differ_are_told() {
    let live = Spread::of([1e5, 2e5].into_iter()).unwrap();
    let of = Some((Way::SharedMemory, CoreCount::TwoCores));
    let closing = Closing { of, level2: false, fragments: 3, fragment_bytes: 500, live, simulated_per_s: 1.4e5 };
    let doubts: Vec<String> = Costs { closings: vec![closing], ..costs() }.doubts().collect();
    let words =
        "in shared memory, on two cores, 3 fragments of 500 B: 150000 (100000 to 200000, 2 runs), 140000 simulated";
    assert!(doubts.iter().any(|doubt| doubt.ends_with(words)), "{doubts:?}");
}

#[test]
fn costs_that_do_not_agree_with_live_runs_are_told() {
    let doubts = |simulated_per_s| -> Vec<String> {
        let live = Spread::of([1e5, 1e5].into_iter()).unwrap();
        let closing = Closing { of: None, level2: false, fragments: 3, fragment_bytes: 500, live, simulated_per_s };
        Costs { closings: vec![closing], ..costs() }.doubts().filter(|doubt| doubt.contains("agree")).collect()
    };
    assert_eq!([1.14e5, 0.86e5].map(|simulated_per_s| doubts(simulated_per_s).len()), [0, 0]);
    assert_eq!([1.16e5, 0.84e5].map(|simulated_per_s| doubts(simulated_per_s).len()), [1, 1]);
}

#[test]
fn messages_and_what_is_in_them_are_closed_apart() {
    let fit = |costs: Costs| costs.inputs[0].fit;
    let of = |level2, factors: &[f64]| fit(costs().times_alone(level2, factors));
    assert_eq!(of(false, &[2.0, 3.0]), Fit { base: 240.8, each: 0.0, per_byte: 1.5 });
    assert_eq!(of(false, &[2.0]), Fit { base: 240.8, each: 0.0, per_byte: 1.0 });
    assert_eq!(of(true, &[2.0]), fit(costs()));
}

#[test]
fn each_way_and_part_is_closed_by_itself() {
    let all = |costs: &Costs| -> Vec<f64> {
        [&costs.driver, &costs.shared, &costs.datagrams].into_iter().flatten().map(|(_, ns)| *ns).collect()
    };
    let closed = |way, part, factors: &[f64]| all(&costs().times_apart(way, part, factors));
    assert_eq!(closed(Way::Tcp, CoreCount::OneCore, &[2.0]), [1_400.0, 9e3, 1_000.0, 300.0, 160.0, 180.0]);
    assert_eq!(closed(Way::Tcp, CoreCount::TwoCores, &[2.0, 3.0]), [700.0, 9e3, 500.0, 600.0, 80.0, 90.0]);
    assert_eq!(closed(Way::SharedMemory, CoreCount::TwoCores, &[2.0]), [700.0, 9e3, 500.0, 300.0, 160.0, 90.0]);
    assert_eq!(closed(Way::Datagrams, CoreCount::TwoCores, &[3.0, 2.0]), [700.0, 9e3, 500.0, 300.0, 80.0, 180.0]);
}

#[test]
fn bytes_of_datagrams_are_closed_by_themselves() {
    let costs = Costs { datagrams: vec![("read", 70.0), ("far", 40.0), ("far_kib", 5.0)], ..costs() };
    let closed = costs.times_apart(Way::Datagrams, CoreCount::TwoCores, &[3.0, 2.0]);
    assert_eq!(closed.datagrams, [("read", 140.0), ("far", 80.0), ("far_kib", 15.0)]);
}

#[test]
fn the_least_is_found() {
    let found =
        least_near_zero(2, 8.0, |at| (at[0] - 1.0).powi(2) + (at[1] + 0.5).powi(2) + (at[0] * at[1]).abs() / 10.0);
    assert!((found[0] - 1.0).abs() < 0.15 && (found[1] + 0.5).abs() < 0.15, "{found:?}");
    assert_eq!(least_near_zero(1, 8.0, |_| 0.0), [0.0]);
}

#[test]
fn the_first_that_has_seen_a_kind_tells_its_cost() {
    let seen = |section, ns| {
        let samples = vec![Sample { count: 1.0, bytes: 0.0, ns }; 100];
        Seen { samples: BTreeMap::from([(section, samples)]), writing: Vec::new() }
    };
    let build = Section::Input(Role::Sfi, WorkKind::Build);
    let [one, other, third] =
        [(build, 100.0), (build, 300.0), (Section::Flush(Role::Ros), 50.0)].map(|(section, ns)| seen(section, ns));
    let found: Vec<_> = best_of([(&one, "a"), (&other, "b"), (&third, "c"), (&Seen::default(), "d")])
        .map(|((role, kind), (fit, from))| (role, kind, (fit.base + fit.each).round(), from))
        .collect();
    assert_eq!(found, [(Role::Sfi, WorkKind::Build, 100.0, "a"), (Role::Ros, WorkKind::Flush, 50.0, "c")]);
}
