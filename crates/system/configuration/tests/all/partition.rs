//! Defaults, derived values, writing and reading back, paths, applications.

use std::fs;
use std::path::Path;

use base::ids::Role;
use configuration::{
    Carrier, ClearAfter, DfmInput, Dialect, Fraction, GroupCarrier, Interval, Level1Source, LossAction, MessageType,
    Partition, RosInput, RunType, Size, SizeDistribution, TEMPLATES, Way, template,
};
use proptest::prelude::{Just, Strategy, any, prop_assert_eq, proptest};
use proptest::sample::{select, subsequence};
use testkit::TempDir;

const BUILDER: &str = "[partition]\nname = \"p\"\n[ros]\ncount = 4\n[sfi]\ncount = 2\n";

fn parsed(text: &str, overrides: &[&str]) -> Partition {
    let overrides: Vec<_> = overrides.iter().map(|text| (*text).to_owned()).collect();
    Partition::parse("p.toml", text, &overrides).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn defaults() {
    let partition = parsed(BUILDER, &[]);
    assert_eq!(
        partition.to_toml(),
        r#"[partition]
name = "p"

[run]
first_lvl1_id = 0
seed = 1
stop_timeout = "10 s"
type = "test"
simulation = false
stamps = "off"

[run.tolerate]
level2_lost = 0
level2_forced = 0
level2_incomplete = 0
not_built = 0
built_incomplete = 0
lost_after_build = 0
filter_debug = 0
lost_in_recording = 0

[input]
files = []
repeat = false

[ros]
count = 4
robs = 1
input = "emulator"
page_size = "16 KiB"
pages = 1024
busy_above = "80 %"
busy_below = "60 %"
request_timeout = "100 ms"
sub_detector = 81
checksum = "none"
preprocessing = "none"
suppress_below = 0

[ros.fragment]
kind = "fixed"
size = "1 kB"
payload = "prefilled"

[dfm]
input = "self"
building = "pull"
assignment = "round-robin"
build_timeout = "2 s"
clear_group = 100
clear_age = "10 ms"
clear_after = "built"
queue = 1000

[sfi]
count = 2
events = 64
building = 32
outstanding_requests = 64
credits = "fixed"
request_order = "random"
request_timeout = "500 ms"
retries = 3
max_event_size = "4 MB"
copy_below = "2 kB"
check = "headers"

[output]
directory = "out"

[transport]
page_size = "1 MB"
pages = 64
idle = "park"
host = "127.0.0.1"
copy_below = "2 kB"
connections = "tcp"
level1 = "connection"
level2 = "connection"
building = "connection"
filter = "connection"
recording = "connection"
roc = "connection"
event_request = "connection"
event_reply = "connection"
credit = "connection"
roi_request = "connection"
roi_reply = "connection"
collected = "connection"
clear = "connection"

[transport.udp]
authenticate = "everything"
offload = true
ask_after = "2 ms"
retransmit_after = "20 ms"
retransmits = 10
group = "239.192.0.1"
port = 0
ttl = 1

[processes]
start_timeout = "30 s"
restarts = 3
restart_window = "1 min"
lease = "1 s"
hang_timeout = "30 s"

[processes.on_loss]
level1 = "stop"
l2sv = "stop"
l2pu = "stop"
pros = "stop"
ros = "stop"
dfm = "stop"
sfi = "stop"
efd = "stop"
sfo = "stop"
trg = "stop"
ebif = "stop"
"#
    );
}

#[test]
fn defaults_of_optional_tables() {
    let text = parsed(BUILDER, &["level1={}", "l2sv={}", "l2pu={}", "ef={}", "sfo={}"]).to_toml();
    let tables: Vec<_> = ["[level1]", "[l2sv]", "[l2pu]", "[ef]", "[sfo]"]
        .iter()
        .map(|head| {
            let from = text.find(head).unwrap();
            text[from..].split("\n\n").next().unwrap().trim_end()
        })
        .collect();
    assert_eq!(
        tables,
        [
            "[level1]\nsource = \"emulator\"\nspacing = \"fixed\"\nin_flight = 1024\nrois_per_event = 2\n\
             join_timeout = \"100 ms\"",
            "[l2sv]\ncount = 1\nassignment = \"round-robin\"\nevents_in_system = 1000\ntimeout = \"1 s\"\n\
             forced_limit = \"10 %\"\ndecisions = \"as-found\"\nforce_accept = []\nveto = []\n\
             group = 100\ngroup_age = \"10 ms\"",
            "[l2pu]\ncount = 1\nworkers = 4\nstrategy = \"two-step\"\naccept = \"10 %\"\nasked = \"100 %\"\nstep_accept = \"10 %\"\n\
             robs_per_step = 2\nrequest_timeout = \"100 ms\"\nphased = false\ncost = \"0 s\"",
            "[ef]\ncount = 1\nslots = 8\npolicy = \"accept\"\nprescale = 10\naccept = \"50 %\"",
            "[sfo]\ncount = 1\nstream = \"physics_Main\"\norder = \"arrival\"\ndialect = \"atlas\"\n\
             durable = \"write\"\nfsync_age = \"100 ms\"\nmax_file_size = \"2 GB\"\nmax_file_events = 0\n\
             checksum = \"adler32\"\ncompression = \"none\"\nproject = \"data_test\"\nlumi_block = 1",
        ]
    );
}

#[test]
fn derived_values() {
    assert_eq!(parsed(BUILDER, &[]).dfm.input, DfmInput::SelfTrigger);
    assert_eq!(parsed(BUILDER, &["level1={}"]).dfm.input, DfmInput::Level1);
    assert_eq!(parsed(BUILDER, &["level1={}", "l2sv={}", "l2pu={}"]).dfm.input, DfmInput::Level2);
    let replay = parsed(
        "[partition]\nname = \"p\"\n[level1]\nsource = \"replay\"\n[sfi]\ncount = 1\n[input]\nfiles = [\"a\"]\n",
        &[],
    );
    assert_eq!((replay.ros.input, replay.ros.count), (RosInput::Replay, 1));
}

#[test]
fn datagrams_are_made_for_the_network_that_carries_them() {
    let transport = |overrides: &[&str]| parsed(BUILDER, overrides).transport;
    let made = |transport: &configuration::Transport| (transport.datagram_len(), transport.has_checksums());
    assert_eq!(made(&transport(&[])), (65_507, false));
    let header_only = "transport.udp.authenticate=header";
    // The tag says more than a checksum.
    assert_eq!(made(&transport(&["transport.host=fd00::1"])), (1452, false));
    assert_eq!(made(&transport(&["transport.host=fd00::1", header_only])), (1452, true));
    let with_checksum = "transport.udp={datagram=\"9 kB\", checksum=true, authenticate=\"header\"}";
    assert_eq!(made(&transport(&[with_checksum])), (9000, true));
    assert_eq!(transport(&["transport.host=fd00::1"]).multicast_interface(), None);
    assert_eq!(transport(&["transport.udp.interface=127.0.0.2"]).multicast_interface(), Some([127, 0, 0, 2].into()));
    assert!(!transport(&[]).has_datagrams());
    for key in ["event_request", "event_reply", "roi_request", "roi_reply", "collected", "clear"] {
        assert!(transport(&[&format!("transport.{key}=udp")]).has_datagrams(), "{key}");
    }
}

#[test]
fn each_type_of_message_has_a_carrier() {
    let transport = |overrides: &[&str]| parsed(BUILDER, overrides).transport;
    let plain = transport(&["transport.connections=shm"]);
    assert!(MessageType::ALL.into_iter().all(|of| plain.way(of) == Way::Shm) && plain.has_shared_memory());
    let chosen = transport(&["transport.event_reply=udp", "transport.filter=shm", "transport.clear=multicast"]);
    let way = |of| chosen.way(of);
    assert_eq!([MessageType::EventReply, MessageType::Pushed].map(way), [Way::Udp; 2]);
    assert_eq!([MessageType::Clear, MessageType::Push].map(way), [Way::Multicast; 2]);
    assert_eq!([MessageType::Filter, MessageType::EventRequest].map(way), [Way::Shm, Way::Tcp]);
    assert!(chosen.has_multicasts() && chosen.has_shared_memory() && !chosen.shares_fragments());
    assert!(transport(&["transport.roi_reply=shm"]).shares_fragments());
    let udp = |of: MessageType| format!("{}=udp", of.key());
    assert!(Partition::parse("p", BUILDER, &[udp(MessageType::Recording)]).is_err());
}

#[test]
fn values_of_keys() {
    let partition = parsed(
        &BUILDER.replacen("name =", "key = \"secret\"\nname =", 1),
        &[
            "run.type=cosmics",
            "run.simulation=true",
            "run.duration=1.5 min",
            "ros.busy_above=0.5",
            "ros.busy_below=12.5%",
            "ros.sub_detector=0x61",
            "ros.fragment={kind=\"list\", sizes=[\"512 B\", \"768 B\"], weights=[1, 3]}",
            "transport.socket_buffer=4MiB",
            "transport.event_reply=udp",
            "transport.clear=multicast",
            "transport.host=10.0.0.1",
            "processes.on_loss={sfi=\"restart\"}",
        ],
    );
    assert_eq!(partition.run.run_type, RunType::Cosmics);
    assert_eq!(partition.run.run_type_word(), 0x8000_0002);
    assert_eq!(partition.run.duration, Some(Interval::from_ms(90_000)));
    assert_eq!(partition.ros.busy_above, Fraction::from_percent(50));
    assert_eq!(partition.ros.busy_below.to_string(), "12.5 %");
    assert_eq!(partition.ros.sub_detector, 0x61);
    let (small, large) = (Size::from_bytes(512), Size::from_bytes(768));
    let distribution = partition.ros.fragment.distribution().unwrap();
    assert_eq!(distribution, SizeDistribution::List(vec![(small, 1), (large, 3)]));
    assert_eq!(distribution.size_max(), large);
    assert_eq!(distribution.size_mean(), Size::from_bytes(704));
    assert_eq!(partition.transport.socket_buffer, Some(Size::from_bytes(4 << 20)));
    assert_eq!(
        (partition.transport.event_reply, partition.transport.event_request),
        (Carrier::Udp, Carrier::Connection)
    );
    assert_eq!(partition.transport.clear, GroupCarrier::Multicast);
    assert_eq!(partition.transport.multicast_interface(), Some([10, 0, 0, 1].into()));
    assert_eq!((partition.transport.datagram_len(), partition.transport.has_checksums()), (1472, false));
    assert_eq!(partition.processes.on_loss.of(Role::Sfi), LossAction::Restart);
    assert_eq!(partition.processes.on_loss.of(Role::Dfm), LossAction::Stop);
    assert!(!format!("{partition:?}").contains("secret\""));
    assert!(partition.to_toml().contains("key = \"secret\""));
    assert!(!partition.without_secrets().to_toml().contains("secret"));
}

#[test]
fn applications_in_the_order_of_the_data() {
    let names = |overrides: &[&str]| -> Vec<String> {
        let applications = parsed(BUILDER, overrides).applications();
        applications.into_iter().map(|application| application.name).collect()
    };
    assert_eq!(names(&[]), ["ros-1", "ros-2", "ros-3", "ros-4", "dfm-1", "sfi-1", "sfi-2"]);
    assert_eq!(
        names(&["level1={}", "l2sv={}", "l2pu.count=2", "ros.count=1", "sfo={}"]),
        ["level1-1", "l2sv-1", "l2pu-1", "l2pu-2", "pros-1", "ros-1", "dfm-1", "sfi-1", "sfi-2", "efd-1", "sfo-1"]
    );
    assert_eq!(names(&["ros.count=1", "ef.count=2"]), ["ros-1", "dfm-1", "sfi-1", "sfi-2", "efd-1", "efd-2"]);
    let last = parsed(BUILDER, &[]).applications().pop().unwrap();
    assert_eq!((last.role, last.index), (Role::Sfi, 1));
}

#[test]
fn the_examples_are_good_and_are_the_templates() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples");
    for entry in TEMPLATES {
        let path = folder.join(format!("{}.toml", entry.name));
        let partition = Partition::load(&path, &[]).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(partition.partition.name, entry.name);
        assert_eq!(fs::read_to_string(&path).unwrap(), entry.text);
        assert_eq!(template(entry.name), Some(entry.text));
        for file in &partition.input.files {
            assert_eq!(Path::new(file).parent().unwrap().file_name().unwrap(), "data");
        }
    }
    assert_eq!(template("nothing"), None);
}

