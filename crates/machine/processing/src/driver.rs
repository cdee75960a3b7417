//! The thread that looks after the tasks of an owner.

use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};

use base::time::Time;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use transport::clock;
use transport::waker::Waker;
use trigger::windows::{WINDOWS_BYTES_MAX, WINDOWS_MAX};

use crate::bell::Bell;
use crate::blame::{Guilt, cause, fail, guilt, start_trouble};
use crate::notice::{Notice, NoticeKind};
use crate::options::{TasksError, TasksOptions, last_words};
use crate::protocol::{
    FRAME_BYTES_MAX, Header, MESSAGE_BYTES_MAX, RESULT_BYTES_MAX, Setup, VERSION, cut, take_answer, to_owner,
};
use crate::verdict::{FailReason, Verdict};
use crate::worker::{Ending, Job, Process, Stage};

/// What the thread shares with its owner.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) bell: Bell,
    pub(crate) stop: AtomicBool,
    /// Verdicts that were not taken yet.
    pub(crate) done_waiting: AtomicUsize,
    /// Notices that were not taken yet.
    pub(crate) notices_waiting: AtomicUsize,
    pub(crate) restarts: AtomicU64,
}

/// A decided event.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) ticket: u64,
    pub(crate) slot: u32,
    pub(crate) verdict: Verdict,
}

/// The thread's ends of its channels.
pub(crate) struct Ends {
    pub(crate) jobs: Receiver<Job>,
    pub(crate) done: SyncSender<Done>,
    pub(crate) notices: SyncSender<Notice>,
    /// Told once: that all tasks are ready, or why not.
    pub(crate) started: SyncSender<Result<(), TasksError>>,
}

/// The thread's state.
pub(crate) struct Driver {
    options: TasksOptions,
    slots: OwnedFd,
    slot_bytes: usize,
    shared: Arc<Shared>,
    waker: Waker,
    ends: Ends,
    started: bool,
    tasks: Vec<Task>,
    waiting: VecDeque<Job>,
    frame: Vec<u8>,
    buffer: Vec<u8>,
    lost_notices: u64,
    news: bool,
}

/// One task: a process, or the time when there will be one.
struct Task {
    name: String,
    process: Option<Process>,
    /// Without a process: when it is started.
    restart: Time,
    /// Processes in a row that decided nothing.
    fruitless: u32,
    trouble: String,
}

impl Driver {
    pub(crate) fn new(
        options: TasksOptions,
        slots: OwnedFd,
        slot_bytes: usize,
        shared: Arc<Shared>,
        waker: Waker,
        ends: Ends,
    ) -> Self {
        let task = |number| Task {
            name: format!("{} pt-{}", options.name, number + 1),
            process: None,
            restart: Time::from_ns(0),
            fruitless: 0,
            trouble: String::new(),
        };
        let tasks = (0..options.count).map(task).collect();
        Self {
            options,
            slots,
            slot_bytes,
            shared,
            waker,
            ends,
            started: false,
            tasks,
            waiting: VecDeque::new(),
            frame: Vec::new(),
            buffer: vec![0; FRAME_BYTES_MAX],
            lost_notices: 0,
            news: false,
        }
    }

    /// Runs until the owner says stop, or a task does not start in the first place; all processes are gone then.
    pub(crate) fn run(mut self) {
        loop {
            let now = clock::now();
            if let Err(error) = self.start_tasks(now) {
                self.shut_down();
                let _ = self.ends.started.send(Err(error));
                return;
            }
            self.tell_started();
            for task in &mut self.tasks {
                if let Some(process) = &mut task.process {
                    process.watch(self.options.timeout, now);
                }
            }
            self.take_jobs();
            self.dispatch(now);
            if core::mem::take(&mut self.news) {
                self.waker.wake();
            }
            if self.shared.stop.load(Ordering::Acquire) {
                self.shut_down();
                return;
            }
            let ready = self.sleep(now);
            if let Err(error) = self.serve(&ready) {
                self.shut_down();
                let _ = self.ends.started.send(Err(error));
                return;
            }
        }
    }

    fn tell_started(&mut self) {
        let is_ready = |task: &Task| task.process.as_ref().is_some_and(|process| process.stage == Stage::Ready);
        if !self.started && self.tasks.iter().all(is_ready) {
            self.started = true;
            // The owner waits for it.
            let _ = self.ends.started.send(Ok(()));
        }
    }

