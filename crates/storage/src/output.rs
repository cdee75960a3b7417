//! An output file that holds whole pieces only: a piece that fails is cut off again.

use std::io::{self, IoSlice};
use std::iter;

use eformat::Adler32;

use crate::backend::OutputFile;

/// Appends pieces and sums their Adler-32.
pub(crate) struct Output {
    file: Box<dyn OutputFile>,
    /// Bytes of whole pieces.
    bytes: u64,
    sum: Adler32,
    /// Whether bytes of a failed piece may lie behind the whole ones.
    torn: bool,
    /// Whether making it durable has failed.
    unsure: bool,
}

/// An end of a file.
pub(crate) struct Mark {
    bytes: u64,
    sum: Adler32,
}

impl Output {
    pub(crate) fn new(file: Box<dyn OutputFile>) -> Self {
        Self { file, bytes: 0, sum: Adler32::new(), torn: false, unsure: false }
    }

    /// Goes on behind the first `bytes` of a file, whose sum is given; what follows them is cut off with the next piece.
    pub(crate) fn resumed(file: Box<dyn OutputFile>, bytes: u64, sum: Adler32) -> Self {
        Self { file, bytes, sum, torn: true, unsure: false }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn adler32(&self) -> u32 {
        self.sum.value()
    }

    pub(crate) fn sum(&self) -> Adler32 {
        self.sum.clone()
    }

    pub(crate) fn sync(&mut self) -> io::Result<()> {
        let synced = self.file.sync_data();
        self.unsure |= synced.is_err();
        synced
    }

    /// As `sync`, for bytes that somebody relies on. Once one has failed it fails for good: the kernel may forget what it
    /// could not write, so that a later call would succeed without it.
    pub(crate) fn sync_surely(&mut self) -> io::Result<()> {
        if self.unsure {
            return Err(io::Error::other("an earlier sync of this file failed: what is durable is not known"));
        }
        self.sync()
    }

    /// Appends `head` and `parts` completely, or leaves the file as it was.
    ///
    /// If even the cut fails, it is tried again before the next piece; a piece is never written behind torn bytes.
    pub(crate) fn append(&mut self, head: &[u8], parts: &[&[u8]]) -> io::Result<()> {
        self.mend()?;
        if let Err(error) = write_all(&mut *self.file, head, parts) {
            self.torn = true;
            // The first error is the one to report; a failed cut shows again in the next call.
            let _ = self.mend();
            return Err(error);
        }
        for part in iter::once(&head).chain(parts) {
            self.bytes += part.len() as u64;
            self.sum.update(part);
        }
        Ok(())
    }

    /// Where the file ends, for [`take_back`](Self::take_back).
    pub(crate) fn mark(&self) -> Mark {
        Mark { bytes: self.bytes, sum: self.sum.clone() }
    }

    /// Cuts off what was appended since the mark. If that fails it is tried again before the next piece.
    pub(crate) fn take_back(&mut self, mark: Mark) {
        (self.bytes, self.sum, self.torn) = (mark.bytes, mark.sum, true);
        // A failed cut shows again in the next call.
        let _ = self.mend();
    }

    /// Cuts off what may lie behind the whole pieces.
    pub(crate) fn mend(&mut self) -> io::Result<()> {
        if self.torn {
            self.file.truncate(self.bytes)?;
            self.torn = false;
        }
        Ok(())
    }
}

fn write_all(file: &mut dyn OutputFile, head: &[u8], parts: &[&[u8]]) -> io::Result<()> {
    let mut pieces = iter::once(&head).chain(parts);
    loop {
        let mut slices = [IoSlice::new(&[]); PARTS_PER_CALL];
        let mut count = 0;
        for (slice, piece) in slices.iter_mut().zip(pieces.by_ref().take(PARTS_PER_CALL)) {
            *slice = IoSlice::new(piece);
            count += 1;
        }
        if count == 0 {
            return Ok(());
        }
        let mut rest = &mut slices[..count];
        // Drops empty pieces, which would look like a write of nothing.
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            match file.write_vectored(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => IoSlice::advance_slices(&mut rest, written),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Slices of one system call; below the 1024 that systems allow, and small enough for the stack.
const PARTS_PER_CALL: usize = 256;
