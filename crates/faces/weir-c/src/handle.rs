//! What a `weir_link` is: a link, what was reserved of it, and its last error.

use std::borrow::Cow;
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use weir_source::{Beat, Head, LinkError, LinkSettings, Order, Secret, Sender, Settings, SourceError, Watch};

/// Why a call failed: `weir_code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[expect(missing_docs, reason = "weir.h says what each means")]
pub enum Code {
    Ok = 0,
    Busy = 1,
    BadArgument = 2,
    Unreachable = 3,
    Refused = 4,
    Closed = 5,
    TooLong = 6,
    System = 7,
    Failed = 8,
    Blocked = 9,
}

/// A code and its words.
#[derive(Clone, Debug)]
pub struct Error {
    /// For programs.
    pub code: Code,
    /// For people.
    pub text: Cow<'static, CStr>,
}

impl Error {
    /// An error in these words.
    #[must_use]
    pub fn new(code: Code, text: &str) -> Self {
        let text: String = text.chars().take_while(|letter| *letter != '\0').collect();
        Self { code, text: CString::new(text).unwrap_or_default().into() }
    }

    /// The partition is busy: often, so it costs nothing.
    #[must_use]
    pub fn busy() -> Self {
        Self { code: Code::Busy, text: Cow::Borrowed(c"the partition takes nothing now") }
    }

    /// What the caller has done wrong.
    #[must_use]
    pub fn argument(text: &str) -> Self {
        Self::new(Code::BadArgument, text)
    }
}

impl Default for Error {
    fn default() -> Self {
        Self::new(Code::Ok, "no call has failed")
    }
}

impl From<LinkError> for Error {
    fn from(error: LinkError) -> Self {
        Self::new(code_of(&error), &error.to_string())
    }
}

impl From<SourceError> for Error {
    fn from(error: SourceError) -> Self {
        let code = match &error {
            SourceError::Link(error) => code_of(error),
            SourceError::Failed { .. } => Code::Failed,
            SourceError::Blocked { .. } => Code::Blocked,
            SourceError::TooLong { .. } => Code::TooLong,
            SourceError::System(_) => Code::System,
        };
        Self::new(code, &error.to_string())
    }
}

/// A link and the last error on it.
pub struct Link {
    sender: Sender,
    beat: Beat,
    /// Bytes of what was reserved last, until it is committed.
    reserved: Option<usize>,
    /// Whether the partition waits for the end of the run.
    is_stopping: bool,
    /// The function of the author that runs, for who hangs in it; empty if nobody says.
    inside: Arc<Mutex<String>>,
    /// What the last call that failed says.
    pub error: Error,
    _watch: Watch,
}

impl Link {
    /// Connects. A program that does not look for orders leaves, with a status.
    ///
    /// # Errors
    /// Those of [`Sender::open`].
    pub fn open(at: &str, settings: Settings, leave: fn(i32)) -> Result<Self, Error> {
        let Settings { name, id, key, patience, deadline, .. } = settings;
        let sender = Sender::open(at, &LinkSettings { name: name.clone(), id, key, patience })?;
        let beat = Beat::default();
        beat.read(sender.has_order());
        let system = |error: std::io::Error| Error::new(Code::System, &format!("no watch over the source: {error}"));
        let orders = sender.as_fd().try_clone_to_owned().map_err(system)?;
        let inside = Arc::new(Mutex::new(String::new()));
        let runs = Arc::clone(&inside);
        let blocked = move |_| {
            let function = runs.lock().unwrap_or_else(PoisonError::into_inner);
            eprintln!("weir: source {name}: {}", hangs(&function, deadline));
            // No code of the program's own ends it: its only thread hangs.
            leave(EXIT_BLOCKED);
        };
        let watch = Watch::over(orders, deadline, beat.clone(), blocked).map_err(system)?;
        Ok(Self { sender, beat, reserved: None, is_stopping: false, inside, error: Error::default(), _watch: watch })
    }

    /// `weir_wait`; without limit if there is none.
    ///
    /// # Errors
    /// The link is broken.
    pub fn wait(&mut self, at_most: Option<Duration>) -> Result<Order, Error> {
        self.reserved = None;
        loop {
            let order = self.sender.wait(at_most.unwrap_or(Duration::from_secs(1)))?;
            self.is_stopping = match order {
                Order::Stop => true,
                Order::Start { .. } => false,
                Order::Nothing | Order::Closed => self.is_stopping,
            };
            self.beat.look(self.is_stopping || self.sender.has_order());
            if order != Order::Nothing || at_most.is_some() {
                return Ok(order);
            }
        }
    }

