//! An output file that holds whole pieces only: a piece that fails is cut off again.

use std::io::{self, IoSlice};
use std::iter;
use std::path::Path;

use eformat::Adler32;

use crate::backend::{Backend, OutputFile};

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
    /// Bytes of the piece that will be the last, for which there is always room.
    end_bytes: u64,
    /// Up to where the disk has given room.
    room: u64,
}

/// An end of a file.
#[derive(Clone)]
pub(crate) struct Mark {
    bytes: u64,
    sum: Adler32,
}

impl Output {
    pub(crate) fn new(file: Box<dyn OutputFile>) -> Self {
        Self { file, bytes: 0, sum: Adler32::new(), torn: false, unsure: false, end_bytes: 0, room: 0 }
    }

    /// Goes on behind the first `bytes` of a file, whose sum is given; what follows them is cut off with the next piece.
    pub(crate) fn resumed(file: Box<dyn OutputFile>, bytes: u64, sum: Adler32) -> Self {
        Self { bytes, sum, torn: true, ..Self::new(file) }
    }

    /// Keeps room for a last piece of this size, so that a full disk does not keep the file from being closed.
    pub(crate) fn ending_with(self, end_bytes: usize) -> Self {
        Self { end_bytes: end_bytes as u64, ..self }
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

    /// Makes the file at `path` durable; whether it had to be made anew for that.
    ///
    /// Once a sync has failed, the kernel may have forgotten what it could not write, and the next one would succeed without it.
    pub(crate) fn sync(&mut self, backend: &dyn Backend, path: &Path) -> io::Result<bool> {
        if self.unsure {
            return self.renew(backend, path).map(|()| true);
        }
        let Err(error) = self.file.sync_data() else { return Ok(false) };
        self.unsure = true;
        // The first error is the one to report.
        self.renew(backend, path).map(|()| true).map_err(|_| error)
    }

    /// Whether it is not known what of the file is durable.
    pub(crate) fn is_unsure(&self) -> bool {
        self.unsure
    }

    /// Writes what can be read of the file to a new one, which takes its place once it is durable.
    fn renew(&mut self, backend: &dyn Backend, path: &Path) -> io::Result<()> {
        let beside = path.with_extension("again");
        match backend.remove(&beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = self.copy(backend, &beside, true)?;
        backend.rename(&beside, path).inspect_err(|_| drop(backend.remove(&beside)))?;
        self.go_on_with(file);
        self.unsure = false;
        Ok(())
    }

    /// Makes the file again at `path` if it is not there any more; whether it was so.
    pub(crate) fn put_back(&mut self, backend: &dyn Backend, path: &Path, durable: bool) -> io::Result<bool> {
        if self.file.is_at(path)? {
            return Ok(false);
        }
        path.parent().map_or(Ok(()), |directory| backend.create_directory(directory))?;
        let file = self.copy(backend, path, durable)?;
        self.go_on_with(file);
        Ok(true)
    }

    /// The size of the file, if somebody else has cut it or written to it.
    pub(crate) fn changed_to(&self) -> io::Result<Option<u64>> {
        let found = self.file.bytes()?;
        let is_changed = if self.torn { found < self.bytes } else { found != self.bytes };
        Ok(is_changed.then_some(found))
    }

    fn go_on_with(&mut self, file: Box<dyn OutputFile>) {
        (self.file, self.torn, self.room) = (file, false, self.bytes);
        // Where there is none for the end, the next piece says so.
        let _ = self.make_room(0);
    }

    /// A new file with the same whole pieces; none is left where that fails.
    fn copy(&self, backend: &dyn Backend, path: &Path, durable: bool) -> io::Result<Box<dyn OutputFile>> {
        let mut file = backend.create(path)?;
        let copied = self.copy_to(&mut *file).and_then(|()| if durable { file.sync_data() } else { Ok(()) });
        if let Err(error) = copied {
            drop(file);
            let _ = backend.remove(path);
            return Err(error);
        }
        Ok(file)
    }

    fn copy_to(&self, file: &mut dyn OutputFile) -> io::Result<()> {
        let (mut at, mut sum, mut buffer) = (0, Adler32::new(), vec![0; COPY_BYTES]);
        while at < self.bytes {
            let most = (self.bytes - at).min(COPY_BYTES as u64) as usize;
            let read = match self.file.read_at(&mut buffer[..most], at) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            if read == 0 {
                break;
            }
            write_all(file, &buffer[..read], &[])?;
            sum.update(&buffer[..read]);
            at += read as u64;
        }
        if sum.value() == self.sum.value() && at == self.bytes {
            return Ok(());
        }
        Err(io::Error::other("what was written to it cannot be read back"))
    }

    /// Appends `head` and `parts` completely, or leaves the file as it was.
    ///
    /// If even the cut fails, it is tried again before the next piece; a piece is never written behind torn bytes.
    pub(crate) fn append(&mut self, head: &[u8], parts: &[&[u8]]) -> io::Result<()> {
        self.mend()?;
        self.make_room(iter::once(&head).chain(parts).map(|part| part.len() as u64).sum())?;
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

    /// Appends the last piece, for which there is room.
    pub(crate) fn append_end(&mut self, end: &[u8]) -> io::Result<()> {
        let kept = std::mem::take(&mut self.end_bytes);
        self.append(end, &[]).inspect_err(|_| self.end_bytes = kept)?;
        if self.room > self.bytes {
            // Gives back what nobody needs; if that fails the file is as good.
            let _ = self.file.truncate(self.bytes);
        }
        Ok(())
    }

    /// Room for a piece and the end behind it, well ahead where the disk has that much.
    fn make_room(&mut self, piece_bytes: u64) -> io::Result<()> {
        let needed = self.bytes + piece_bytes + self.end_bytes;
        if self.end_bytes == 0 || needed <= self.room {
            return Ok(());
        }
        let ahead = needed.next_multiple_of(ROOM_BYTES);
        self.room = match self.file.reserve(self.bytes..ahead) {
            Ok(()) => ahead,
            Err(_) => self.file.reserve(self.bytes..needed).map(|()| needed)?,
        };
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

    /// The same, where what was appended is not durable and what came before it is.
    pub(crate) fn keep_only(&mut self, mark: Mark) {
        self.unsure = false;
        self.take_back(mark);
    }

    /// Cuts off what may lie behind the whole pieces.
    pub(crate) fn mend(&mut self) -> io::Result<()> {
        if self.torn {
            if self.file.bytes()? < self.bytes {
                return Err(io::Error::other("somebody else has cut the file"));
            }
            self.file.truncate(self.bytes)?;
            (self.torn, self.room) = (false, self.bytes);
            // The room for the end was behind the cut; somebody else may have been quicker.
            let _ = self.make_room(0);
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
/// Taken from the disk at once, so that this costs no call for each event.
const ROOM_BYTES: u64 = 4 << 20;
const COPY_BYTES: usize = 1 << 20;