    /// Starts processes that are due. Only the very first of a task may fail for good.
    fn start_tasks(&mut self, now: Time) -> Result<(), TasksError> {
        for number in 0..self.tasks.len() {
            let task = &mut self.tasks[number];
            if task.process.is_some() || now < task.restart {
                continue;
            }
            match Process::start(&self.options, &task.name, now) {
                Ok(process) => task.process = Some(process),
                Err(error) if !self.started => return Err(error),
                Err(error) => self.postpone(number, error.to_string(), now),
            }
        }
        Ok(())
    }

    fn take_jobs(&mut self) -> bool {
        let before = self.waiting.len();
        while let Ok(job) = self.ends.jobs.try_recv() {
            self.waiting.push_back(job);
        }
        self.waiting.len() > before
    }

    /// Gives waiting events to the tasks that have the fewest.
    fn dispatch(&mut self, now: Time) {
        if self.waiting.is_empty() {
            return;
        }
        if let Some(trouble) = self.hopeless() {
            let message = format!("no processing task can be started; the last trouble: {trouble}");
            while let Some(job) = self.waiting.pop_front() {
                self.finish(&job, fail(FailReason::Unavailable, &message));
            }
            return;
        }
        let mut new = vec![0; self.tasks.len()];
        while let Some(job) = self.waiting.front() {
            let alone = job.alone;
            let processes = self.tasks.iter_mut().map(|task| task.process.as_mut()).enumerate();
            let with_room =
                processes.filter_map(|(number, process)| Some((number, process.filter(|one| one.room() > 0)?)));
            let Some((number, process)) = with_room.min_by_key(|(_, process)| process.jobs.len()) else { break };
            if alone && !process.jobs.is_empty() {
                break;
            }
            process.jobs.push_back(self.waiting.pop_front().expect("not empty"));
            new[number] += 1;
        }
        for (task, count) in self.tasks.iter_mut().zip(new).filter(|(_, count)| *count > 0) {
            task.process.as_mut().expect("it has room").tell(count, now, &mut self.frame);
        }
    }

    /// The trouble, if every task failed so often that waiting is of no use.
    fn hopeless(&self) -> Option<&str> {
        let hopeless = |task: &Task| task.fruitless >= HOPELESS_AFTER;
        self.tasks.iter().all(hopeless).then(|| self.tasks[0].trouble.as_str())
    }

    /// Sleeps until something happens; what is ready, per task.
    fn sleep(&mut self, now: Time) -> Vec<Ready> {
        let due = |task: &Task| match &task.process {
            Some(process) => process.watch_due(self.options.timeout, now),
            None => Some(task.restart),
        };
        let deadline = self.tasks.iter().filter_map(due).min();
        let shared = Arc::clone(&self.shared);
        shared.bell.begin_sleep();
        if self.take_jobs() || shared.stop.load(Ordering::Acquire) {
            shared.bell.end_sleep();
            return Vec::new();
        }
        let ready = wait(Some(&shared.bell), &self.tasks, deadline.map(|deadline| deadline.since(now)));
        shared.bell.end_sleep();
        ready
    }

    fn serve(&mut self, ready: &[Ready]) -> Result<(), TasksError> {
        let now = clock::now();
        for Ready { task: number, what } in ready {
            match what {
                What::Output => self.read_output(*number, false),
                What::Socket => self.receive(*number, now),
                What::Death => self.bury(*number, now)?,
            }
        }
        Ok(())
    }

    fn read_output(&mut self, number: usize, to_the_end: bool) {
        let Some(mut process) = self.tasks[number].process.take() else { return };
        let mut line = |text: &str| self.notice(number, NoticeKind::Output, text.to_owned());
        if to_the_end {
            process.output.finish(&mut line);
        } else {
            process.output.read(&mut line);
        }
        self.tasks[number].process = Some(process);
    }

    /// Takes all frames that a task sent.
    fn receive(&mut self, number: usize, now: Time) {
        let Some(mut process) = self.tasks[number].process.take() else { return };
        let mut buffer = core::mem::take(&mut self.buffer);
        while let Some(frame) = process.receive(&mut buffer, now) {
            if let Err(problem) = self.on_frame(number, &mut process, frame, now) {
                process.end(Ending::BadAnswer(problem));
                break;
            }
        }
        self.buffer = buffer;
        self.tasks[number].process = Some(process);
    }

