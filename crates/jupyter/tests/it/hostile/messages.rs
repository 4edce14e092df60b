//! Frames without a message, with a wrong signature, or with invalid but signed parts.

use bytes::Bytes;
use cellwright_jupyter::codec::{CodecError, MessageCodec};
use cellwright_jupyter::message::Message;
use serde_json::{Value, json};

use crate::support::KEY;

fn decode_error(frames: Vec<Bytes>) -> CodecError {
    match MessageCodec::new(KEY).decode(frames) {
        Ok(message) => panic!("accepted: {message:?}"),
        Err(error) => error,
    }
}

fn valid_frames() -> Vec<Bytes> {
    MessageCodec::new(KEY).encode(&Message::new("good", "s", &json!({"a": 1})))
}

/// Correctly signed frames with this header.
fn with_header(header: &[u8]) -> Vec<Bytes> {
    let mut message = Message::new("good", "s", &json!({}));
    message.raw_header = Bytes::copy_from_slice(header);
    MessageCodec::new(KEY).encode(&message)
}

#[test]
fn frames_without_a_delimiter_or_with_too_few_parts_are_rejected() {
    assert_eq!(decode_error(Vec::new()), CodecError::NoDelimiter);
    assert_eq!(
        decode_error(valid_frames()[1..].to_vec()),
        CodecError::NoDelimiter
    );
    let similar = Bytes::from_static(b"<IDS|MSG> ");
    assert_eq!(
        decode_error([vec![similar], valid_frames()[1..].to_vec()].concat()),
        CodecError::NoDelimiter
    );
    for found in 0..5 {
        let frames = valid_frames()[..=found].to_vec();
        assert_eq!(decode_error(frames), CodecError::TooShort { found });
    }
}

#[test]
fn only_the_exact_signature_is_accepted() {
    let right = valid_frames();
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
    // One bit flipped, anywhere.
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
        assert_eq!(
            decode_error(frames),
            CodecError::BadSignature,
            "{signature}"
        );
    }
    // A rejected signature is not remembered: it would block the valid message.
    let mut codec = MessageCodec::new(KEY);
    let mut forged = right.clone();
    forged[5] = Bytes::from_static(b"{}");
    codec.decode(forged).unwrap_err();
    codec.decode(right.clone()).unwrap();
    assert_eq!(codec.decode(right).unwrap_err(), CodecError::Replayed);
}

#[test]
fn a_header_without_a_message_type_is_rejected() {
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
        let error = decode_error(with_header(header));
        let start = String::from_utf8_lossy(&header[..header.len().min(40)]);
        assert!(
            matches!(error, CodecError::BadHeader { .. }),
            "{start}: {error:?}"
        );
    }
}

#[test]
fn a_header_with_other_invalid_fields_is_decoded() {
    let headers: [&[u8]; 4] = [
        br#"{"msg_type":"x","msg_id":null,"session":7,"username":[],"date":{},"version":true}"#,
        br#"{"msg_type":"x"}"#,
        br#" {"more":{"a":[1]},"msg_type":"x","date":null,"subshell_id":4} "#,
        b"{\"msg_type\":\"x\",\"username\":{\"msg_type\":\"y\"}}",
    ];
    for header in headers {
        let frames = with_header(header);
        let message = MessageCodec::new(KEY).decode(frames).unwrap();
        assert_eq!(message.header.msg_type, "x");
        assert_eq!(message.header.msg_id, "");
        assert_eq!(message.header.subshell_id, None);
    }
}

#[test]
fn invalid_parts_other_than_the_header_are_accepted() {
    let deep = Bytes::from([b"[".repeat(100_000), b"]".repeat(100_000)].concat());
    let invalid = [
        Bytes::new(),
        Bytes::from_static(b"null"),
        Bytes::from_static(b"[1, 2"),
        Bytes::from_static(b"\xff\xfe"),
        Bytes::from_static(b"{\"msg_id\": 7}"),
        deep,
    ];
    for part in invalid {
        let mut message = Message::new("x", "s", &json!({}));
        message.parent = part.clone();
        message.metadata = part.clone();
        message.content = part.clone().into();
        let received = MessageCodec::new(KEY)
            .decode(MessageCodec::new(KEY).encode(&message))
            .unwrap();
        assert_eq!(received.parent_id(), "");
        assert_eq!(received.content, part);
        let value = received.value();
        assert!(value.is_null() || value == json!({"msg_id": 7}), "{value}");
    }
    let mut message = Message::new("x", "s", &Value::Null);
    message.parent = Bytes::from_static(b"null");
    assert_eq!(message.parent_id(), "");
}

#[test]
fn a_message_may_have_ten_thousand_buffers() {
    let mut message = Message::new("comm_msg", "s", &json!({}));
    message.buffers = (0..10_000)
        .map(|number: u32| number.to_string().into())
        .collect();
    let received = MessageCodec::new(KEY)
        .decode(MessageCodec::new(KEY).encode(&message))
        .unwrap();
    assert_eq!(received.buffers, message.buffers);
}
