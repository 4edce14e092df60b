//! Arbitrary frames as a message.
//!
//! Each frame is a byte that says how long it is, and its bytes. What has the length of a signature in the
//! place of one is replaced by the right one, or nothing but refusals would be seen.

#![no_main]

use cellwright_jupyter::frame::{Frame, Stored};
use cellwright_jupyter::message::Message;
use cellwright_jupyter::wire::{Wire, WireError};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut frames: Vec<Frame> = Vec::new();
    let mut rest = data;
    while let Some((&length, more)) = rest.split_first() {
        let (frame, more) = more.split_at(usize::from(length).min(more.len()));
        // Some of them are on disk.
        frames.push(match Stored::new(frame) {
            Ok(stored) if length % 5 == 3 => Frame::Stored(stored),
            _ => Frame::from(frame.to_vec()),
        });
        rest = more;
    }
    // Nobody can know the key.
    assert!(Wire::new("key").decode(frames.clone()).is_err());
    let Ok(message) = Wire::new("").decode(frames.clone()) else {
        return;
    };
    look(&message);
    let mut wire = Wire::new("key");
    let signed = wire.encode(&message);
    let same = |a: &Message, b: &Message| {
        (
            &a.header,
            &a.identities,
            &a.parent,
            &a.metadata,
            &a.content,
            &a.buffers,
        ) == (
            &b.header,
            &b.identities,
            &b.parent,
            &b.metadata,
            &b.content,
            &b.buffers,
        )
    };
    let again = wire.decode(signed.clone()).expect("it is signed");
    assert!(same(&message, &again));
    assert_eq!(
        wire.decode(signed.clone()).unwrap_err(),
        WireError::Replayed
    );
    // Whatever is changed in what is signed, somebody notices.
    let at = message.identities.len() + 2 + data.len() % 4;
    let mut forged = signed;
    forged[at] = bytes(&[&forged[at][..], b" "].concat());
    assert_eq!(
        Wire::new("key").decode(forged).unwrap_err(),
        WireError::BadSignature
    );
});

fn bytes<B: From<Vec<u8>>>(bytes: &[u8]) -> B {
    B::from(bytes.to_vec())
}

fn look(message: &Message) {
    message.parent_id();
    message.value();
    message.size();
    let reply = message.reply("reply", "session", &message.value());
    assert_eq!(reply.identities, message.identities);
}
