//! `weir study daq1999`: the figures of DAQ1999, from traces of partitions that run.

mod activity;
mod ebif;
mod figure;
mod live;
mod report;
mod rob;
mod sequence;
mod sfi;
mod sfo;
mod stamping;
mod times;
mod trg;

use base::ids::Role;
use partition::human::percent;
use transport::scheduler::allowed_cpus;

use super::error::StudyError;
use super::os1998::{about_machine, idle_name};
use super::others::Others;
use super::results;
use crate::arguments::StudyArgs;
use crate::plot::Plot;
use activity::Activity;
use figure::{Conclusion, Figure};
use live::{Live, Setup};
use stamping::{Between, Stamping};

/// Runs all, and draws what their traces say.
pub(super) fn study(args: &StudyArgs) -> Result<(), StudyError> {
    let mut live = Live::new(args.config.as_ref())?;
    let setups =
        [&CRATE_BYTES.map(of_crate)[..], &[of_rob(), of_sub_farm(), of_builder()], &SOURCES.map(of_sources)].concat();
    for setup in &setups {
        live.partition(&setup.keys, setup.without)?;
    }
    results::prepare(args)?;
    let (machine, others) = (about_machine(), Others::watch());
    let stamping = Stamping::measure()?;
    let (figures, whole) = figures(&mut live, &stamping)?;
    let idle = idle_name(live.idle()?);
    let configuration = live.name();
    let subject = report::Subject {
        machine: &machine,
        others: others.remark(),
        configuration: &configuration,
        idle,
        cores: allowed_cpus().len().max(1),
    };
    let text = report::report(&subject, &live.runs, &figures, &whole);
    let plots: Vec<Plot> = figures.into_iter().flat_map(|figure| figure.plots).collect();
    results::write(args, "daq1999", &text, &plots)
}

/// In the order of the paper, and what it concludes from all of them. Traces are large: each is let go as soon as it can be.
fn figures(live: &mut Live, stamping: &Stamping) -> Result<(Vec<Figure>, Conclusion), StudyError> {
    let mut figures = Vec::new();
    let (four, whole) = crate_pairs(live, stamping, &mut figures)?;
    let traces = live.run(&of_rob())?;
    figures.extend(trg::figures(&four, &live.activity(&traces, "trg-1")?)?);
    drop(four);
    figures.extend(rob::figures(&live.activity(&traces, "ros-1")?)?);
    drop(traces);
    let traces = live.run(&of_sub_farm())?;
    figures.extend(sfo::figures(&live.activity(&traces, "sfo-1")?)?);
    let with = live.activity(&traces, "sfi-1")?;
    drop(traces);
    let traces = live.run(&of_builder())?;
    figures.extend(sfi::figures(&with, &live.activity(&traces, "sfi-1")?)?);
    drop((with, traces));
    let mut sources = Vec::new();
    for count in SOURCES {
        let traces = live.run(&of_sources(count))?;
        sources.push((count, sfi::located(&live.activity(&traces, "sfi-1")?, count)?));
    }
    figures.push(sfi::locating(&sources));
    figures.sort_by_key(|figure| figure.number);
    Ok((figures, whole))
}

/// Figures of stamps, scheduler and EBIF; what the TRG did, and what all IOMs of a pair say together.
fn crate_pairs(
    live: &mut Live,
    stamping: &Stamping,
    figures: &mut Vec<Figure>,
) -> Result<(Activity, Conclusion), StudyError> {
    let (mut ebifs, mut between, mut moving) = (Vec::new(), Vec::new(), Moving::default());
    let mut trg = None;
    for bytes in CRATE_BYTES {
        let traces = live.run(&of_crate(bytes))?;
        let ebif = live.activity(&traces, "ebif-1")?;
        if bytes == CRATE_BYTES[1] {
            between.push(Between::of("ebif-1", &ebif)?);
            moving.add("ebif-1", &ebif);
            for name in IOMS {
                let activity = live.activity(&traces, name)?;
                between.push(Between::of(name, &activity)?);
                moving.add(name, &activity);
                trg = trg.or(Some(activity));
            }
        }
        ebifs.push((bytes, ebif));
    }
    figures.extend(stamping.figures(&between));
    figures.extend(ebif::figures(&ebifs)?);
    Ok((trg.expect("it is the first of the IOMs"), moving.conclusion()))
}

