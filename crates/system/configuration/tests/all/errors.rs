//! Every error with its exact words.

use configuration::Partition;

/// What is wrong with `text` and `overrides`, line by line.
fn errors(text: &str, overrides: &[&str]) -> Vec<String> {
    let overrides: Vec<_> = overrides.iter().map(|text| (*text).to_owned()).collect();
    let error = Partition::parse("p.toml", text, &overrides).expect_err("the configuration is wrong");
    error.to_string().lines().map(str::to_owned).collect()
}

/// A good event builder to which `overrides` do harm.
fn overridden(overrides: &[&str]) -> Vec<String> {
    errors(BUILDER, overrides)
}

/// The same with level 1, level 2, filter and recorder.
fn overridden_chain(overrides: &[&str]) -> Vec<String> {
    errors(CHAIN, overrides)
}

const BUILDER: &str = "[partition]\nname = \"p\"\n[ros]\ncount = 4\n[sfi]\ncount = 2\n";

const CHAIN: &str = "[partition]\nname = \"p\"\n[level1]\n[l2sv]\n[l2pu]\n[ros]\ncount = 4\n[dfm]\n[sfi]\ncount = 2\n\
                     [ef]\n[sfo]\n";

#[test]
fn the_good_ones_are_good() {
    Partition::parse("p.toml", BUILDER, &[]).unwrap();
    Partition::parse("p.toml", CHAIN, &[]).unwrap();
}

#[test]
fn losses_that_cannot_be_tolerated() {
    let one = |set: &str| overridden(&[set]).join("\n");
    assert_eq!(
        one("run.tolerate={ build_incomplete = 10 }"),
        "--set run.tolerate: run.tolerate.build_incomplete: unknown key; did you mean `built_incomplete`?"
    );
    let expected = "expected a number of events such as 10, or a part such as \"1 %\", found";
    for (value, found) in [("-1", "integer -1"), ("few", "\"few\""), ("0.01", "number 0.01"), ("'101 %'", "\"101 %\"")]
    {
        let key = "run.tolerate.filter_debug";
        assert_eq!(one(&format!("{key}={value}")), format!("--set {key}: {expected} {found}"));
    }
    assert_eq!(
        one("run.tolerate=10"),
        "--set run.tolerate: expected a table of causes, such as { built_incomplete = 10 }, found integer 10"
    );
}

#[test]
fn a_secret_on_the_command_line_is_refused_and_not_repeated() {
    let expected = "a secret: everybody can read the command line; expected it in the configuration file, or nowhere: then \
                    each run draws one of its own";
    assert_eq!(overridden(&["partition.key=hidden"]), [format!("--set partition.key: {expected}")]);
    let whole_table = ["partition={name=\"p\", key=\"hidden\"}"];
    assert_eq!(overridden(&whole_table), [format!("--set partition: partition.key: {expected}")]);
}

#[test]
fn datagrams() {
    let one = |set: &[&str]| overridden(set).join("\n");
    assert_eq!(
        one(&["transport.udp.datagram=70 kB"]),
        "--set transport.udp.datagram: expected 256 B to 65507 B, found 70 kB"
    );
    assert_eq!(
        one(&["transport.udp.window=0 B", "transport.udp.retransmit_after=0 s"]),
        "--set transport.udp.retransmit_after: expected more than \"0 s\"\n\
         --set transport.udp.window: expected at least 1 B"
    );
    assert_eq!(
        one(&["transport.udp.group=10.0.0.1"]),
        "--set transport.udp.group: expected a multicast group from 224.0.0.0 to 239.255.255.255, found \"10.0.0.1\""
    );
    assert_eq!(
        one(&["transport.udp.interface=eth0"]),
        "--set transport.udp.interface: expected the IPv4 address of an interface such as \"127.0.0.1\", found \"eth0\""
    );
    assert_eq!(
        one(&["transport.clear=multicast", "transport.host=::1"]),
        "--set transport.clear: \"multicast\" is for IPv4, and transport.host is ::1: expected \"connection\", \"tcp\", \
         \"shm\" or \"udp\""
    );
    assert_eq!(
        one(&["transport.clear=udp", "transport.host=0.0.0.0"]),
        "--set transport.host: expected the address of one interface, by which peers know it, found 0.0.0.0"
    );
}

