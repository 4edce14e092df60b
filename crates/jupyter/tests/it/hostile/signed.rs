//! Frames that are no message, or none that is signed, or make no sense although they are.

use bytes::Bytes;
use cellwright_jupyter::message::Message;
use cellwright_jupyter::wire::{Wire, WireError};
use serde_json::{Value, json};

use crate::support::KEY;

fn refusal(frames: Vec<Bytes>) -> WireError {
    match Wire::new(KEY).decode(frames) {
        Ok(message) => panic!("accepted: {message:?}"),
        Err(error) => error,
    }
}

fn good() -> Vec<Bytes> {
    Wire::new(KEY).encode(&Message::new("good", "s", &json!({"a": 1})))
}

/// Frames with that header, rightly signed.
fn with_header(header: &[u8]) -> Vec<Bytes> {
    let mut message = Message::new("good", "s", &json!({}));
    message.raw_header = Bytes::copy_from_slice(header);
    Wire::new(KEY).encode(&message)
}

#[test]
fn frames_without_a_delimiter_or_with_too_few_after_it_are_refused() {
    assert_eq!(refusal(Vec::new()), WireError::NoDelimiter);
    assert_eq!(refusal(good()[1..].to_vec()), WireError::NoDelimiter);
    let near = Bytes::from_static(b"<IDS|MSG> ");
    assert_eq!(
        refusal([vec![near], good()[1..].to_vec()].concat()),
        WireError::NoDelimiter
    );
    for found in 0..5 {
        let frames = good()[..=found].to_vec();
        assert_eq!(refusal(frames), WireError::TooShort { found });
    }
}

#[test]
fn only_the_one_right_signature_will_do() {
    let right = good();
    let digits = String::from_utf8(right[1].to_vec()).unwrap();
    let mut wrong = vec![
        digits.to_uppercase(),
        digits[1..].to_owned(),
        digits[2..].to_owned(),
        format!("{digits}00"),
        format!(" {digits}"),
        digits[..32].to_owned(),
        String::new(),
        "0".repeat(64),
        "g".repeat(64),
        "é".repeat(32),
        digits.chars().rev().collect(),
    ];
    // One bit off, anywhere.
    for at in 0..digits.len() {
        let mut bytes = digits.clone().into_bytes();
        bytes[at] ^= 1;
        wrong.push(String::from_utf8(bytes).unwrap());
    }
    for signature in wrong {
        if signature == digits {
            continue;
        }
        let mut frames = right.clone();
        frames[1] = Bytes::from(signature.clone());
        assert_eq!(refusal(frames), WireError::BadSignature, "{signature}");
    }
    // What is refused is not remembered: it could keep the right one out.
    let mut wire = Wire::new(KEY);
    let mut forged = right.clone();
    forged[5] = Bytes::from_static(b"{}");
    wire.decode(forged).unwrap_err();
    wire.decode(right.clone()).unwrap();
    assert_eq!(wire.decode(right).unwrap_err(), WireError::Replayed);
}

#[test]
fn a_header_that_does_not_say_which_message_it_is_is_refused() {
    let deep = [
        b"{\"x\":".repeat(100_000),
        b"1".to_vec(),
        b"}".repeat(100_000),
    ]
    .concat();
    let deep_list = [b"[".repeat(100_000), b"]".repeat(100_000)].concat();
    let in_a_field = [
        b"{\"msg_type\":\"x\",\"date\":".to_vec(),
        deep_list.clone(),
        b"}".to_vec(),
    ]
    .concat();
    let headers: [&[u8]; 16] = [
        b"",
        b" ",
        b"not JSON",
        b"null",
        b"7",
        b"\"execute_request\"",
        b"[\"execute_request\"]",
        b"{}",
        b"{\"msg_id\": \"1\"}",
        b"{\"msg_type\": \"\"}",
        b"{\"msg_type\": null}",
        b"{\"msg_type\": {\"msg_type\": \"x\"}}",
        b"{\"msg_type\": \"x\xff\"}",
        &deep,
        &deep_list,
        &in_a_field,
    ];
    for header in headers {
        let error = refusal(with_header(header));
        let start = String::from_utf8_lossy(&header[..header.len().min(40)]);
        assert!(
            matches!(error, WireError::BadHeader { .. }),
            "{start}: {error:?}"
        );
    }
}

#[test]
fn a_header_that_is_odd_in_other_places_is_read() {
    let headers: [&[u8]; 4] = [
        br#"{"msg_type":"x","msg_id":null,"session":7,"username":[],"date":{},"version":true}"#,
        br#"{"msg_type":"x"}"#,
        br#" {"more":{"a":[1]},"msg_type":"x","date":null,"subshell_id":4} "#,
        b"{\"msg_type\":\"x\",\"username\":{\"msg_type\":\"y\"}}",
    ];
    for header in headers {
        let frames = with_header(header);
        let message = Wire::new(KEY).decode(frames).unwrap();
        assert_eq!(message.header.msg_type, "x");
        assert_eq!(message.header.msg_id, "");
        assert_eq!(message.header.subshell_id, None);
    }
}

#[test]
fn what_is_odd_beside_the_header_harms_nobody() {
    let deep = Bytes::from([b"[".repeat(100_000), b"]".repeat(100_000)].concat());
    let odd = [
        Bytes::new(),
        Bytes::from_static(b"null"),
        Bytes::from_static(b"[1, 2"),
        Bytes::from_static(b"\xff\xfe"),
        Bytes::from_static(b"{\"msg_id\": 7}"),
        deep,
    ];
    for part in odd {
        let mut message = Message::new("x", "s", &json!({}));
        message.parent = part.clone();
        message.metadata = part.clone();
        message.content = part.clone().into();
        let came = Wire::new(KEY)
            .decode(Wire::new(KEY).encode(&message))
            .unwrap();
        assert_eq!(came.parent_id(), "");
        assert_eq!(came.content, part);
        let value = came.value();
        assert!(value.is_null() || value == json!({"msg_id": 7}), "{value}");
    }
    let mut message = Message::new("x", "s", &Value::Null);
    message.parent = Bytes::from_static(b"null");
    assert_eq!(message.parent_id(), "");
}

#[test]
fn ten_thousand_buffers_are_a_message_like_any_other() {
    let mut message = Message::new("comm_msg", "s", &json!({}));
    message.buffers = (0..10_000)
        .map(|number: u32| number.to_string().into())
        .collect();
    let came = Wire::new(KEY)
        .decode(Wire::new(KEY).encode(&message))
        .unwrap();
    assert_eq!(came.buffers, message.buffers);
}
