//! What a fuzzer and its corpus feed with bytes.

use base::time::Time;

use crate::frame::{ByteOrder, Counter, Extent, Field, FrameFormat, Sorter};
use crate::greeting::{Greeting, Welcome, text};
use crate::inbox::Inbox;
use crate::kind::Kind;
use crate::record::{HEAD_BYTES, TEXT_BYTES_MAX};

/// Takes any bytes as a description and a datagram apart, as a board's line does. Frames are whole, and come out in order.
///
/// # Panics
/// If they are not, or do not.
pub fn check_any_datagram(bytes: &[u8]) {
    let Some((description, mut rest)) = bytes.split_first_chunk::<8>() else { return };
    let [flags, header, at, width, counter_at, counter_width, modulus, plus] = *description;
    let order = if flags & 1 == 0 { ByteOrder::Big } else { ByteOrder::Little };
    let field = |at: u8, width: u8| Field { at: at.into(), width: usize::from(width % 8) + 1, order };
    let extent = match flags >> 1 & 3 {
        0 => Extent::Whole,
        1 => Extent::Fixed(usize::from(plus)),
        _ => Extent::Said { field: field(at, width), unit: u64::from(flags >> 3), plus: plus.into() },
    };
    let modulus = (modulus > 1).then_some(modulus.into());
    let counter = Counter { field: field(counter_at, counter_width), modulus };
    let format = FrameFormat {
        header: header.into(),
        strip: flags & 0x80 != 0,
        extent,
        counter: Some(counter),
        time: Vec::new(),
    };
    let mut unwrapping = counter.follow();
    let (mut sorter, mut newest, mut came) = (Sorter::new(), None, 0_u64);
    while let Ok(Some(len)) = format.len_of(rest, rest.len()) {
        assert!(len > 0 && len >= format.header, "a frame holds its header");
        let (frame, others) = rest.split_at(len);
        let payload = format.payload(frame).expect("the header is there");
        assert_eq!(payload.len(), if format.strip { len - format.header } else { len });
        if let Some(number) = counter.field.read(frame).and_then(|count| unwrapping.whole_within(count, 1 << 30)) {
            came += u64::from(sorter.push(Time::ZERO, number, ()));
        }
        while let Some((number, ())) = sorter.pop(Time::ZERO, others.is_empty()) {
            assert!(newest < Some(number), "frames come out in order");
            (newest, came) = (Some(number), came - 1);
        }
        rest = others;
    }
    assert_eq!(came, sorter.restart() as u64, "what went in came out, or is held");
}

/// Reads any bytes as records, as they come in pieces of all lengths. What is understood comes out unchanged.
///
/// # Panics
/// If it does not.
pub fn check_any_stream(bytes: &[u8]) {
    let mut inbox = Inbox::new(HEAD_BYTES + TEXT_BYTES_MAX);
    let (mut rest, mut understood) = (bytes, 0);
    loop {
        match inbox.record(TEXT_BYTES_MAX) {
            Err(_) => return,
            Ok(Some((head, body))) => {
                let record = [&head.encode()[..], body].concat();
                assert_eq!(bytes[understood..understood + record.len()], record, "a record comes out unchanged");
                let again = match head.kind {
                    Kind::Greeting => Greeting::decode(body).ok().map(|greeting| greeting.encode()),
                    Kind::Welcome => Welcome::decode(&head, body).ok().map(|welcome| welcome.encode()),
                    Kind::Status => {
                        text(Kind::Status, body).ok().map(|text| [&head.encode()[..], text.as_bytes()].concat())
                    }
                    _ => None,
                };
                // Of the head of a greeting nothing counts but its kind and length.
                assert!(
                    again.is_none_or(|again| again[HEAD_BYTES..] == record[HEAD_BYTES..]),
                    "nor does its body change"
                );
                understood += record.len();
            }
            Ok(None) if rest.is_empty() => return,
            Ok(None) => {
                let room = inbox.room();
                // From one byte at a time to as much as there is room for.
                let len = rest.len().min(room.len()).min(1 + (rest.len() * 7) % 61);
                assert!(len > 0, "a record that may come has room");
                room[..len].copy_from_slice(&rest[..len]);
                inbox.filled(len);
                rest = &rest[len..];
            }
        }
    }
}