#[test]
fn who_shows_events_is_there() {
    assert_eq!(
        overridden(&["sampling.stages=[\"efd\", \"ebif\"]", "sampling.items=[32]"]).join("\n"),
        "--set sampling.items: expected numbers of level-1 items from 0 to 31, found 32\n\
         --set sampling.stages: expected \"efd\" with an event filter alone: there is no [ef]\n\
         --set sampling.stages: expected \"ebif\" with read-out crates alone: there is no [roc]"
    );
}

#[test]
fn carriers_that_cannot_be() {
    let one = |set: &[&str]| overridden(set).join("\n");
    assert_eq!(
        one(&["transport.event_reply=multicast"]),
        "--set transport.event_reply: expected \"connection\", \"tcp\", \"shm\" or \"udp\", found \"multicast\""
    );
    assert_eq!(
        one(&["transport.building=udp"]),
        "--set transport.building: expected \"connection\", \"tcp\" or \"shm\", found \"udp\""
    );
    assert_eq!(
        one(&["transport.credit=udp"]),
        "--set transport.credit: only for dfm.building = \"push\" and \"push-by-number\", which is \"pull\""
    );
    assert_eq!(
        one(&["transport.pushed=shm"]),
        "--set transport.pushed: only for dfm.building = \"push\" and \"push-by-number\", which is \"pull\""
    );
    assert_eq!(
        one(&["dfm.building=push", "transport.push=multicast", "transport.host=::1"]),
        "--set transport.push: \"multicast\" is for IPv4, and transport.host is ::1: expected \"connection\", \"tcp\", \
         \"shm\" or \"udp\""
    );
    assert_eq!(
        one(&["dfm.building=push", "transport.event_reply=shm", "transport.clear=tcp", "simulation.layout=farm"]),
        "--set transport.event_reply: shared memory does not reach from host to host, and simulation.layout is \"farm\": \
         expected \"tcp\", or \"udp\" where the key takes it"
    );
    assert_eq!(
        one(&["transport.filter=shm", "simulation.layout=farm"]),
        "--set transport.filter: shared memory does not reach from host to host, and simulation.layout is \"farm\": expected \
         \"tcp\", or \"udp\" where the key takes it"
    );
    assert_eq!(
        one(&["transport.connections=shm", "simulation.layout=farm"]),
        "--set transport.connections: shared memory does not reach from host to host, and simulation.layout is \"farm\": \
         expected \"tcp\""
    );
    Partition::parse("p.toml", CHAIN, &["transport.event_reply=shm", "transport.roi_reply=udp"].map(String::from))
        .unwrap();
}

#[test]
fn all_problems_are_reported_together_in_the_order_of_the_file() {
    let text = "[partition]\nname = \"test beam\"\n\n[ros]\ncount = 4\npage_size = \"9 s\"\n  pages = -1\n\n[sfi]\n\
                outstanding_request = 64\nbuilding = true\n\n[sif]\ncount = 2\n";
    assert_eq!(
        errors(text, &["run.seed=x", "dfm.asignment=random"]),
        [
            "p.toml:2:8: partition.name: expected 1 to 64 letters, digits, `_` and `-`, found \"test beam\"",
            "p.toml:6:13: ros.page_size: expected a size such as \"9 kB\", found \"9 s\": `s` is not a unit of a size \
             (TB, GiB, GB, MiB, MB, KiB, kB, B)",
            "p.toml:7:11: ros.pages: expected an integer from 0 to 4294967295, found integer -1",
            "p.toml:9:2: sfi.count: missing; expected the number of event builders, such as 2",
            "p.toml:10:1: sfi.outstanding_request: unknown key; did you mean `outstanding_requests`?",
            "p.toml:11:12: sfi.building: expected an integer from 0 to 4294967295, found true",
            "p.toml:13:2: sif: unknown key; did you mean `sfi`?",
            "--set dfm.asignment: unknown key; did you mean `assignment`?",
            "--set run.seed: expected an integer from 0, found \"x\"",
        ]
    );
}

