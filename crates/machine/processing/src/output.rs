//! What a task prints.

use std::collections::VecDeque;
use std::io;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;

/// The read end of a task's output, line by line, and its last lines.
#[derive(Debug)]
pub(crate) struct Output {
    /// `None` when every writer is gone.
    pipe: Option<OwnedFd>,
    line: Vec<u8>,
    tail: VecDeque<String>,
}

impl Output {
    pub(crate) fn new(pipe: OwnedFd) -> Self {
        Self { pipe: Some(pipe), line: Vec::new(), tail: VecDeque::new() }
    }

    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Reads what is there, at most a few blocks so that a task that prints without end holds up nobody.
    pub(crate) fn read(&mut self, mut on_line: impl FnMut(&str)) {
        let mut block = [0; BLOCK_BYTES];
        for _ in 0..BLOCKS_PER_READ {
            let Some(pipe) = &self.pipe else { return };
            match rustix::io::read(pipe, &mut block) {
                Ok(0) => self.pipe = None,
                Ok(len) => self.take(&block[..len], &mut on_line),
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => {}
                Err(_) => self.pipe = None,
            }
        }
    }

    /// A line without an end counts when the task is gone.
    pub(crate) fn finish(&mut self, mut on_line: impl FnMut(&str)) {
        self.read(&mut on_line);
        if !self.line.is_empty() {
            self.end_line(&mut on_line);
        }
    }

    /// The last lines.
    pub(crate) fn tail(&self) -> String {
        self.tail.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    /// Whether one of the last lines begins so.
    pub(crate) fn says(&self, words: &str) -> bool {
        self.tail.iter().any(|line| line.starts_with(words))
    }

    fn take(&mut self, bytes: &[u8], on_line: &mut impl FnMut(&str)) {
        for byte in bytes {
            match byte {
                b'\n' => self.end_line(on_line),
                _ if self.line.len() < LINE_BYTES_MAX => self.line.push(*byte),
                _ => {}
            }
        }
    }

    fn end_line(&mut self, on_line: &mut impl FnMut(&str)) {
        let line = String::from_utf8_lossy(&self.line).trim_end().to_owned();
        self.line.clear();
        if line.is_empty() {
            return;
        }
        on_line(&line);
        if self.tail.len() == TAIL_LINES {
            self.tail.pop_front();
        }
        self.tail.push_back(line);
    }
}

/// A pipe for the output of a task: the end to read, which does not block, and the end to write.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let flags = rustix::fs::fcntl_getfl(&read)?;
    rustix::fs::fcntl_setfl(&read, flags | rustix::fs::OFlags::NONBLOCK)?;
    Ok((read, write))
}

const BLOCK_BYTES: usize = 4096;
/// As much as a pipe holds.
const BLOCKS_PER_READ: usize = 16;
/// The rest of a longer line is left out.
const LINE_BYTES_MAX: usize = 1024;
const TAIL_LINES: usize = 30;
