//! Messages are kept beside the run catalogue by a thread of their own, so that nobody waits for a disk.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use base::causes::sentences;
use catalogue::{CatalogueError, Message, MessageStore, Severity, Sought, now};

/// Where the messages of a partition are kept.
#[derive(Debug)]
pub struct MessageLog {
    partition: String,
    /// None if there is no file.
    reader: Option<Mutex<MessageStore>>,
    /// The newest ones, from before this service.
    restored: Vec<Message>,
    writes: SyncSender<Write>,
    /// Those that were given up.
    dropped: Arc<AtomicU64>,
    writer: Mutex<Writer>,
}

#[derive(Debug)]
enum Write {
    Keep(Box<Message>),
    /// Nothing more is said.
    End,
}

/// The thread that writes.
#[derive(Debug)]
enum Writer {
    Waiting(MessageStore, Receiver<Write>),
    /// There is no file, for this reason.
    Without(CatalogueError),
    Writing(JoinHandle<()>),
    Over,
}

impl MessageLog {
    /// Beside this catalogue. Where the file cannot be read or written, runs go on without it: that is told, and messages are counted.
    pub fn open(catalogue: &Path, partition: &str) -> Self {
        let (writes, written) = sync_channel(WAITING_MAX);
        let (reader, restored, writer) = match stores(catalogue, partition) {
            Ok((store, reader, restored)) => (Some(Mutex::new(reader)), restored, Writer::Waiting(store, written)),
            Err(error) => (None, Vec::new(), Writer::Without(error)),
        };
        let (partition, writer) = (partition.to_owned(), Mutex::new(writer));
        Self { partition, reader, restored, writes, dropped: Arc::default(), writer }
    }

    /// The newest ones from before this service, the oldest first.
    pub(crate) fn restored(&self) -> &[Message] {
        &self.restored
    }

    /// Begins to write; what goes wrong is told.
    pub(crate) fn begin(&self, tell: impl Fn(Severity, &str, Vec<String>) + Send + 'static) -> std::io::Result<()> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        *writer = match core::mem::replace(&mut *writer, Writer::Over) {
            Writer::Waiting(store, written) => {
                let (partition, dropped) = (self.partition.clone(), Arc::clone(&self.dropped));
                let write = move || write((store, &partition), &written, &dropped, tell);
                Writer::Writing(thread::Builder::new().name("messages".into()).spawn(write)?)
            }
            Writer::Without(error) => {
                complain(&error, tell);
                Writer::Over
            }
            other => other,
        };
        Ok(())
    }

    /// Keeps a message, or what it has become; waits for nobody. One for which there is no room is counted.
    pub(crate) fn keep(&self, message: &Message) {
        if self.writes.try_send(Write::Keep(Box::new(message.clone()))).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until all is written that was said.
    pub(crate) fn end(&self) {
        let writer = core::mem::replace(&mut *self.writer.lock().unwrap_or_else(PoisonError::into_inner), Writer::Over);
        if let Writer::Writing(thread) = writer {
            // One that has panicked has said so.
            let _ = self.writes.send(Write::End);
            let _ = thread.join();
        }
    }

    /// The kept messages that are sought, the oldest first; waits for the disk.
    pub(crate) fn find(&self, sought: &Sought) -> Result<Vec<Message>, CatalogueError> {
        let Some(reader) = &self.reader else { return Ok(Vec::new()) };
        reader.lock().unwrap_or_else(PoisonError::into_inner).find(&self.partition, sought)
    }

    /// How many were given up since the service began.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

/// For the one that writes and for those who read, and the newest messages that there are.
fn stores(catalogue: &Path, partition: &str) -> Result<(MessageStore, MessageStore, Vec<Message>), CatalogueError> {
    let (store, reader) = (MessageStore::beside(catalogue)?, MessageStore::beside(catalogue)?);
    let restored = reader.find(partition, &Sought::default())?;
    Ok((store, reader, restored))
}

/// Until the end: all that waits goes together. It removes old messages first.
fn write(
    (mut store, partition): (MessageStore, &str),
    written: &Receiver<Write>,
    dropped: &AtomicU64,
    tell: impl Fn(Severity, &str, Vec<String>),
) {
    let mut is_over = false;
    let mut is_failing = store.forget_old(partition, now()).inspect_err(|error| complain(error, &tell)).is_err();
    while !is_over && let Ok(first) = written.recv() {
        let mut batch = Vec::new();
        for write in [first].into_iter().chain(written.try_iter().take(WAITING_MAX)) {
            match write {
                Write::Keep(message) => batch.push(*message),
                Write::End => is_over = true,
            }
        }
        match store.keep(partition, &batch) {
            Ok(()) if is_failing => {
                is_failing = false;
                tell(Severity::Notice, "messages are kept again", Vec::new());
            }
            Ok(()) => {}
            Err(error) => {
                dropped.fetch_add(batch.len() as u64, Ordering::Relaxed);
                // That is said once, and may be kept no more than the others.
                if !core::mem::replace(&mut is_failing, true) {
                    complain(&error, &tell);
                }
            }
        }
    }
}

fn complain(error: &CatalogueError, tell: impl Fn(Severity, &str, Vec<String>)) {
    tell(Severity::Warning, "messages are not kept", sentences(error));
}

/// So many messages wait for a slow disk.
const WAITING_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use testkit::TempDir;

    use super::*;

    fn message(number: u64) -> Message {
        let (causes, text) = (Vec::new(), format!("word {number}"));
        let (run, application, severity) = (None, None, Severity::Notice);
        Message { number, at_ms: number, run, application, severity, text, causes, repeats: 0, last_ms: number }
    }

    /// Nobody writes: the disk takes nothing.
    #[test]
    fn a_disk_that_takes_nothing_holds_nobody_up_and_what_is_given_up_is_counted() {
        let directory = TempDir::new("message-log");
        let file = directory.join("runs.sqlite");
        let log = MessageLog::open(&file, "p");
        (1..=WAITING_MAX as u64 + 7).for_each(|number| log.keep(&message(number)));
        assert_eq!(log.dropped(), 7);
        assert!(log.find(&Sought::default()).unwrap().is_empty() && log.restored().is_empty());
        log.end();
    }

    #[test]
    fn without_a_file_that_can_be_read_messages_are_counted_and_the_reason_is_told() {
        let directory = TempDir::new("message-log");
        let file = directory.join("runs.sqlite");
        std::fs::write(directory.join("runs.sqlite.messages"), "the words of another program").unwrap();
        let log = MessageLog::open(&file, "p");
        let (told, telling) = sync_channel(1);
        log.begin(move |_, text, causes| told.send(format!("{text}: {}", causes.join(": "))).unwrap()).unwrap();
        let told = telling.recv().unwrap();
        assert!(told.starts_with("messages are not kept: messages /") && told.contains("not a database"), "{told}");
        log.keep(&message(1));
        assert_eq!((log.dropped(), log.find(&Sought::default()).unwrap().len()), (1, 0));
        log.end();
    }
}
