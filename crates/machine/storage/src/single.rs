//! A file of one event, in memory.

use eformat::{DataSeparator, FileEnd};

use crate::write_error::WriteError;
use crate::writer::event_bytes;
use crate::writer_config::WriterConfig;

/// A whole file with one event in it, as a [`Writer`](crate::Writer) would make it.
///
/// # Errors
///
/// A part of its name is not legal, or the bytes are not one event.
pub fn file_of(config: &WriterConfig, event: &[u8]) -> Result<Vec<u8>, WriteError> {
    let block_bytes = event_bytes(&[event])?;
    let mut file = config.file_header(&config.first_name()?, 1).emit();
    file.extend(DataSeparator { block_number: 1, block_bytes }.emit());
    file.extend(event);
    let megabytes = FileEnd::megabytes(u64::from(block_bytes));
    let closed = (config.clock)();
    let end = FileEnd { closed, events: 1, megabytes, sequence_events: 1, sequence_megabytes: megabytes, status: 1 };
    end.emit(&mut file);
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_file_like_any_other() {
        let mut event = Vec::new();
        let header = eformat::EventHeader { run_number: 7, ..eformat::EventHeader::default() };
        let trailer = eformat::event_envelope(&header, core::iter::empty(), true, &mut event);
        event.extend(trailer.into_iter().flatten());
        let config = WriterConfig { run_number: 7, ..WriterConfig::default() };
        let file = file_of(&config, &event).unwrap();
        assert_eq!(eformat::check_file(&file, eformat::CheckOptions::default()), []);
        let events: Vec<_> = eformat::file_events(&file).unwrap().map(Result::unwrap).collect();
        assert_eq!(events.len(), 1);
    }
}
