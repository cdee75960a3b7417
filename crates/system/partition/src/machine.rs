//! Whether this machine can run a partition: files, processor cores, memory and disk, which a text alone does not tell.

mod disk;
mod place;

use std::fs;
use std::path::{Path, PathBuf};

use base::ids::Role;
use configuration::{Cores, Launcher, Level1Source, Partition, Places, Problem, RosInput, Scheduling};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use storage::FileReader;
use transport::scheduler::allowed_cpus;
use transport::scheduling::real_time_is_allowed;

use crate::human::si;
use crate::run_number::is_free;

/// What this machine lacks, and what is worth knowing before a run.
#[derive(Debug, Default)]
pub struct Findings {
    /// The run cannot be made.
    pub errors: Vec<Problem>,
    /// It can, perhaps not as it was meant.
    pub warnings: Vec<Problem>,
}

/// Judges a partition whose text is right; `processes` if each application is to have a process of its own.
pub fn judge(partition: &Partition, places: &Places, processes: bool) -> Findings {
    let mut judge = Judge { partition, places, findings: Findings::default() };
    judge.input();
    judge.programs();
    judge.cores();
    // Other machines have memory of their own.
    if partition.host.is_empty() {
        judge.scheduling();
        judge.memory(processes);
    }
    if partition.sfo.is_some() && judge.directory() {
        judge.room();
    }
    if processes {
        judge.network();
        judge.played();
    } else {
        judge.without_processes();
    }
    judge.findings
}

/// What keeps a run from having the number that it must have; a run itself finds out when it takes that.
pub fn number_taken(partition: &Partition, places: &Places) -> Option<Problem> {
    let replayed = partition.input.files.first().filter(|_| partition.ros.input == RosInput::Replay);
    // One that cannot be read is said where files are looked at.
    let replayed = replayed.and_then(|file| Some(FileReader::open(Path::new(file)).ok()?.header().run.run_number));
    let taken = is_free(partition, replayed).err()?;
    Some(places.problem(&["run.number", "output.directory"], taken.to_string()))
}

struct Judge<'a> {
    partition: &'a Partition,
    places: &'a Places,
    findings: Findings,
}

