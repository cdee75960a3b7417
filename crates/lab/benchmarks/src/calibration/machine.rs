//! What the machine takes to wake a process and to put another one on a core.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use nix::sys::resource::UsageWho;
use transport::clock;
use transport::scheduler::{allowed_cpus, pin_to_cpu};

use super::distance::line_ns;
use crate::bench::loopback;
use partition::cpu::cpu_seconds;

/// Times between processes, in ns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Machine {
    /// From a write until what was written can be read by one that looks all the time.
    pub(super) latency: f64,
    /// From then until one that sleeps runs.
    pub(super) wake: f64,
    /// Processor time of falling asleep and waking up.
    pub(super) sleep: f64,
    /// Processor time of another thread on a core.
    pub(super) switch: f64,
    /// What a message to another core costs more, sender and receiver together.
    pub(super) far: f64,
    /// The same of each kibibyte.
    pub(super) far_kib: f64,
    /// How far two cores are from each other.
    pub(super) line: f64,
    pub(super) cores: usize,
}

impl Machine {
    /// Each time by itself the median of several measurements; `None` of none.
    pub(super) fn median_of(all: &[&Self]) -> Option<Self> {
        let first = **all.first()?;
        let of = |time: fn(&Self) -> f64| {
            let mut times: Vec<f64> = all.iter().map(|one| time(one)).collect();
            let middle = times.len() / 2;
            *times.select_nth_unstable_by(middle, f64::total_cmp).1
        };
        Some(Self {
            latency: of(|one| one.latency),
            wake: of(|one| one.wake),
            sleep: of(|one| one.sleep),
            switch: of(|one| one.switch),
            far: of(|one| one.far),
            far_kib: of(|one| one.far_kib),
            line: of(|one| one.line),
            cores: first.cores,
        })
    }

    /// By its name in configurations.
    pub(super) fn time(&self, key: &str) -> Option<f64> {
        Some(match key {
            "latency" => self.latency,
            "wake" => self.wake,
            "sleep" => self.sleep,
            "switch" => self.switch,
            "far" => self.far,
            "far_kib" => self.far_kib,
            _ => return None,
        })
    }

    /// Measures over the loopback interface.
    pub(super) fn measure() -> io::Result<Self> {
        let io_ns = write_and_read_ns(MESSAGE_BYTES)?;
        let (small, large) = (crossing_ns(MESSAGE_BYTES)?, crossing_ns(LARGE_BYTES)?);
        let looking = exchange(true)?;
        let sleeping = exchange(false)?;
        let line = line_ns();
        Ok(Self {
            latency: (looking.one_way_ns - io_ns - small).max(0.0),
            wake: (sleeping.one_way_ns - looking.one_way_ns).max(0.0),
            sleep: (sleeping.cpu_ns - io_ns).max(0.0),
            switch: switch_ns()?,
            // Neither side can do without the lines that say how much there is.
            far: small.max(line),
            far_kib: (large - small).max(0.0) * 1024.0 / (LARGE_BYTES - MESSAGE_BYTES) as f64,
            line,
            cores: thread::available_parallelism().map_or(1, usize::from),
        })
    }
}

struct Exchange {
    /// A lower quartile: on a machine that is shared, the upper half is the others'.
    one_way_ns: f64,
    /// Processor time of one side for a message there and one back.
    cpu_ns: f64,
}

/// Messages there and back between two threads, on two cores if there are two. They look for them all the time or sleep
/// until they come.
fn exchange(look: bool) -> io::Result<Exchange> {
    thread::scope(|scope| scope.spawn(|| exchange_here(look)).join().expect("one side does not panic"))
}

fn exchange_here(look: bool) -> io::Result<Exchange> {
    let cores = allowed_cpus();
    // Where threads may not be bound, the kernel places them.
    let bind = |core: Option<usize>| core.map(pin_to_cpu);
    let _ = bind(cores.first().copied());
    let (mut here, mut there) = pair()?;
    for stream in [&here, &there] {
        stream.set_nonblocking(look)?;
        stream.set_read_timeout((!look).then_some(PATIENCE))?;
    }
    let answers = thread::spawn(move || -> io::Result<()> {
        let _ = bind(cores.last().copied());
        let mut message = [0; MESSAGE_BYTES];
        for _ in 0..ROUNDS {
            receive(&mut there, &mut message)?;
            there.write_all(&message)?;
        }
        Ok(())
    });
    let mut message = [0; MESSAGE_BYTES];
    let mut rounds = Vec::with_capacity(ROUNDS);
    let cpu_before = cpu_seconds(UsageWho::RUSAGE_THREAD);
    for _ in 0..ROUNDS {
        let began = clock::now();
        here.write_all(&message)?;
        receive(&mut here, &mut message)?;
        rounds.push(clock::now().since(began).as_nanos() as f64);
    }
    let cpu_ns = (cpu_seconds(UsageWho::RUSAGE_THREAD) - cpu_before) / ROUNDS as f64 * 1e9;
    answers.join().expect("the other side does not panic")?;
    Ok(Exchange { one_way_ns: lower_quartile(&mut rounds) / 2.0, cpu_ns })
}