#[test]
fn a_file_without_its_required_keys() {
    assert_eq!(
        errors("", &[]),
        [
            "p.toml: partition.name: missing; expected the name of the partition, such as \"test-beam\"",
            "p.toml: ros.count: missing; expected the number of read-out systems, such as 4",
            "p.toml: sfi.count: missing; expected the number of event builders, such as 2",
        ]
    );
}

#[test]
fn syntax() {
    assert_eq!(
        errors("[partition\nname = \"p\"\n[sfi]\ncount == 2\ncount = 3\ncount = 4\n", &[]),
        [
            "p.toml:1:11: not valid TOML: unclosed table, expected `]`",
            "p.toml:4:8: not valid TOML: extra `=`, expected nothing",
            "p.toml:4:10: not valid TOML: unexpected key or value, expected newline, `#`",
            "p.toml:5:1: not valid TOML: duplicate key `count`: expected each key once",
            "p.toml:6:1: not valid TOML: duplicate key `count`: expected each key once",
        ]
    );
    assert_eq!(
        errors("a = 1\na = 2\n", &["sfi.count"]),
        [
            "p.toml:2:1: not valid TOML: duplicate key `a`: expected each key once",
            "--set sfi.count: expected key=value, such as sfi.count=2, found no `=`",
        ]
    );
}

#[test]
fn values_of_the_wrong_type() {
    let one = |set: &str| overridden(&[set]).join("\n");
    assert_eq!(one("run.duration=10"), "--set run.duration: expected a time such as \"250 ms\", found integer 10");
    assert_eq!(
        one("run.duration=ten s"),
        "--set run.duration: expected a time such as \"250 ms\", found \"ten s\": the number is missing"
    );
    assert_eq!(
        one("run.duration=\"10 km\""),
        "--set run.duration: expected a time such as \"250 ms\", found \"10 km\": `km` is not a unit of a time (h, \
         min, s, ms, us, µs, μs, ns)"
    );
    assert_eq!(one("level1.rate=75"), "--set level1.rate: expected a rate such as \"75 kHz\", found integer 75");
    assert_eq!(
        one("level1.rate=75 khz"),
        "--set level1.rate: expected a rate such as \"75 kHz\", found \"75 khz\": `khz` is not a unit of a rate (MHz, \
         kHz, Hz, mHz); did you mean `kHz`?"
    );
    assert_eq!(
        one("ros.busy_above=80"),
        "--set ros.busy_above: expected a fraction from 0 to 1, or such as \"5 %\", found integer 80"
    );
    assert_eq!(
        one("ros.busy_above=1.5"),
        "--set ros.busy_above: expected a fraction from 0 to 1, or such as \"5 %\", found number 1.5"
    );
    assert_eq!(
        one("ros.busy_above=half"),
        "--set ros.busy_above: expected a fraction such as \"5 %\", found \"half\": the number is missing"
    );
    assert_eq!(
        one("ros.page_size=99999999999 TB"),
        "--set ros.page_size: expected a size such as \"9 kB\", found \"99999999999 TB\": it is too large, at most \
         18446744073709551615 B"
    );
    assert_eq!(
        one("ros.page_size=-1 kB"),
        "--set ros.page_size: expected a size such as \"9 kB\", found \"-1 kB\": it is negative"
    );
    assert_eq!(
        one("ros.sub_detector=0x100"),
        "--set ros.sub_detector: expected an integer from 0 to 255, found integer 256"
    );
    assert_eq!(
        one("run.seed=99999999999999999999"),
        "--set run.seed: expected an integer from 0, found integer 99999999999999999999"
    );
    assert_eq!(
        one("run.number=1979-05-27"),
        "--set run.number: expected an integer from 0 to 4294967295, found date 1979-05-27"
    );
    assert_eq!(one("run.simulation=1"), "--set run.simulation: expected true or false, found integer 1");
    assert_eq!(
        one("run.type=fysics"),
        "--set run.type: expected \"physics\", \"calibration\", \"cosmics\" or \"test\", found \"fysics\"; did you \
         mean `physics`?"
    );
    assert_eq!(
        one("run.type=7"),
        "--set run.type: expected \"physics\", \"calibration\", \"cosmics\" or \"test\", found integer 7"
    );
    assert_eq!(one("sfi=3"), "--set sfi: expected a table, found integer 3");
    assert_eq!(one("sfi.count={a=1}"), "--set sfi.count: expected an integer from 0 to 4294967295, found a table");
    assert_eq!(
        one("ros.fragment=\"9 kB\""),
        "--set ros.fragment: expected a table such as { kind = \"fixed\", size = \"1 kB\" }, found \"9 kB\""
    );
    assert_eq!(one("input.files=a.raw"), "--set input.files: expected a list, found \"a.raw\"");
    assert_eq!(one("input.files=[1]"), "--set input.files: expected a string, found integer 1");
    assert_eq!(
        one("transport.host=localhost"),
        "--set transport.host: expected an IP address such as \"127.0.0.1\", found \"localhost\""
    );
    assert_eq!(
        one("processes.on_loss=ignore"),
        "--set processes.on_loss: expected \"stop\" or \"restart\", found \"ignore\", which is not available yet in this version"
    );
    assert_eq!(
        one("processes.on_loss.ros=ignore"),
        "--set processes.on_loss.ros: expected \"stop\" or \"restart\", found \"ignore\", which is not available yet in this version"
    );
    assert_eq!(one("processes.on_loss.rso=stop"), "--set processes.on_loss.rso: unknown key; did you mean `ros`?");
    assert_eq!(
        one("processes.on_loss=3"),
        "--set processes.on_loss: expected \"stop\", \"restart\" or a table such as { ros = \"restart\" }, found integer 3"
    );
    assert_eq!(
        one("processes.on_loss=stp"),
        "--set processes.on_loss: expected \"stop\" or \"restart\", found \"stp\"; did you mean `stop`?"
    );
}