impl Judge<'_> {
    fn input(&mut self) {
        let input = &self.partition.input;
        if self.partition.ros.input != RosInput::Emulator {
            for (index, file) in input.files.iter().enumerate() {
                self.file(&[&format!("input.files.{index}"), "input.files"], file);
            }
        }
        if let Some(detector) = &input.detector {
            self.file(&["input.detector"], detector);
        }
        let triggers = self.partition.level1.as_ref().filter(|level1| level1.source == Level1Source::File);
        if let Some(file) = triggers.and_then(|level1| level1.file.as_ref()) {
            self.file(&["level1.file"], file);
        }
    }

    /// What the processing tasks run.
    fn programs(&mut self) {
        let Some(pt) = &self.partition.pt else { return };
        if let Some(program) = pt.command.first() {
            self.program("pt.command", program);
        } else if let Some(class) = pt.python_class() {
            self.program("pt.python", &pt.python);
            // A module is looked up by Python itself.
            let file = class.rsplit_once(':').map_or(class, |(file, _)| file);
            if Path::new(file).extension().is_some_and(|suffix| suffix == "py") {
                self.file(&["pt.algorithm"], file);
            }
        }
    }

    fn file(&mut self, keys: &[&str], path: &str) {
        let found = match fs::metadata(path) {
            Ok(about) if about.is_dir() => "a folder".to_owned(),
            Ok(_) => match accessat(CWD, path, Access::READ_OK, AtFlags::EACCESS) {
                Ok(()) => return,
                Err(errno) => std::io::Error::from(errno).to_string(),
            },
            Err(error) => error.to_string(),
        };
        self.error(keys, format!("expected a file that can be read, found {path}: {found}"));
    }

    fn program(&mut self, key: &str, program: &str) {
        let candidates: Vec<PathBuf> = if program.contains('/') {
            vec![program.into()]
        } else {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).map(|folder| folder.join(program)).collect()
        };
        let runs =
            |path: &PathBuf| path.is_file() && accessat(CWD, path.as_path(), Access::EXEC_OK, AtFlags::EACCESS).is_ok();
        if !candidates.iter().any(runs) {
            let place = if program.contains('/') { "" } else { " on PATH" };
            self.error(&[key], format!("expected a program, found none called {program}{place}"));
        }
    }

    /// Cores of this machine; what others have is known to them alone.
    fn cores(&mut self) {
        let partition = self.partition;
        let of_all = &partition.processes.cores;
        if partition.host.is_empty() {
            self.cores_here("processes.cores", "", of_all);
        }
        for (place, host) in partition.host.iter().enumerate().filter(|(_, host)| host.launcher == Launcher::Local) {
            let cores = host.cores.as_ref().unwrap_or(of_all);
            self.cores_here(&partition.key_of_cores(Some(place)), &partition.whose(Some(place)), cores);
        }
    }

    fn cores_here(&mut self, key: &str, whose: &str, cores: &Cores) {
        let allowed = allowed_cpus();
        let absent = cores.all().find(|core| !allowed.contains(&(*core as usize)));
        if let (Some(core), false) = (absent, allowed.is_empty()) {
            let message = format!("{whose}expected some of the cores {}, found {core}", ranges(&allowed));
            self.error(&[key, "host"], message);
        }
    }

    fn scheduling(&mut self) {
        let wanted = self.partition.processes.scheduling == Scheduling::RealTime;
        if let (true, Err(error)) = (wanted, real_time_is_allowed()) {
            let message = format!("real time is not allowed here: {error}; it needs CAP_SYS_NICE or ulimit -r");
            self.error(&["processes.scheduling"], message);
        }
    }

    /// Memory that the configuration reserves by keys of its own.
    fn memory(&mut self, processes: bool) {
        let Some(there) = memory_bytes() else { return };
        let Partition { ros, sfi, transport, .. } = self.partition;
        let times = |factors: &[u64]| factors.iter().fold(1_u64, |product, factor| product.saturating_mul(*factor));
        let events = [sfi.count, sfi.events].map(u64::from);
        let applications = self.partition.applications().len() as u64;
        let wanted = [
            (
                "ros.pages",
                "ros.count × ros.robs × ros.pages × ros.page_size",
                times(&[ros.count.into(), ros.robs.into(), ros.pages.into(), ros.page_size.bytes()]),
                true,
            ),
            (
                "sfi.events",
                "sfi.count × sfi.events × sfi.max_event_size",
                times(&[events[0], events[1], sfi.max_event_size.bytes()]),
                processes,
            ),
            (
                "transport.pages",
                "transport.pages × transport.page_size of each process",
                times(&[applications, transport.pages.into(), transport.page_size.bytes()]),
                processes,
            ),
        ];
        for (key, product, bytes, counts) in wanted {
            if counts && bytes > there {
                let message = format!(
                    "expected at most the memory of this machine, {}, found {}: {product}",
                    si(there as f64, "B"),
                    si(bytes as f64, "B")
                );
                self.error(&[key, key.split('.').next().unwrap_or(key)], message);
            }
        }
    }

    /// Whether files can be written to the output directory, which a run makes if it is not there.
    fn directory(&mut self) -> bool {
        let directory = &self.partition.output.directory;
        let Err(cause) = place::can_be_written(Path::new(directory)) else { return true };
        self.error(&["output.directory"], format!("expected a directory that can be written to: {cause}"));
        false
    }

    /// Whether the disk has room for what the run may record.
    fn room(&mut self) {
        let directory = &self.partition.output.directory;
        let Some(free) = place::free_bytes(Path::new(directory)) else { return };
        let place = format!("the {} that are free in {directory}", si(free as f64, "B"));
        if let Some((keys, said)) = disk::warning(self.partition, free, &place) {
            self.findings.warnings.push(self.places.problem(keys, said));
        }
    }

    /// Whether others may reach what travels between applications.
    fn network(&mut self) {
        if let Some((key, said)) = unencrypted(self.partition) {
            self.findings.warnings.push(self.places.problem(&[key], said));
        }
    }

    /// Sources that begin anew with their read-out system are behind the run.
    fn played(&mut self) {
        let Some(place) = self.partition.source.iter().position(|source| source.played().is_some()) else { return };
        if assembly::returns(Role::Ros, self.partition) {
            let said = "a read-out system that returns begins anew what it plays, and all of that is late: expected \
                        processes.on_loss.ros = \"stop\"";
            let keys = ["processes.on_loss", &format!("source.{place}.play")];
            self.findings.warnings.push(self.places.problem(&keys, said.to_owned()));
        }
    }

    /// Keys that only applications in processes of their own look at: one warning for those of a table.
    fn without_processes(&mut self) {
        // The programs of detectors prove the key, too.
        let has_links = self.partition.ros.input == RosInput::Links;
        let of_processes = |key: &str| {
            let transport = key.strip_prefix("transport.").is_some_and(|key| !OF_EVERY_RUN.contains(&key));
            transport || key.starts_with("processes.") || key == "ros.ports" || (key == "partition.key" && !has_links)
        };
        for table in ["partition", "ros", "transport", "processes"] {
            let keys: Vec<String> = self.places.given_in(table).into_iter().filter(|key| of_processes(key)).collect();
            let Some((first, others)) = keys.split_first() else { continue };
            let nor = if others.is_empty() { String::new() } else { format!(", nor have {}", others.join(", ")) };
            let problem = self.places.problem(&[first], format!("has no effect without --processes{nor}"));
            self.findings.warnings.push(problem);
        }
    }

    fn error(&mut self, keys: &[&str], message: String) {
        self.findings.errors.push(self.places.problem(keys, message));
    }
}

