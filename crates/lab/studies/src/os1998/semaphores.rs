//! Lock and unlock in one process, and two processes that take turns [OS1998 Tables 2 and 3].

use std::io;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ::semaphores::{Family, Semaphores};
use rustix::fd::AsFd;
use rustix::process::{Signal, set_parent_process_death_signal};
use transport::clock;

use super::machine::{Class, Load, Machine, Seat, beside};
use crate::arguments::StudyPart;
use crate::error::StudyError;

/// Mean times of one kind of semaphore, in one class.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cycle {
    pub(super) kind: Family,
    pub(super) class: Class,
    /// A lock and an unlock beside each load, in the order of [`Load::ALL`].
    pub(super) lock_unlock_us: [f64; 3],
    /// Until both processes have had their turn.
    pub(super) ping_pong_us: f64,
}

impl Cycle {
    pub(super) fn measure(machine: &Machine, kind: Family, class: Class, each: Duration) -> Result<Self, StudyError> {
        let seat = Seat::new(machine.here, class);
        let mut lock_unlock_us = [0.0; 3];
        for (us, load) in lock_unlock_us.iter_mut().zip(Load::ALL) {
            *us = lock_unlock_us_beside(seat, load, kind, each)?;
        }
        Ok(Self { kind, class, lock_unlock_us, ping_pong_us: ping_pong_us(machine.here, kind, class, each)? })
    }

    /// In tables.
    pub(super) fn name(&self) -> String {
        format!("{}, {}", self.kind, self.class)
    }

    /// As the paper derives it: half of what the ping-pong takes more than twice the lock and unlock without load. None if it takes no more,
    /// as on a machine that others keep busy.
    pub(super) fn context_switch_us(&self) -> Option<f64> {
        Some((self.ping_pong_us - 2.0 * self.lock_unlock_us[0]) / 2.0).filter(|us| *us > 0.0)
    }
}

/// Beside a load in the mean, over a time in which one of the same priority has many turns.
fn lock_unlock_us_beside(seat: Seat, load: Load, kind: Family, each: Duration) -> Result<f64, StudyError> {
    let (lasts, shares) = match load {
        Load::None => (each, SHARES),
        Load::SamePriority => (TURNS_OF_LOAD * each, 1),
        Load::LowerPriority => (each, 1),
    };
    let semaphores = Semaphores::new(kind)?;
    let cycle = || semaphores.unlock(0).and_then(|()| semaphores.lock(0));
    Ok(beside(seat, load, || mean_us(lasts, shares, cycle))??)
}

fn ping_pong_us(core: usize, kind: Family, class: Class, each: Duration) -> Result<f64, StudyError> {
    let semaphores = Semaphores::new(kind)?;
    let partner = Partner::start(&semaphores, kind, class, core).map_err(StudyError::Partner)?;
    let turn = || semaphores.unlock(0).and_then(|()| semaphores.lock(1));
    let measured = beside(Seat::new(core, class), Load::None, || {
        // The first turn waits until the other process is there.
        turn()?;
        mean_us(each, SHARES, turn)
    });
    drop(partner);
    Ok(measured??)
}

/// The best of the means of some shares of the time: without load, others of the machine only ever take time away.
fn mean_us<E>(lasts: Duration, shares: u32, mut cycle: impl FnMut() -> Result<(), E>) -> Result<f64, E> {
    let mut best = f64::INFINITY;
    for _ in 0..shares {
        let began = clock::now();
        let (mut cycles, mut taken) = (0_u32, Duration::ZERO);
        while cycles == 0 || taken < lasts / shares {
            (0..CYCLES).try_for_each(|_| cycle())?;
            cycles += CYCLES;
            taken = clock::now().since(began);
        }
        best = best.min(taken.as_secs_f64() * 1e6 / f64::from(cycles));
    }
    Ok(best)
}

/// The other process; it ends with this.
struct Partner(Child);

impl Partner {
    fn start(semaphores: &Semaphores, kind: Family, class: Class, core: usize) -> io::Result<Self> {
        let memory = semaphores.as_fd().try_clone_to_owned()?;
        let part = StudyPart::Pong { kind: kind.into(), core, real_time: class == Class::RealTime };
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("study-part").args(part.to_arguments()).stdin(Stdio::from(memory)).spawn().map(Self)
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        // Both fail only for a child that has been waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The life of the other process: it takes its turns until it is ended.
pub(crate) fn pong_main(kind: Family, core: usize, real_time: bool) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let memory = rustix::stdio::stdin().try_clone_to_owned()?;
    let semaphores = Semaphores::join(kind, memory).map_err(io::Error::other)?;
    let class = if real_time { Class::RealTime } else { Class::Normal };
    Seat::new(core, class).take().map_err(io::Error::other)?;
    loop {
        semaphores.lock(0).and_then(|()| semaphores.unlock(1)).map_err(io::Error::other)?;
    }
}

const CYCLES: u32 = 100;
const SHARES: u32 = 10;
const TURNS_OF_LOAD: u32 = 2;