    fn on_frame(&mut self, number: usize, process: &mut Process, frame: &[u8], now: Time) -> Result<(), String> {
        let (header, rest) = Header::parse(frame).ok_or_else(|| format!("a frame of {} bytes", frame.len()))?;
        match (header.kind, &mut process.stage) {
            (to_owner::HELLO, Stage::Starting { said_hello, .. }) if !*said_hello => {
                *said_hello = true;
                if header.count != VERSION {
                    let found = header.count;
                    process
                        .end(Ending::Unable(format!("it speaks version {found} of the protocol, expected {VERSION}")));
                } else if let Err(error) =
                    process.set_up(&self.setup(number), self.slots.as_fd(), self.options.memory_limit_bytes)
                {
                    process.end(Ending::Unable(format!("it cannot be set up: {error}")));
                }
            }
            (to_owner::READY, Stage::Starting { said_hello: true, .. }) => process.stage = Stage::Ready,
            (to_owner::UNABLE, Stage::Starting { .. }) => {
                let words = String::from_utf8_lossy(rest);
                process.end(Ending::Unable(cut(&words, MESSAGE_BYTES_MAX).to_owned()));
            }
            (to_owner::ANSWERS, Stage::Ready) => return self.on_answers(process, header.count, rest, now),
            (kind, stage) => return Err(format!("a frame of kind {kind} in stage {stage:?}")),
        }
        Ok(())
    }

    fn on_answers(&mut self, process: &mut Process, count: u16, mut rest: &[u8], now: Time) -> Result<(), String> {
        for _ in 0..count {
            let (sequence, verdict) = take_answer(&mut rest, self.options.streams.len())?;
            let expected = process.jobs.front().map(|job| job.given.sequence);
            if expected != Some(sequence) {
                return Err(format!("an answer for event {sequence}, expected {expected:?}"));
            }
            let job = process.jobs.pop_front().expect("it was looked at");
            self.finish(&job, verdict);
        }
        process.answered(count.into(), now);
        if rest.is_empty() { Ok(()) } else { Err(format!("{} bytes behind {count} answers", rest.len())) }
    }

    fn setup(&self, number: usize) -> Setup {
        Setup {
            name: self.options.name.clone(),
            task: number,
            slots: self.options.slots,
            slot_bytes: self.slot_bytes,
            result_bytes_max: RESULT_BYTES_MAX,
            windows_max: WINDOWS_MAX,
            windows_bytes_max: WINDOWS_BYTES_MAX,
            message_bytes_max: MESSAGE_BYTES_MAX,
            frame_bytes_max: FRAME_BYTES_MAX,
            streams: self.options.streams.clone(),
            setup: self.options.setup.clone(),
        }
    }

    /// A process has ended: its last words, the verdict on the event that ended it, the others back to the queue.
    fn bury(&mut self, number: usize, now: Time) -> Result<(), TasksError> {
        self.receive(number, now);
        self.read_output(number, true);
        let Some(mut process) = self.tasks[number].process.take() else { return Ok(()) };
        let ended = process.reap();
        if process.stage != Stage::Ready {
            let what = start_trouble(process.ending.as_ref(), ended);
            let tail = process.output.tail();
            if !self.started {
                return Err(TasksError::Start { task: self.tasks[number].name.clone(), what, tail });
            }
            self.postpone(number, format!("{what}{}", last_words(&tail)), now);
            return Ok(());
        }
        let (reason, what) = cause(&process, ended);
        let guilt = guilt(&process);
        // Told before the verdict, which the owner may act on at once.
        self.shared.restarts.fetch_add(1, Ordering::Relaxed);
        if process.was_useful || !matches!(guilt, Guilt::None) {
            let task = &mut self.tasks[number];
            (task.fruitless, task.restart) = (0, now);
            self.notice(number, NoticeKind::Restarted, format!("{what}; it is started again"));
        } else {
            self.postpone(number, what.clone(), now);
        }
        match guilt {
            Guilt::None => {}
            Guilt::Of(position) => {
                let job = process.jobs.remove(position).expect("a position among its jobs");
                self.finish(&job, fail(reason, &format!("{what}{}", last_words(&process.output.tail()))));
            }
            Guilt::AmongFirst(suspects) => process.jobs.iter_mut().take(suspects).for_each(|job| job.alone = true),
        }
        self.give_back(&mut process, reason, &what);
        Ok(())
    }

    /// The events that waited behind the guilty one; an event that has seen too many deaths is not given out for ever.
    fn give_back(&mut self, process: &mut Process, reason: FailReason, what: &str) {
        while let Some(mut job) = process.jobs.pop_back() {
            job.witnessed += 1;
            if job.witnessed < WITNESSED_MAX {
                self.waiting.push_front(job);
            } else {
                let message =
                    format!("{WITNESSED_MAX} tasks died with this event in their hands, the last one: {what}");
                self.finish(&job, fail(reason, &message));
            }
        }
    }