#[test]
fn overrides_that_are_none() {
    let one = |set: &str| overridden(&[set]).join("\n");
    assert_eq!(one("sfi.count"), "--set sfi.count: expected key=value, such as sfi.count=2, found no `=`");
    assert_eq!(
        one("=3"),
        "--set =3: expected a key such as sfi.count before the `=`, of letters, digits, `_` and `-`, parted by dots"
    );
    assert_eq!(
        one("sfi..count=3"),
        "--set sfi..count: expected a key such as sfi.count before the `=`, of letters, digits, `_` and `-`, parted \
         by dots"
    );
    assert_eq!(
        one("sfi.speed=3"),
        "--set sfi.speed: unknown key; expected `count`, `events`, `building`, `outstanding_requests`, `credits`, \
         `request_order`, `request_timeout`, `retries`, `max_event_size`, `copy_below` or `check`"
    );
}

#[test]
fn ranges() {
    let one = |set: &str| overridden_chain(&[set]).join("\n");
    assert_eq!(one("sfi.count=10001"), "--set sfi.count: expected an integer from 0 to 10000, found 10001");
    assert_eq!(
        one("ros.count=10001"),
        "--set ros.count: expected an integer from 1 to 10000, found 10001\n--set ros.count: sfi.max_event_size: \
         expected at least 11281256 B for an event of ros.count × ros.robs fragments, found 4 MB"
    );
    assert_eq!(one("ef.prescale=0"), "--set ef.prescale: expected an integer from 1 to 4294967295, found 0");
    assert_eq!(one("sfi.retries=1001"), "--set sfi.retries: expected an integer from 0 to 1000, found 1001");
    assert_eq!(
        one("level1.rois_per_event=256"),
        "--set level1.rois_per_event: expected an integer from 0 to 255, found 256"
    );
    assert_eq!(one("l2sv.timeout=0 s"), "--set l2sv.timeout: expected a time above 0, found \"0 s\"");
    assert_eq!(
        one("level1.rate=0 Hz"),
        "--set level1.rate: expected a rate above 0, found \"0 Hz\"; without the key there is no limit"
    );
    assert_eq!(one("transport.page_size=4 GB"), "--set transport.page_size: expected 64 B to 2 GiB, found 4 GB");
}

