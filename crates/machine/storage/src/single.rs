//! A file of few events, in memory.

use eformat::{DataSeparator, FileEnd};

use crate::write_error::WriteError;
use crate::writer::event_bytes;
use crate::writer_config::WriterConfig;

/// A whole file with these events in it, as a [`Writer`](crate::Writer) would make it.
///
/// # Errors
///
/// A part of its name is not legal, or the bytes of an event are not one event.
pub fn file_of(config: &WriterConfig, events: &[&[u8]]) -> Result<Vec<u8>, WriteError> {
    let mut file = config.file_header(&config.first_name()?, 1).emit();
    let mut bytes = 0;
    for (block_number, event) in (1..).zip(events) {
        let block_bytes = event_bytes(&[event])?;
        file.extend(DataSeparator { block_number, block_bytes }.emit());
        file.extend(*event);
        bytes += u64::from(block_bytes);
    }
    let (events, megabytes) = (events.len() as u32, FileEnd::megabytes(bytes));
    let closed = (config.clock)();
    let end = FileEnd { closed, events, megabytes, sequence_events: events, sequence_megabytes: megabytes, status: 1 };
    end.emit(&mut file);
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_file_like_any_other() {
        let event = |global_id: u64| {
            let mut event = Vec::new();
            let header = eformat::EventHeader { run_number: 7, global_id, ..eformat::EventHeader::default() };
            let trailer = eformat::event_envelope(&header, core::iter::empty(), true, &mut event);
            event.extend(trailer.into_iter().flatten());
            event
        };
        let config = WriterConfig { run_number: 7, ..WriterConfig::default() };
        let file = file_of(&config, &[&event(1), &event(2)]).unwrap();
        assert_eq!(eformat::check_file(&file, eformat::CheckOptions::default()), []);
        let events: Vec<_> = eformat::file_events(&file).unwrap().map(Result::unwrap).collect();
        assert_eq!(events.len(), 2);
    }
}
