//! The functions and types of `weir.h`, which documents them. All `unsafe` code of the crate is here: C gives pointers and promises
//! what they point to.
//!
//! A pointer may be NULL where `weir.h` says so, and is an error elsewhere. All else is the caller's promise. Texts end
//! in NUL, one thread at a time uses a link that comes from `weir_open`, and memory has the length that is said.
#![expect(missing_docs, reason = "weir.h documents every function and field")]
#![expect(clippy::missing_safety_doc, reason = "weir.h says what a caller has to keep to")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::slice;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use weir_source::{Failure, Flags, Order as Ordered, Reading as Found, Settings as SourceSettings, Source as Sources};

use crate::arguments::Arguments;
use crate::handle::{Code, Error, Link, key_of};

/// `weir_order`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Order {
    Nothing = 0,
    Start = 1,
    Stop = 2,
    End = 3,
    Error = 4,
}

/// `weir_head`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Head {
    pub number: u64,
    pub begin: u64,
    pub end: u64,
    pub trigger_type: u32,
    pub flags: u32,
}

/// `weir_settings`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Settings {
    pub name: *const c_char,
    pub key_file: *const c_char,
    pub id: u32,
    pub patience_ms: u32,
    pub deadline_ms: u32,
}

/// `weir_reading`, which C may give as any number.
pub type Reading = c_int;
pub const READ_NOTHING: Reading = 0;
pub const READ_COMMITTED: Reading = 1;
pub const READ_IDLE: Reading = 2;
pub const READ_END: Reading = 3;
pub const READ_FAILED: Reading = 4;

/// `weir_source`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Source {
    pub context: *mut c_void,
    pub configure: Option<unsafe extern "C" fn(context: *mut c_void, settings: *const Settings) -> c_int>,
    pub start: Option<unsafe extern "C" fn(context: *mut c_void, run: u32) -> c_int>,
    pub read: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            slot: *mut c_void,
            size: usize,
            head: *mut Head,
            len: *mut usize,
        ) -> Reading,
    >,
    pub stop: Option<unsafe extern "C" fn(context: *mut c_void) -> c_int>,
    pub status: Option<unsafe extern "C" fn(context: *mut c_void) -> *const c_char>,
}

thread_local! {
    /// Of calls without a link.
    static LAST: RefCell<Error> = RefCell::default();
}

/// What `--set` has said, for `weir_parameter`.
static PARAMETERS: Mutex<BTreeMap<CString, &CStr>> = Mutex::new(BTreeMap::new());