    /// The task could not be started or decided nothing: the next try comes later and later.
    fn postpone(&mut self, number: usize, trouble: String, now: Time) {
        let task = &mut self.tasks[number];
        let delay = (RESTART_DELAY * 2_u32.saturating_pow(task.fruitless)).min(RESTART_DELAY_MAX);
        task.fruitless = (task.fruitless + 1).min(FRUITLESS_MAX);
        task.restart = now + delay;
        let text = format!("{trouble}\nThe next try is in {} ms", delay.as_millis());
        task.trouble = trouble;
        self.notice(number, NoticeKind::Trouble, text);
    }

    fn finish(&mut self, job: &Job, verdict: Verdict) {
        let done = Done { ticket: job.ticket, slot: job.given.slot, verdict };
        // Counted first: the owner subtracts when it takes.
        self.shared.done_waiting.fetch_add(1, Ordering::Release);
        // Refused only when the owner is being dropped: there is a place for each slot.
        let _ = self.ends.done.try_send(done);
        self.news = true;
    }

    fn notice(&mut self, number: usize, kind: NoticeKind, text: String) {
        let task = self.tasks[number].name.clone();
        let text = match self.lost_notices {
            0 => text,
            lost => format!("({lost} notices were left out)\n{text}"),
        };
        self.shared.notices_waiting.fetch_add(1, Ordering::Release);
        if self.ends.notices.try_send(Notice { task, kind, text }).is_ok() {
            self.lost_notices = 0;
        } else {
            self.shared.notices_waiting.fetch_sub(1, Ordering::Relaxed);
            self.lost_notices += 1;
        }
        self.news = true;
    }

    /// Tells all tasks to end, gives them a moment, and kills those that have not.
    fn shut_down(&mut self) {
        let deadline = clock::now() + SHUT_DOWN_GRACE;
        for task in &mut self.tasks {
            let Some(process) = &mut task.process else { continue };
            if process.stage == Stage::Ready {
                process.close();
            } else {
                task.process = None;
            }
        }
        while self.tasks.iter().any(|task| task.process.is_some()) {
            let now = clock::now();
            if now >= deadline {
                break;
            }
            for Ready { task: number, what } in wait(None, &self.tasks, Some(deadline.since(now))) {
                match what {
                    What::Death => {
                        self.read_output(number, true);
                        self.tasks[number].process = None;
                    }
                    _ => self.read_output(number, false),
                }
            }
        }
        self.tasks.clear();
        if core::mem::take(&mut self.news) {
            self.waker.wake();
        }
    }
}

/// A descriptor with news.
struct Ready {
    task: usize,
    what: What,
}

#[derive(Clone, Copy)]
enum What {
    Output,
    Socket,
    Death,
}

/// Waits for news of the tasks or the bell. Deaths come last, so that all that a task sent is seen before.
fn wait(bell: Option<&Bell>, tasks: &[Task], timeout: Option<Duration>) -> Vec<Ready> {
    let (mut watched, mut descriptors) = (Vec::new(), Vec::new());
    for (task, process) in tasks.iter().enumerate().filter_map(|(task, state)| Some((task, state.process.as_ref()?))) {
        let sources = [
            (What::Output, process.output.fd()),
            (What::Socket, process.socket()),
            (What::Death, Some(process.death())),
        ];
        for (what, descriptor) in sources.into_iter().filter_map(|(what, descriptor)| Some((what, descriptor?))) {
            watched.push(Ready { task, what });
            descriptors.push(PollFd::from_borrowed_fd(descriptor, PollFlags::IN));
        }
    }
    if let Some(bell) = bell {
        descriptors.push(PollFd::new(bell, PollFlags::IN));
    }
    let timeout = timeout.map(|timeout| {
        let timeout = timeout.min(Duration::from_secs(3600));
        Timespec { tv_sec: timeout.as_secs().cast_signed(), tv_nsec: timeout.subsec_nanos().into() }
    });
    if poll(&mut descriptors, timeout.as_ref()).is_err() {
        return Vec::new();
    }
    let is_ready: Vec<bool> = descriptors.iter().map(|descriptor| !descriptor.revents().is_empty()).collect();
    watched.into_iter().zip(is_ready).filter_map(|(ready, is_ready)| is_ready.then_some(ready)).collect()
}

const WITNESSED_MAX: u32 = 5;
const RESTART_DELAY: Duration = Duration::from_millis(100);
const RESTART_DELAY_MAX: Duration = Duration::from_secs(10);
/// Events do not wait any longer then.
const HOPELESS_AFTER: u32 = 3;
const FRUITLESS_MAX: u32 = 16;
const SHUT_DOWN_GRACE: Duration = Duration::from_secs(1);