#[test]
fn names() {
    let one = |set: &str| overridden_chain(&[set]).join("\n");
    assert_eq!(
        one("partition.name="),
        "--set partition.name: expected 1 to 64 letters, digits, `_` and `-`, found \"\""
    );
    assert_eq!(
        one("sfo.project=data.test"),
        "--set sfo.project: expected letters, digits, `_` and `-`, found \"data.test\""
    );
    assert_eq!(
        one("sfo.stream=phsics_Main"),
        "--set sfo.stream: expected a stream such as \"physics_Main\" that starts with one of physics, calibration, \
         reserved, unknown, express, monitoring, found \"phsics_Main\"; did you mean `physics`?"
    );
    assert_eq!(
        one("sfo.stream=debug_Main"),
        "--set sfo.stream: expected another type than debug, which is for what the event filter fails on, found \"debug_Main\""
    );
    assert_eq!(
        one("sfo.stream=physics"),
        "--set sfo.stream: expected a name of letters, digits, `_` and `-` behind \"physics_\", found \"physics\""
    );
    assert_eq!(one("output.directory="), "--set output.directory: expected a folder, found \"\"");
    assert_eq!(one("input.files=[\"\"]"), "--set input.files: expected paths of files, found \"\"");
    assert_eq!(
        one("transport.congestion=a b"),
        "--set transport.congestion: expected the name of a congestion control, such as \"reno\""
    );
    assert_eq!(
        one("control.bus=daq-1:4222"),
        "--set control.bus: expected a NATS server such as \"nats://daq-1:4222\", found \"daq-1:4222\""
    );
    assert_eq!(
        one("control.bus=nats://me:word@daq-1"),
        "--set control.bus: a secret: everybody may read this key; expected user and password in control.bus_login"
    );
    assert_eq!(
        one("control.bus_login=bus.login"),
        "--set control.bus_login: needs control.bus, the server, which is absent"
    );
}

#[test]
fn the_collector() {
    let all = |set: &[&str]| overridden(set).join("\n");
    assert_eq!(
        all(&["control.otlp=collector:4318"]),
        "--set control.otlp: expected a collector such as \"http://collector:4318\", found \"collector:4318\""
    );
    assert_eq!(
        all(&["control.otlp_interval=5 s"]),
        "--set control.otlp_interval: needs control.otlp, the collector, which is absent"
    );
    assert_eq!(
        all(&["control.otlp_certificate=ca.pem"]),
        "--set control.otlp_certificate: needs control.otlp, the collector, which is absent"
    );
    assert_eq!(
        all(&["control.otlp_headers=headers"]),
        "--set control.otlp_headers: needs control.otlp, the collector, which is absent"
    );
    assert_eq!(
        all(&["control.otlp_compression=gzip"]),
        "--set control.otlp_compression: needs control.otlp, the collector, which is absent"
    );
    assert_eq!(
        all(&["control.otlp=http://c", "control.otlp_certificate=ca.pem"]),
        "--set control.otlp_certificate: expected a collector behind https:// in control.otlp, found \"http://c\""
    );
    assert_eq!(
        all(&["control.otlp=http://c", "control.otlp_interval=100 ms"]),
        "--set control.otlp_interval: expected 1 s or more, found 100 ms"
    );
    assert_eq!(
        all(&["control.otlp=https://c", "control.otlp_certificate="]),
        "--set control.otlp_certificate: expected a file, found \"\""
    );
}