    /// `weir_reserve`.
    ///
    /// # Errors
    /// Busy, too long, or the link is broken.
    pub fn reserve(&mut self, len: usize) -> Result<&mut [u8], Error> {
        self.reserved = None;
        // It may have come with the call before this one.
        let is_waiting = self.is_stopping || self.sender.has_order();
        match self.sender.reserve(len)? {
            Some(slot) => {
                self.reserved = Some(len);
                Ok(slot)
            }
            None => {
                self.beat.read(is_waiting);
                Err(Error::busy())
            }
        }
    }

    /// `weir_commit`.
    ///
    /// # Errors
    /// Nothing or less was reserved, or the link is broken.
    pub fn commit(&mut self, head: &Head, len: usize) -> Result<(), Error> {
        match self.reserved.take() {
            Some(reserved) if len <= reserved => Ok(self.sender.commit(head, len)?),
            Some(reserved) => {
                Err(Error::argument(&format!("{reserved} bytes are reserved, {len} were to be committed")))
            }
            None => Err(Error::argument(
                "nothing is reserved: call weir_reserve, then weir_commit, with no other call between",
            )),
        }
    }

    /// `weir_send`.
    ///
    /// # Errors
    /// Those of [`Link::reserve`] and [`Link::commit`].
    pub fn send(&mut self, head: &Head, payload: &[u8]) -> Result<(), Error> {
        self.reserve(payload.len())?[..payload.len()].copy_from_slice(payload);
        self.commit(head, payload.len())
    }

    /// `weir_end`.
    ///
    /// # Errors
    /// The link is broken.
    pub fn end(&mut self) -> Result<(), Error> {
        self.with_sender(Sender::end)?;
        self.is_stopping = false;
        self.beat.look(self.sender.has_order());
        Ok(())
    }

    /// Everything else that a sender does.
    ///
    /// # Errors
    /// The link is broken.
    pub fn with_sender(&mut self, call: impl FnOnce(&mut Sender) -> Result<(), LinkError>) -> Result<(), Error> {
        self.reserved = None;
        Ok(call(&mut self.sender)?)
    }

    /// `weir_inside`.
    pub fn is_inside(&self, function: &str) {
        function.clone_into(&mut self.inside.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// `weir_size_max`.
    #[must_use]
    pub fn size_max(&self) -> usize {
        self.sender.size_max()
    }

    /// `weir_orders`.
    #[must_use]
    pub fn orders(&self) -> i32 {
        self.sender.as_fd().as_raw_fd()
    }
}

/// The key in a file, without the blanks around it.
///
/// # Errors
/// The file cannot be read, or holds no key.
pub fn key_of(file: &str) -> Result<Secret, Error> {
    weir_source::key_of(file.as_ref()).map_err(|error| Error::argument(&error.to_string()))
}

fn code_of(error: &LinkError) -> Code {
    match error {
        LinkError::Address { .. }
        | LinkError::Ambiguous { .. }
        | LinkError::KeyMissing { .. }
        | LinkError::FramesUndescribed { .. }
        | LinkError::Unreadable { .. }
        | LinkError::NotReserved { .. }
        | LinkError::Text { .. } => Code::BadArgument,
        LinkError::NoPartition { .. } => Code::Unreachable,
        LinkError::Refused { .. } | LinkError::Taken { .. } | LinkError::Unproven { .. } => Code::Refused,
        LinkError::Closed | LinkError::Violated(_) => Code::Closed,
        LinkError::TooLong { .. } => Code::TooLong,
        LinkError::Folder { .. }
        | LinkError::InUse { .. }
        | LinkError::Sizes { .. }
        | LinkError::Pool(_)
        | LinkError::System(_) => Code::System,
    }
}

/// Tells a program that hangs in which function, if that is known.
fn hangs(function: &str, deadline: Duration) -> String {
    let (what, advice) = if function.is_empty() {
        ("it has not asked for orders (weir_wait, or wait of the link)".to_owned(), "")
    } else {
        (format!("{function} has not returned"), ", and say that nothing is there")
    };
    format!("{what} while the partition waited for {deadline:?}; it ends: wait for the device with a time-out{advice}")
}

/// `EX_SOFTWARE`.
const EXIT_BLOCKED: i32 = 70;