#[test]
fn the_examples_describe_what_they_say() {
    let quickstart = parsed(template("quickstart").unwrap(), &[]);
    assert_eq!((quickstart.ros.count, quickstart.sfi.count), (8, 2));
    assert_eq!(quickstart.applications().len(), 1 + 1 + 2 + 1 + 8 + 1 + 2 + 1 + 1);
    assert_eq!(quickstart.level1.unwrap().source, Level1Source::Sample);

    let builder = parsed(template("event-builder").unwrap(), &[]);
    assert_eq!(builder.ros.fragment.distribution(), Some(SizeDistribution::Fixed(Size::from_bytes(9000))));
    assert_eq!(builder.applications().len(), 4 + 1 + 2);

    let full_size = parsed(template("full-size").unwrap(), &[]);
    assert_eq!(full_size.ros.count * full_size.ros.robs, 1600);
    assert_eq!(full_size.applications().len(), 160 + 1 + 100);

    let replay = parsed(template("replay").unwrap(), &[]);
    assert_eq!(replay.sfo.unwrap().dialect, Dialect::Input);
    assert_eq!(replay.dfm.clear_after, ClearAfter::Built);
}

#[test]
fn paths_start_from_the_file_or_for_overrides_from_the_working_directory() {
    let folder = TempDir::new("paths");
    let file = folder.join("p.toml");
    fs::write(&file, format!("{BUILDER}[input]\nfiles = [\"data/a.raw\", \"/b.raw\"]\n")).unwrap();
    let loaded = Partition::load(&file, &[]).unwrap();
    assert_eq!(loaded.input.files, [folder.join("data/a.raw").to_str().unwrap(), "/b.raw"]);
    let again = Partition::parse("p.toml", &loaded.to_toml(), &[]).unwrap();
    assert_eq!(again, loaded);

    let overridden = Partition::load(&file, &["input.files=[\"c.raw\"]".to_owned()]).unwrap();
    let here = std::env::current_dir().unwrap().join("c.raw");
    assert_eq!(overridden.input.files, [here.to_str().unwrap()]);
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(parsed(&text, &[]).input.files, ["data/a.raw", "/b.raw"]);
}