/// What part of its Action functions each IOM spends on moving bytes.
#[derive(Default)]
struct Moving(Vec<(&'static str, f64)>);

impl Moving {
    fn add(&mut self, iom: &'static str, activity: &Activity) {
        let reading = activity.total_ns("read") - activity.total_ns("decode");
        let moving = reading.max(0.0) + activity.total_ns("write connections");
        self.0.push((iom, moving / activity.actions_ns().max(1.0)));
    }

    fn conclusion(mut self) -> Conclusion {
        self.0.sort_by(|(_, one), (_, other)| one.total_cmp(other));
        let (least, most) = (self.0[0], self.0[self.0.len() - 1]);
        Conclusion {
            of_the_paper: "Input and output dominate all IOMs; processing is no bottleneck.",
            holds: Some(least.1 > DOMINATES),
            because: format!(
                "reading and writing connections have {} ({}) to {} ({}) of the Action functions of an IOM. The frames written \
                 inside `encode` are left out. It holds if each IOM has more than {}",
                percent(least.1),
                least.0,
                percent(most.1),
                most.0,
                percent(DOMINATES)
            ),
        }
    }
}

fn of_crate(bytes: u32) -> Setup {
    Setup {
        name: format!("crate pair, {ROBS} × {bytes} B"),
        keys: [one_crate(ROBS), vec![format!("ros.fragment={{kind=\"fixed\",size=\"{bytes} B\"}}")]].concat(),
        without: &[],
        in_children: |_| true,
    }
}

/// With the lengths of fragments of the paper's ROB.
fn of_rob() -> Setup {
    let fragment = "ros.fragment={kind=\"list\",sizes=[\"512 B\",\"768 B\"],weights=[1,3]}";
    let keys = [one_crate(FEW_ROBS), vec![fragment.to_owned()]].concat();
    Setup { name: format!("crate pair, {FEW_ROBS} ROBs"), keys, without: &[], in_children: |_| true }
}

/// A crate of so many ROBs, which are told of groups of L2Rs as in the paper.
fn one_crate(robs: u32) -> Vec<String> {
    vec![
        format!("ros.count={robs}"),
        "roc.count=1".to_owned(),
        format!("roc.ros={robs}"),
        format!("roc.clear_group={GROUP}"),
    ]
}

/// Two crates of one ROB each, all of whose events are built.
fn of_sub_farm() -> Setup {
    let keys = crates(2);
    Setup { name: "sub-farm, 2 crates".to_owned(), keys, without: &["l2sv", "l2pu"], in_children: |_| true }
}

fn of_builder() -> Setup {
    Setup {
        name: "the same without event handler".to_owned(),
        keys: unrecorded(2),
        without: WITHOUT_FILTER,
        ..of_sub_farm()
    }
}

fn of_sources(count: u32) -> Setup {
    Setup {
        name: format!("SFI, crates: {count}"),
        keys: unrecorded(count),
        without: WITHOUT_FILTER,
        in_children: |role| role == Role::Sfi,
    }
}

fn crates(count: u32) -> Vec<String> {
    vec![
        format!("ros.count={count}"),
        format!("roc.count={count}"),
        "roc.ros=1".to_owned(),
        "ros.fragment={kind=\"fixed\",size=\"256 B\"}".to_owned(),
    ]
}

/// Crates whose events are built, and that is all.
fn unrecorded(count: u32) -> Vec<String> {
    [crates(count), vec!["dfm.clear_after=built".to_owned()]].concat()
}

const WITHOUT_FILTER: &[&str] = &["l2sv", "l2pu", "ef", "sfo"];
/// Of a crate, as in the paper; what depends on it is compared with that of a crate of few.
const ROBS: u32 = 4;
const FEW_ROBS: u32 = 2;
/// L2Rs that a TRG sends at a time, as in the paper.
const GROUP: u32 = 10;
/// Of fragments, as in the paper.
const CRATE_BYTES: [u32; 3] = [512, 768, 2560];
const SOURCES: [u32; 5] = [1, 2, 4, 8, 16];
/// IOMs of a crate pair, besides the EBIF; the TRG is the first one.
const IOMS: [&str; 4] = ["trg-1", "ros-1", "sfi-1", "sfo-1"];
/// More than this part is most of it.
const DOMINATES: f64 = 0.5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_iom_has_to_move_bytes_most_of_the_time() {
        let moving = |trg, sfo| Moving(vec![("sfo-1", sfo), ("trg-1", trg)]).conclusion();
        let (most, all) = (moving(0.2, 0.9), moving(0.6, 0.9));
        assert_eq!((most.holds, all.holds), (Some(false), Some(true)));
        assert!(most.because.contains("20 % (trg-1) to 90 % (sfo-1)"), "{}", most.because);
    }

    #[test]
    fn every_run_is_a_right_configuration() {
        let live = Live::new(None).unwrap();
        let crates = CRATE_BYTES.map(of_crate);
        for setup in crates.iter().chain(&[of_rob(), of_sub_farm(), of_builder()]).chain(&SOURCES.map(of_sources)) {
            let partition = live.partition(&setup.keys, setup.without).unwrap();
            let roc = partition.roc.as_ref().unwrap();
            assert_eq!(partition.ros.count % roc.ros, 0, "{}", setup.name);
        }
        let others = ["ros.count=6", "roc.count=2", "roc.ros=3", "roc.clear_group=7"].map(str::to_owned);
        for (setup, robs) in crates.into_iter().map(|setup| (setup, ROBS)).chain([(of_rob(), FEW_ROBS)]) {
            let partition = live.partition(&[&others[..], &setup.keys].concat(), setup.without).unwrap();
            let roc = partition.roc.as_ref().unwrap();
            let found = (partition.ros.count, roc.count, roc.ros, roc.clear_group);
            assert_eq!(found, (robs, 1, robs, GROUP), "{}, whatever the configuration says", setup.name);
        }
    }
}