/// A whole message, for which a socket that does not block is asked again and again. Returns how long it took to take it in, in ns.
fn receive(stream: &mut TcpStream, message: &mut [u8]) -> io::Result<u64> {
    let mut filled = 0;
    let mut tries: u64 = 0;
    let mut taken_ns = 0;
    while filled < message.len() {
        let began = clock::now();
        match stream.read(&mut message[filled..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                filled += count;
                taken_ns += clock::now().since(began).as_nanos() as u64;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock && tries < TRIES_MAX => tries += 1,
            Err(error) => return Err(error),
        }
    }
    Ok(taken_ns)
}

/// A write and the read of what was written, in one thread.
fn write_and_read_ns(bytes: usize) -> io::Result<f64> {
    let (mut here, mut there) = pair()?;
    let mut message = vec![0; bytes];
    let mut rounds = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let began = clock::now();
        here.write_all(&message)?;
        there.read_exact(&mut message)?;
        rounds.push(clock::now().since(began).as_nanos() as f64);
    }
    Ok(lower_quartile(&mut rounds))
}

/// How much longer a write and the read of what was written take if the reader is on another core; 0 with one core.
fn crossing_ns(bytes: usize) -> io::Result<f64> {
    let [one, other, ..] = allowed_cpus()[..] else { return Ok(0.0) };
    let (mut here, mut there) = pair()?;
    for stream in [&here, &there] {
        stream.set_nonblocking(true)?;
    }
    let side = |core: usize, stream: &mut TcpStream, begins: bool| -> io::Result<f64> {
        // Where threads may not be bound, the kernel mostly keeps them apart.
        let _ = pin_to_cpu(core);
        let mut message = vec![0; bytes];
        let mut rounds = Vec::with_capacity(ROUNDS);
        for round in 0..ROUNDS {
            let mut taken_ns = 0;
            if begins || round > 0 {
                let began = clock::now();
                write_all(stream, &message)?;
                taken_ns += clock::now().since(began).as_nanos() as u64;
            }
            taken_ns += receive(stream, &mut message)?;
            rounds.push(taken_ns as f64);
        }
        if !begins {
            write_all(stream, &message)?;
        }
        Ok(lower_quartile(&mut rounds))
    };
    let far = thread::scope(|scope| {
        let answers = scope.spawn(|| side(other, &mut there, false));
        let asks = scope.spawn(|| side(one, &mut here, true));
        [answers, asks].map(|thread| thread.join().expect("sides do not panic"))
    });
    let far = far.into_iter().collect::<io::Result<Vec<f64>>>()?;
    let far_ns = far.iter().sum::<f64>() / far.len() as f64;
    Ok((far_ns - write_and_read_ns(bytes)?).max(0.0))
}

/// Writes all, to a socket that does not block.
fn write_all(stream: &mut TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    let mut tries: u64 = 0;
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::WouldBlock && tries < TRIES_MAX => tries += 1,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Two threads on one core that give way to each other: processor time of each turn.
fn switch_ns() -> io::Result<f64> {
    let turns = || -> Result<f64, transport::error::OsError> {
        // Elsewhere, where threads may not be bound, they stay apart and the time is that of giving way alone.
        let _ = pin_to_cpu(0);
        let before = cpu_seconds(UsageWho::RUSAGE_THREAD);
        (0..TURNS).for_each(|_| thread::yield_now());
        Ok((cpu_seconds(UsageWho::RUSAGE_THREAD) - before) / f64::from(TURNS) * 1e9)
    };
    let other = thread::spawn(turns);
    let one = thread::spawn(turns);
    let times = [one, other].map(|thread| thread.join().expect("giving way does not panic"));
    let times = times.into_iter().collect::<Result<Vec<f64>, _>>().map_err(io::Error::other)?;
    Ok(times.iter().sum::<f64>() / times.len() as f64)
}

fn pair() -> io::Result<(TcpStream, TcpStream)> {
    let (listener, address) = loopback::listen()?;
    let here = loopback::connect(address)?;
    let (there, _) = listener.accept()?;
    here.set_nodelay(true)?;
    there.set_nodelay(true)?;
    Ok((here, there))
}

fn lower_quartile(all: &mut [f64]) -> f64 {
    let place = all.len() / 4;
    *all.select_nth_unstable_by(place, f64::total_cmp).1
}

const ROUNDS: usize = 1_000;
const TURNS: u32 = 10_000;
const MESSAGE_BYTES: usize = 64;
const LARGE_BYTES: usize = 16 << 10;
/// For an answer that does not come; a busy machine takes seconds.
const PATIENCE: Duration = Duration::from_secs(300);
const TRIES_MAX: u64 = 20_000_000;