#[test]
fn the_keys_of_a_further_file_come_in_the_place_of_those_that_were_there() {
    let folder = TempDir::new("parts");
    fs::create_dir(folder.join("site")).unwrap();
    let (file, part) = (folder.join("p.toml"), folder.join("site/part.toml"));
    let text = "partition.name = \"p\"\n[input]\nfiles = [\"a.raw\"]\n[ros]\ncount = 1\n\
                [sfi]\ncount = 2\nevents = 50\n[processes]\ncores = { ros = [0], sfi = [1] }\n";
    fs::write(&file, text).unwrap();
    fs::write(&part, "sfi.count = 3\ninput.files = [\"b.raw\"]\nprocesses.cores = { dfm = [1] }\n").unwrap();
    let at_part = format!("@{}", part.display());
    let loaded = Partition::load(&file, &[at_part.clone(), "sfi.events=70".to_owned()]).unwrap();
    assert_eq!((loaded.sfi.count, loaded.sfi.events), (3, 70));
    let in_its_folder = folder.join("site/b.raw");
    assert_eq!(loaded.input.files, [in_its_folder.to_str().unwrap()]);
    let cores = loaded.processes.cores;
    assert_eq!((cores.of(Role::Dfm, 0), cores.of(Role::Ros, 0)), (Some(1), None), "a value is replaced as a whole");

    fs::write(&part, "sfi.cuont = 3\n").unwrap();
    let error = Partition::load(&file, std::slice::from_ref(&at_part)).unwrap_err().to_string();
    assert!(error.starts_with(&format!("{}:1:5: sfi.cuont: ", part.display())), "{error}");
    fs::remove_file(&part).unwrap();
    let error = Partition::load(&file, &[at_part]).unwrap_err().to_string();
    assert_eq!(error, format!("{}: cannot open: No such file or directory (os error 2)", part.display()));
}