#[test]
fn tables_that_need_others() {
    assert_eq!(
        overridden(&["l2sv.count=1"]),
        [
            "--set l2sv.count: l2sv: [l2sv] needs the table [l2pu], which is absent",
            "--set l2sv.count: l2sv: [l2sv] needs the table [level1], which is absent",
        ]
    );
    assert_eq!(
        overridden(&["l2pu.count=1"]),
        ["--set l2pu.count: l2pu: [l2pu] needs the table [l2sv], which is absent"]
    );
    assert_eq!(
        overridden(&["dfm.input=level2"]),
        ["--set dfm.input: expected \"self\", found \"level2\": the table [l2sv] is absent"]
    );
    assert_eq!(
        overridden(&["dfm.input=level1"]),
        ["--set dfm.input: expected \"self\", found \"level1\": the table [level1] is absent"]
    );
    assert_eq!(
        overridden(&["dfm.input=self", "level1.in_flight=8"]),
        ["--set dfm.input: expected \"level1\", found \"self\": the triggers of [level1] would go nowhere"]
    );
    assert_eq!(
        overridden(&["dfm.clear_after=recorded"]),
        ["--set dfm.clear_after: \"recorded\" needs the table [sfo], which is absent"]
    );
    assert_eq!(
        overridden_chain(&["dfm.input=self"]),
        ["--set dfm.input: expected \"level2\", found \"self\": the decisions of [l2sv] would go nowhere"]
    );
    assert_eq!(
        overridden_chain(&["dfm.input=level1"]),
        ["--set dfm.input: expected \"level2\", found \"level1\": the decisions of [l2sv] would go nowhere"]
    );
    assert_eq!(
        overridden_chain(&["dfm.rate=1 kHz"]),
        ["--set dfm.rate: only for dfm.input = \"self\", which is \"level2\"; the key of other triggers is \
             level1.rate",]
    );
    assert_eq!(
        overridden_chain(&["l2pu.asked=10 %"]),
        ["--set l2pu.asked: only the strategy \"generate\" asks for the data of a part"]
    );
}

#[test]
fn push_building_that_cannot_be() {
    assert_eq!(
        overridden(&["ros.push={window=\"1 MB\"}"]),
        ["--set ros.push: only for dfm.building = \"push\" and \"push-by-number\", which is \"pull\""]
    );
    assert_eq!(
        overridden(&["dfm.building=push-by-number"]),
        [
            "--set dfm.building: \"push-by-number\" needs the table [level1], which is absent: read-out systems learn of \
          events from it; expected \"push\""
        ]
    );
    assert_eq!(
        overridden_chain(&["dfm.building=push-by-number"]),
        ["--set dfm.building: \"push-by-number\" cannot go with [l2sv]: events that level 2 rejects would be sent; \
          expected \"push\""]
    );
    assert_eq!(
        overridden_chain(&["dfm.building=push", "l2pu.phased=true", "l2pu.count=2", "sfi.count=2"]),
        ["--set dfm.building: \"push\" cannot go with l2pu.phased: it sends again what level 2 has collected"]
    );
    assert_eq!(
        overridden(&[
            "dfm.building=push-by-number",
            "dfm.input=level1",
            "level1.in_flight=8",
            "dfm.assignment=least-loaded"
        ]),
        ["--set dfm.assignment: \"least-loaded\" cannot go with dfm.building = \"push-by-number\": the number of an \
          event says who builds it"]
    );
    assert_eq!(
        overridden(&["dfm.building=push", "ros.push={burst=\"1 kB\", window=\"1 B\", group=0}"]).len(),
        3,
        "each key is checked"
    );
}

#[test]
fn network_ports_that_cannot_be() {
    assert_eq!(
        overridden(&["ros.ports=[\"127.0.0.2\", \"localhost\"]"]),
        ["--set ros.ports: expected an IP address such as \"127.0.0.1\", found \"localhost\""]
    );
    assert_eq!(
        overridden(&["ros.ports=[\"127.0.0.2\", \"127.0.0.2\"]"]),
        ["--set ros.ports: expected the addresses of different interfaces, found 127.0.0.2"]
    );
    assert_eq!(
        overridden(&["ros.ports=[\"::1\"]", "transport.event_reply=udp"]),
        [
            "--set ros.ports: datagrams need addresses of the same family as transport.host, which is 127.0.0.1, found ::1"
        ]
    );
    for carrier in ["udp", "shm"] {
        let set = ["ros.ports=[\"127.0.0.2\"]".to_owned(), format!("transport.event_reply={carrier}")];
        Partition::parse("p.toml", CHAIN, &set).unwrap();
    }
}