/// What is to be known of addresses that are not of this host alone, and the key that names them.
fn unencrypted(partition: &Partition) -> Option<(&'static str, String)> {
    let host = partition.transport.host;
    let addresses = [host].into_iter().chain(partition.ros.ports.iter().copied());
    let open: Vec<String> =
        addresses.filter(|address| !address.is_loopback()).map(|address| address.to_string()).collect();
    let said = format!(
        "applications prove the key of the run to each other, but nothing that they say through {} is encrypted, run \
         control included: use a network that you trust",
        open.join(", ")
    );
    (!open.is_empty()).then_some((if host.is_loopback() { "ros.ports" } else { "transport.host" }, said))
}

/// Memory of this machine, or of the container that it is; `None` where the kernel does not say.
fn memory_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let kib = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches(':').trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()
    };
    let machine = (kib("MemTotal")? + kib("SwapTotal").unwrap_or(0)) << 10;
    let container = fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse().ok());
    Some(container.map_or(machine, |limit: u64| limit.min(machine)))
}

/// `0 to 3, 8`, of numbers in rising order.
fn ranges(numbers: &[usize]) -> String {
    let words = numbers.chunk_by(|a, b| a + 1 == *b).map(|range| match range {
        [first, .., last] => format!("{first} to {last}"),
        [only] => only.to_string(),
        [] => String::new(),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Keys of `[transport]` that do no harm in one process: sizes, and what its scheduler does.
const OF_EVERY_RUN: [&str; 4] = ["page_size", "pages", "copy_below", "idle"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_listed_in_ranges() {
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0 to 2, 5, 7 to 8");
        assert_eq!(ranges(&[3]), "3");
    }

    #[test]
    fn a_network_that_others_may_reach_is_warned_of() {
        let warning = |overrides: &[&str]| {
            let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
            let text = "partition.name = \"p\"\nros.count = 1\nsfi.count = 1\n";
            unencrypted(&Partition::parse("p", text, &overrides).unwrap())
        };
        assert_eq!(warning(&[]), None);
        assert_eq!(warning(&["ros.ports=[\"127.0.0.2\"]", "transport.host=127.0.0.3"]), None);
        let (key, said) = warning(&["transport.host=0.0.0.0"]).unwrap();
        assert!(key == "transport.host" && said.contains("0.0.0.0"), "{said}");
        assert_eq!(warning(&["ros.ports=[\"10.0.0.1\"]"]).unwrap().0, "ros.ports");
    }

    #[test]
    fn this_machine_has_memory() {
        assert!(memory_bytes().is_some_and(|bytes| bytes > 1 << 26));
    }
}