#[test]
fn deep_and_wide_texts_are_answered() {
    let refused = |text: &str, overrides: &[String]| Partition::parse("p.toml", text, overrides).unwrap_err();
    let units = ["a.", "[", "{a=", "a=["];
    for (unit, count) in units.into_iter().flat_map(|unit| [(unit, 50), (unit, 5_000), (unit, 500_000)]) {
        let text = unit.repeat(count);
        refused(&format!("{text}a = 1"), &[]);
        refused(&format!("[{text}a]"), &[]);
        refused(&format!("a = {text}"), &[]);
        refused("", &[format!("{text}a=1"), format!("a={text}")]);
    }
}

#[test]
fn files_that_are_none() {
    let folder = TempDir::new("none");
    let refused = |path: &Path| Partition::load(path, &[]).unwrap_err().to_string();
    let absent = folder.join("absent.toml");
    assert_eq!(refused(&absent), format!("{}: cannot open: No such file or directory (os error 2)", absent.display()));
    let large = folder.join("large.toml");
    fs::write(&large, vec![b'#'; (1 << 20) + 1]).unwrap();
    let expected = "expected a configuration, found a file larger than 1048576 bytes";
    assert_eq!(refused(&large), format!("{}: {expected}", large.display()));
    let foreign = folder.join("foreign.toml");
    fs::write(&foreign, [0xff, 0xfe]).unwrap();
    let expected = "1:1: expected text in UTF-8, found the byte 0xff";
    assert_eq!(refused(&foreign), format!("{}:{expected}", foreign.display()));
}