#[test]
fn inputs_that_do_not_agree() {
    assert_eq!(
        overridden_chain(&["level1.source=sample"]),
        ["--set level1.source: input.files: missing; expected the files that ros.input = \"sample\" reads"]
    );
    assert_eq!(
        overridden_chain(&["level1.source=sample", "ros.input=emulator"]),
        ["--set ros.input: expected the same as level1.source, which is \"sample\", found \"emulator\""]
    );
    assert_eq!(
        overridden_chain(&["ros.input=replay", "input.files=[\"a\"]"]),
        ["--set ros.input: expected the same as level1.source, which is \"emulator\", found \"replay\""]
    );
    assert_eq!(
        overridden(&["ros.input=sample", "input.files=[\"a\"]"]),
        ["--set ros.input: \"sample\" needs the table [level1] with source = \"sample\""]
    );
    let source = "source=[{name=\"a\"}]";
    assert_eq!(
        overridden_chain(&["ros.input=links", "ros.count=1", source]),
        ["--set ros.input: \"links\" needs level1.source = \"link\", \"time\" or \"external\", which is \"emulator\""]
    );
    assert_eq!(
        overridden_chain(&["level1.source=link", "ros.input=emulator"]),
        ["--set ros.input: expected \"links\" with level1.source = \"link\", found \"emulator\""]
    );
    assert_eq!(
        overridden_chain(&["level1.source=sample", "input.files=[\"a\"]", "ros.robs=2"]),
        ["--set ros.robs: only for ros.input = \"emulator\", which is \"sample\""]
    );
    assert_eq!(
        overridden(&["ros.busy_below=0.8"]),
        ["--set ros.busy_below: expected less than ros.busy_above, which is 80 %, found 80 %"]
    );
}

#[test]
fn fragments() {
    let one = |set: &str| overridden(&[set]).join("\n");
    assert_eq!(
        one("ros.fragment={kind=\"gaussian\", mean=\"1 kB\"}"),
        "--set ros.fragment: ros.fragment.sigma: missing; ros.fragment.kind = \"gaussian\" needs it"
    );
    assert_eq!(
        one("ros.fragment={kind=\"list\", size=\"1 kB\"}"),
        "--set ros.fragment: ros.fragment.size: not for ros.fragment.kind = \"list\"\n--set ros.fragment: \
         ros.fragment.sizes: missing; ros.fragment.kind = \"list\" needs it"
    );
    assert_eq!(
        one("ros.fragment={kind=\"list\", sizes=[\"1 kB\"], weights=[1, 2]}"),
        "--set ros.fragment: ros.fragment.weights: expected one for each of ros.fragment.sizes, which are 1, found 2"
    );
    assert_eq!(
        one("ros.fragment={kind=\"list\", sizes=[\"1 kB\"], weights=[0]}"),
        "--set ros.fragment: ros.fragment.weights: expected a weight above 0, found only 0"
    );
    assert_eq!(
        one("ros.fragment={kind=\"list\", sizes=[\"1 kB\", \"2\"]}"),
        "--set ros.fragment: ros.fragment.sizes: expected a size such as \"9 kB\", found \"2\": the unit is missing \
         (TB, GiB, GB, MiB, MB, KiB, kB, B)"
    );
    assert_eq!(
        one("ros.fragment={size=\"20 kB\"}"),
        "--set ros.fragment: ros.page_size: expected at least 20128 B for the largest fragment of ros.fragment with \
         its headers, found 16 KiB"
    );
    assert_eq!(one("ros.fragment.mean=\"20 kB\""), "--set ros.fragment.mean: not for ros.fragment.kind = \"fixed\"");
}