#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_arguments(
    count: c_int,
    arguments: *const *mut c_char,
    settings: *mut Settings,
) -> *const c_char {
    // SAFETY: what the caller gives is NULL or what `weir.h` asks for.
    match unsafe { read_arguments(count, arguments, settings) } {
        Ok(at) => at.as_ptr(),
        Err(error) => {
            remember(error);
            std::ptr::null()
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_parameter(key: *const c_char) -> *const c_char {
    if key.is_null() {
        return std::ptr::null();
    }
    // SAFETY: a text, as the caller promises.
    let key = unsafe { CStr::from_ptr(key) };
    let parameters = PARAMETERS.lock().unwrap_or_else(PoisonError::into_inner);
    parameters.get(key).map_or(std::ptr::null(), |value| value.as_ptr())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_open(at: *const c_char, settings: *const Settings) -> *mut Link {
    // SAFETY: what the caller gives is NULL or what `weir.h` asks for.
    let arguments = unsafe { arguments(at, settings) };
    match arguments.and_then(|(at, settings)| Link::open(at, settings, leave)) {
        Ok(link) => Box::into_raw(Box::new(link)),
        Err(error) => {
            remember(error);
            std::ptr::null_mut()
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_wait(link: *mut Link, timeout_ms: c_int, run: *mut u32) -> Order {
    let at_most = u64::try_from(timeout_ms).ok().map(Duration::from_millis);
    // SAFETY: a link of `weir_open`, or NULL.
    let found = unsafe { with(link, |link| link.wait(at_most)) };
    match found {
        Ok(Ordered::Start { run: number }) => {
            // SAFETY: NULL or writable, as the caller promises.
            if let Some(run) = unsafe { run.as_mut() } {
                *run = number;
            }
            Order::Start
        }
        Ok(Ordered::Stop) => Order::Stop,
        Ok(Ordered::Nothing) => Order::Nothing,
        Ok(Ordered::Closed) => Order::End,
        Err(_) => Order::Error,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_reserve(link: *mut Link, len: usize) -> *mut c_void {
    // SAFETY: a link of `weir_open`, or NULL.
    let slot = unsafe { with(link, |link| link.reserve(len).map(<[u8]>::as_mut_ptr)) };
    slot.map_or(std::ptr::null_mut(), <*mut u8>::cast)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_commit(link: *mut Link, head: *const Head, len: usize) -> Code {
    // SAFETY: NULL, or what `weir.h` asks for.
    let (head, link) = unsafe { (head.as_ref(), link) };
    // SAFETY: a link of `weir_open`, or NULL.
    code(unsafe { with(link, |link| link.commit(&head_of(head)?, len)) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_send(link: *mut Link, head: *const Head, payload: *const c_void, len: usize) -> Code {
    // SAFETY: NULL, or what `weir.h` asks for.
    let (head, payload) = unsafe { (head.as_ref(), bytes(payload, len)) };
    // SAFETY: a link of `weir_open`, or NULL.
    code(unsafe { with(link, |link| link.send(&head_of(head)?, payload?)) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_send_many(
    link: *mut Link,
    number: u64,
    payloads: *const c_void,
    len: usize,
    count: usize,
) -> usize {
    let mut sent = 0;
    let all = len.checked_mul(count).ok_or_else(|| Error::argument("more payload than there is memory"));
    // SAFETY: NULL, or as many bytes as the caller says.
    let all = all.and_then(|all| unsafe { bytes(payloads, all) });
    let send_all = |link: &mut Link| {
        let all = all?;
        for index in 0..count {
            let number = Some(number.wrapping_add(index as u64));
            link.send(&weir_source::Head { number, ..Default::default() }, &all[index * len..(index + 1) * len])?;
            sent += 1;
        }
        Ok(())
    };
    // SAFETY: a link of `weir_open`, or NULL.
    let _ = unsafe { with(link, send_all) };
    sent
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_idle(link: *mut Link, number: u64, time: u64) -> Code {
    // SAFETY: a link of `weir_open`, or NULL.
    code(unsafe { with(link, |link| link.with_sender(|sender| sender.idle(number, time))) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_report(link: *mut Link, text: *const c_char) -> Code {
    // SAFETY: NULL, or a text.
    let text = unsafe { text_of(text, "text") };
    // SAFETY: a link of `weir_open`, or NULL.
    code(unsafe { with(link, |link| text.and_then(|text| link.with_sender(|sender| sender.report(text)))) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_end(link: *mut Link) -> Code {
    // SAFETY: a link of `weir_open`, or NULL.
    code(unsafe { with(link, Link::end) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_flush(link: *mut Link) -> Code {
    // SAFETY: a link of `weir_open`, or NULL.
    code(unsafe { with(link, |link| link.with_sender(weir_source::Sender::flush)) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_inside(link: *mut Link, function: *const c_char) -> Code {
    // SAFETY: NULL, or a text.
    let function = (!function.is_null()).then(|| unsafe { text_of(function, "function") }).transpose();
    // SAFETY: a link of `weir_open`, or NULL.
    code(unsafe { with(link, |link| function.map(|function| link.is_inside(function.unwrap_or_default()))) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_size_max(link: *const Link) -> usize {
    // SAFETY: a link of `weir_open`, or NULL.
    unsafe { link.as_ref() }.map_or(0, Link::size_max)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_orders(link: *const Link) -> c_int {
    // SAFETY: a link of `weir_open`, or NULL.
    unsafe { link.as_ref() }.map_or(-1, Link::orders)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_close(link: *mut Link) {
    if !link.is_null() {
        // SAFETY: `weir_open` has made it of a box, and the caller does not use it again.
        drop(unsafe { Box::from_raw(link) });
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_error(link: *const Link) -> *const c_char {
    // SAFETY: a link of `weir_open`, or NULL.
    match unsafe { link.as_ref() } {
        Some(link) => link.error.text.as_ptr(),
        // The text stays where it is until the next error of this thread.
        None => LAST.with_borrow(|last| last.text.as_ptr()),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_error_code(link: *const Link) -> Code {
    // SAFETY: a link of `weir_open`, or NULL.
    unsafe { link.as_ref() }.map_or_else(|| LAST.with_borrow(|last| last.code), |link| link.error.code)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_run(at: *const c_char, settings: *const Settings, source: *const Source) -> Code {
    // SAFETY: what the caller gives is NULL or what `weir.h` asks for.
    let (arguments, source) = unsafe { (arguments(at, settings), source.as_ref()) };
    let run = || {
        let (at, given) = arguments?;
        let functions = *source.ok_or_else(|| Error::argument("source is NULL"))?;
        if functions.read.is_none() {
            return Err(Error::argument("source->read is NULL"));
        }
        // SAFETY: `arguments` has found that it is not NULL.
        let settings = unsafe { *settings };
        Ok(weir_source::run(at, given, CSource { functions, settings })?)
    };
    match run() {
        Ok(_) => Code::Ok,
        Err(error) => {
            let code = error.code;
            remember(error);
            code
        }
    }
}

/// Ends the process at once, without anything that a hanging thread could hold up.
fn leave(status: c_int) {
    // SAFETY: it takes a number and does not return.
    unsafe { libc::_exit(status) }
}

/// The functions of a source in C.
struct CSource {
    functions: Source,
    settings: Settings,
}

// SAFETY: `weir.h` says that a thread of the library calls the functions, with the context; one thread, while `weir_run` waits.
unsafe impl Send for CSource {}

impl Sources for CSource {
    fn configure(&mut self, _: &SourceSettings) -> Result<(), Failure> {
        let context = self.functions.context;
        // SAFETY: a function of this type, called as `weir.h` says.
        well(self.functions.configure.map(|call| unsafe { call(context, &raw const self.settings) }))
    }

    fn start(&mut self, run: u32) -> Result<(), Failure> {
        // SAFETY: as above.
        well(self.functions.start.map(|call| unsafe { call(self.functions.context, run) }))
    }

    fn read(&mut self, slot: &mut [u8]) -> Result<Found, Failure> {
        let (mut head, mut len) = (Head::default(), 0);
        let read = self.functions.read.expect("`weir_run` has looked");
        // SAFETY: as above; the slot has this size, and head and length live longer than the call.
        let found =
            unsafe { read(self.functions.context, slot.as_mut_ptr().cast(), slot.len(), &raw mut head, &raw mut len) };
        match found {
            READ_NOTHING => Ok(Found::Nothing),
            READ_COMMITTED => Ok(Found::Committed(parsed(&head).map_err(|error| failure(&error))?, len)),
            READ_IDLE if head.begin != 0 => Ok(Found::Passed(head.begin)),
            READ_IDLE => Ok(Found::Idle(head.number)),
            READ_END => Ok(Found::End),
            READ_FAILED => Err("it gave WEIR_READ_FAILED".into()),
            other => Err(format!("it gave {other}, which is no weir_reading").into()),
        }
    }

    fn stop(&mut self) -> Result<(), Failure> {
        // SAFETY: as above.
        well(self.functions.stop.map(|call| unsafe { call(self.functions.context) }))
    }

    fn status(&mut self) -> String {
        // SAFETY: as above; what it gives is NULL or a text.
        let text = self.functions.status.map(|call| unsafe { text_of(call(self.functions.context), "status") });
        text.and_then(Result::ok).unwrap_or_default().to_owned()
    }
}

fn well(returned: Option<c_int>) -> Result<(), Failure> {
    match returned {
        None | Some(0) => Ok(()),
        Some(other) => Err(format!("it gave {other}").into()),
    }
}

fn failure(error: &Error) -> Failure {
    error.text.to_string_lossy().into_owned().into()
}

/// The link, or an error if there is none; an error stays with the link.
unsafe fn with<T>(link: *mut Link, call: impl FnOnce(&mut Link) -> Result<T, Error>) -> Result<T, Error> {
    // SAFETY: NULL, or made by `weir_open` and used by this thread alone.
    let Some(link) = (unsafe { link.as_mut() }) else {
        let error = Error::argument("link is NULL");
        remember(error.clone());
        return Err(error);
    };
    call(link).inspect_err(|error| link.error = error.clone())
}

fn remember(error: Error) {
    LAST.set(error);
}

fn code(done: Result<(), Error>) -> Code {
    done.map_or_else(|error| error.code, |()| Code::Ok)
}

unsafe fn read_arguments(
    count: c_int,
    arguments: *const *mut c_char,
    settings: *mut Settings,
) -> Result<&'static CStr, Error> {
    // SAFETY: NULL, or writable.
    let settings = unsafe { settings.as_mut() }.ok_or_else(|| Error::argument("settings is NULL"))?;
    let count = usize::try_from(count).unwrap_or(0);
    if arguments.is_null() && count > 0 {
        return Err(Error::argument("the arguments are NULL"));
    }
    // SAFETY: so many texts, as the caller promises.
    let text = |at| unsafe { text_of(*arguments.add(at), "an argument") }.map(str::to_owned);
    let mut texts = (0..count).map(text).collect::<Result<Vec<_>, _>>()?.into_iter();
    let program = texts.next().unwrap_or_else(|| "source".to_owned());
    let read = Arguments::parse(&program, texts)?;
    if settings.name.is_null() || read.name.is_some() {
        settings.name = kept(read.name()).as_ptr();
    }
    settings.key_file = read.key_file.as_deref().map_or(settings.key_file, |file| kept(file).as_ptr());
    settings.patience_ms = read.patience_ms.unwrap_or(settings.patience_ms);
    settings.deadline_ms = read.deadline_ms.unwrap_or(settings.deadline_ms);
    let mut parameters = PARAMETERS.lock().unwrap_or_else(PoisonError::into_inner);
    parameters.extend(read.parameters.iter().map(|(key, value)| (kept(key).to_owned(), kept(value))));
    Ok(kept(&read.at))
}

/// A text that lives as long as the program, as its command line does.
fn kept(text: &str) -> &'static CStr {
    Box::leak(CString::new(text).expect("what was read of C has no NUL within").into_boxed_c_str())
}

unsafe fn arguments<'a>(at: *const c_char, settings: *const Settings) -> Result<(&'a str, SourceSettings), Error> {
    // SAFETY: NULL or what `weir.h` asks for, as the caller promises.
    let (at, settings) = unsafe { (text_of(at, "at")?, settings.as_ref()) };
    let settings = settings.ok_or_else(|| Error::argument("settings is NULL"))?;
    // SAFETY: the same.
    let name = unsafe { text_of(settings.name, "settings->name")? };
    let mut given = SourceSettings::named(name);
    if !settings.key_file.is_null() {
        // SAFETY: the same.
        given.key = Some(key_of(unsafe { text_of(settings.key_file, "settings->key_file")? })?);
    }
    given.id = (settings.id != 0).then_some(settings.id);
    if settings.patience_ms != 0 {
        given.patience = Duration::from_millis(settings.patience_ms.into());
    }
    if settings.deadline_ms != 0 {
        given.deadline = Duration::from_millis(settings.deadline_ms.into());
    }
    Ok((at, given))
}

unsafe fn text_of<'a>(text: *const c_char, name: &str) -> Result<&'a str, Error> {
    if text.is_null() {
        return Err(Error::argument(&format!("{name} is NULL")));
    }
    // SAFETY: it ends in NUL, as the caller promises.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| Error::argument(&format!("{name} is not UTF-8")))
}

unsafe fn bytes<'a>(memory: *const c_void, len: usize) -> Result<&'a [u8], Error> {
    if len == 0 {
        return Ok(&[]);
    }
    if memory.is_null() {
        return Err(Error::argument("the payload is NULL"));
    }
    // SAFETY: so many readable bytes, as the caller promises.
    Ok(unsafe { slice::from_raw_parts(memory.cast(), len) })
}

fn head_of(head: Option<&Head>) -> Result<weir_source::Head, Error> {
    parsed(head.ok_or_else(|| Error::argument("head is NULL"))?)
}

/// The head in the words of the link.
fn parsed(head: &Head) -> Result<weir_source::Head, Error> {
    let has = |flag| head.flags & flag != 0;
    let known = HAS_NUMBER | HAS_TIME | CHECKSUM | TRANSMISSION_ERROR | CUT;
    if head.flags & !known != 0 {
        return Err(Error::argument(&format!("head->flags is {:#x}: expected flags of weir.h", head.flags)));
    }
    let trigger_type = u8::try_from(head.trigger_type);
    let trigger_type = trigger_type.map_err(|_| Error::argument("head->trigger_type is above 255"))?;
    let mut flags = Flags::default();
    flags.set(Flags::CRC, has(CHECKSUM));
    flags.set(Flags::TRANSMISSION_ERROR, has(TRANSMISSION_ERROR));
    flags.set(Flags::CUT, has(CUT));
    Ok(weir_source::Head {
        number: has(HAS_NUMBER).then_some(head.number),
        time: has(HAS_TIME).then_some((head.begin, head.end)),
        trigger_type,
        flags,
    })
}

pub const HAS_NUMBER: u32 = 1;
pub const HAS_TIME: u32 = 2;
pub const CHECKSUM: u32 = 4;
pub const TRANSMISSION_ERROR: u32 = 8;
pub const CUT: u32 = 16;