/// Some of the keys, with values that are good together in any selection.
fn good_overrides() -> impl Strategy<Value = Vec<String>> {
    let keys = (
        (any::<u32>(), any::<u64>(), 1_u32..1000, 1_u64..1 << 62),
        (500_u64..60_000, 1_u32..200, select(vec!["fixed", "poisson"])),
        select(vec!["physics", "calibration", "cosmics", "test"]),
        select(vec!["spin", "yield", "park"]),
        "[a-z\"\\\\é\n ]{0,8}",
    );
    keys.prop_flat_map(|((word, long, count, ns), (bytes, part, spacing), run_type, idle, text)| {
        let all = vec![
            format!("run.number={word}"),
            format!("run.seed={long}"),
            format!("run.events={long}"),
            format!("run.duration={}", Interval::from_ns(ns)),
            format!("run.type={run_type}"),
            format!("run.first_lvl1_id={word}"),
            format!("input.files=[{}]", toml::Value::String(format!("x{text}"))),
            format!("level1.spacing={spacing}"),
            format!("level1.rate={count} Hz"),
            format!("ros.count={count}"),
            format!("ros.page_size={}", Size::from_bytes(bytes + 1000)),
            format!("ros.busy_below={}", f64::from(part) / 1000.0),
            format!("dfm.clear_age={} ns", ns),
            format!("sfi.events={}", count + 32),
            format!("sfo.max_file_events={word}"),
            format!("ef.accept={}", f64::from(part) / 777.0),
            format!("transport.idle={idle}"),
            format!("transport.udp.datagram={}", Size::from_bytes(256 + bytes % 60_000)),
            format!("transport.udp.interface=10.0.0.{}", part % 256),
        ];
        let len = all.len();
        (Just(all), 0..=len).prop_flat_map(|(all, len)| subsequence(all, len))
    })
}

proptest! {
    #[test]
    fn what_is_written_reads_back(overrides in good_overrides()) {
        let partition = Partition::parse("p.toml", BUILDER, &overrides).unwrap();
        let again = Partition::parse("again.toml", &partition.to_toml(), &[]).unwrap();
        prop_assert_eq!(again, partition);
    }

    #[test]
    fn any_text_and_override_is_answered(text in any::<String>(), key in "[a-z.=\\[\\]{}\"]{0,20}", value in any::<String>()) {
        let _ = Partition::parse("p.toml", &text, &[text.clone(), format!("{key}={value}")]);
        let _ = Partition::parse("p.toml", &format!("{BUILDER}{key} = {value}"), &[]);
    }
}