#[test]
fn capacities() {
    assert_eq!(
        overridden(&["sfi.building=65"]),
        ["--set sfi.building: expected at most sfi.events, which is 64, found 65"]
    );
    assert_eq!(
        overridden(&["ros.robs=1000"]),
        [
            "p.toml:4:9: sfi.max_event_size: expected at least 4512128 B for an event of ros.count × ros.robs \
             fragments, found 4 MB",
            "--set ros.robs: transport.page_size: expected at least 1128128 B for the reply of a read-out system with \
             ros.robs = 1000, found 1 MB",
        ]
    );
    assert_eq!(
        overridden(&["ros.robs=1000", "transport.page_size=2 MB"]),
        ["p.toml:4:9: sfi.max_event_size: expected at least 4512128 B for an event of ros.count × ros.robs \
             fragments, found 4 MB",]
    );
    assert_eq!(
        overridden(&["ros.page_size=32 B"]),
        [
            "--set ros.page_size: expected 64 B to 2 GiB, found 32 B",
            "--set ros.page_size: expected at least 1128 B for the largest fragment of ros.fragment with its headers, \
             found 32 B",
        ]
    );
}

#[test]
fn a_socket_buffer_of_a_terabyte_passed() {
    assert_eq!(
        overridden(&["transport.socket_buffer=1 TB"]),
        ["--set transport.socket_buffer: expected at most 1 GiB, the most that the kernel can give, found 1 TB"]
    );
    assert!(Partition::parse("p.toml", BUILDER, &["transport.socket_buffer=1 GiB".to_owned()]).is_ok());
}

#[test]
fn recorders() {
    assert_eq!(
        overridden_chain(&["sfo.durable=file", "dfm.clear_after=recorded"]),
        ["--set sfo.durable: \"file\" cannot go with dfm.clear_after = \"recorded\": the read-out would fill \
             before the file closes",]
    );
    assert_eq!(
        overridden_chain(&["sfo.order=event"]),
        ["--set sfo.order: \"event\" cannot go with [l2sv]: which events it rejects is not known to the recorder"]
    );
    assert_eq!(
        overridden_chain(&["sfo.order=event", "ef.policy=random"]),
        [
            "--set sfo.order: \"event\" cannot go with [l2sv]: which events it rejects is not known to the recorder",
            "--set sfo.order: \"event\" cannot go with ef.policy = \"random\": which events it rejects is not known \
             to the recorder",
        ]
    );
    assert_eq!(
        overridden_chain(&["sfo.dialect=input"]),
        ["--set sfo.dialect: \"input\" needs ros.input = \"replay\", which is \"emulator\""]
    );
    assert_eq!(
        overridden_chain(&["sfo.dialect=bes3", "sfo.compression=zlib"]),
        ["--set sfo.compression: \"zlib\" needs sfo.dialect = \"atlas\", which is \"bes3\""]
    );
}

#[test]
fn what_depends_on_a_refused_key_is_not_judged() {
    assert_eq!(
        overridden(&["sfi.building=65", "sfi.events=many"]),
        ["--set sfi.events: expected an integer from 0 to 4294967295, found \"many\""]
    );
    assert_eq!(
        overridden_chain(&["level1.source=smaple"]),
        [
            "--set level1.source: expected \"emulator\", \"sample\", \"replay\", \"file\", \"external\", \"link\" or \"time\", found \"smaple\"; did you mean \
             `sample`?",
        ]
    );
}

#[test]
fn a_key_that_is_there_twice_is_named() {
    let twice = "partition.name = \"p\"\nsfi.count = 2\n[ros]\ncount = 4\n\"robs\" = 1\ncount = 5\n";
    assert_eq!(errors(twice, &[]), ["p.toml:6:1: not valid TOML: duplicate key `count`: expected each key once"]);
    let table = "[sfi]\ncount = 2\n[sfi]\n";
    assert_eq!(errors(table, &[]), ["p.toml:3:2: not valid TOML: duplicate key `sfi`: expected each key once"]);
}
