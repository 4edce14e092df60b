//! The codec and `jupyter_client` accept each other's signatures.

use std::io::Write;
use std::process::{Command, Stdio};

use bytes::Bytes;
use cellwright_jupyter::codec::{CodecError, MessageCodec};
use cellwright_jupyter::frame::Frame;
use cellwright_jupyter::message::Message;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{KEY, oracle_script, python};

#[derive(Deserialize)]
struct Golden {
    key: String,
    messages: Vec<GoldenMessage>,
}

#[derive(Deserialize)]
struct GoldenMessage {
    name: String,
    frames: Vec<String>,
    idents: usize,
    header: Value,
    parent: Value,
    content: Value,
    buffers: usize,
}

fn golden() -> Golden {
    let text = std::fs::read(oracle_script("golden.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

fn unhex(text: &str) -> Bytes {
    let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(digit).collect()
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    for byte in bytes {
        write!(text, "{byte:02x}").unwrap();
    }
    text
}

#[test]
fn messages_signed_by_jupyter_are_decoded_and_encoded_byte_for_byte() {
    let golden = golden();
    assert!(golden.messages.len() > 20);
    let mut codec = MessageCodec::new(&golden.key);
    for case in &golden.messages {
        let name = &case.name;
        let frames: Vec<Bytes> = case.frames.iter().map(|frame| unhex(frame)).collect();
        let message = codec.decode(frames.clone());
        let message = message.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(message.identities.len(), case.idents, "{name}");
        assert_eq!(message.buffers.len(), case.buffers, "{name}");
        assert_eq!(message.value(), case.content, "{name}");
        let text = |field: &str| case.header[field].as_str().unwrap_or_default().to_owned();
        let header = &message.header;
        let fields = [
            ("msg_id", &header.msg_id),
            ("msg_type", &header.msg_type),
            ("session", &header.session),
            ("username", &header.username),
            ("date", &header.date),
            ("version", &header.version),
        ];
        for (field, found) in fields {
            assert_eq!(found, &text(field), "{name}: {field}");
        }
        let subshell = case.header["subshell_id"].as_str();
        assert_eq!(header.subshell_id.as_deref(), subshell, "{name}");
        let parent = case.parent["msg_id"].as_str().unwrap_or_default();
        assert_eq!(message.parent_id(), parent, "{name}");
        assert_eq!(codec.encode(&message), frames, "{name}");
        assert_eq!(codec.decode(frames).unwrap_err(), CodecError::Replayed);
    }
}

#[test]
fn messages_signed_with_another_key_are_rejected() {
    for key in ["another", "2f9c7c9e-5a0f4a1f6d5b7e0c1d2e3f4"] {
        let mut codec = MessageCodec::new(key);
        for case in golden().messages {
            let frames = case.frames.iter().map(|frame| unhex(frame)).collect();
            let error = codec.decode(frames).unwrap_err();
            assert_eq!(error, CodecError::BadSignature, "{}", case.name);
        }
    }
}

#[test]
fn any_change_of_a_signed_part_is_rejected() {
    let golden = golden();
    for case in &golden.messages {
        let frames: Vec<Bytes> = case.frames.iter().map(|frame| unhex(frame)).collect();
        // Signature, header, parent, metadata, content.
        for part in case.idents + 1..case.idents + 6 {
            let mut frames = frames.clone();
            let mut bytes = frames[part].to_vec();
            if let Some(last) = bytes.last_mut() {
                *last ^= 1;
            }
            frames[part] = Bytes::from(bytes);
            let error = MessageCodec::new(&golden.key).decode(frames).unwrap_err();
            assert_eq!(error, CodecError::BadSignature, "{}: {part}", case.name);
        }
    }
}

/// Decodes messages with `jupyter_client`. Returns its results as JSON.
fn verify_with_jupyter(key: &str, messages: &[Vec<Bytes>]) -> Vec<Value> {
    let mut child = Command::new(python())
        .arg(oracle_script("verify.py"))
        .arg(key)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for frames in messages {
        let frames: Vec<String> = frames.iter().map(|frame| hex(frame)).collect();
        writeln!(stdin, "{}", json!(frames)).unwrap();
    }
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let lines = String::from_utf8(output.stdout).unwrap();
    lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn jupyter_accepts_our_signatures_once() {
    let codec = MessageCodec::new(KEY);
    let parent = Message::new("execute_request", "client", &json!({"code": "é"}));
    let mut full = parent.reply(
        "execute_reply",
        "us",
        &json!({"ß": [1, 2.5, null, "🙂\n\0"]}),
    );
    full.identities = vec![
        Bytes::from_static(b"topic"),
        Bytes::from_static(b"\x00\xff"),
    ];
    full.buffers = vec![Frame::default(), Frame::from(vec![0xff; 1000])];
    full.metadata = Bytes::from_static(br#"{"a": {}}"#);
    let empty = Message::new("status", "us", &json!({}));
    let mut forged = codec.encode(&Message::new("forged", "us", &json!({})));
    forged[4] = Bytes::from_static(br#"{"x":1}"#);
    let messages = [
        codec.encode(&full),
        codec.encode(&empty),
        codec.encode(&full),
        forged,
        MessageCodec::new("another").encode(&Message::new("other", "us", &json!({}))),
    ];
    let results = verify_with_jupyter(KEY, &messages);
    for (message, result) in [(&full, &results[0]), (&empty, &results[1])] {
        assert_eq!(
            result["header"]["msg_id"],
            json!(message.header.msg_id),
            "{result}"
        );
        assert_eq!(result["header"]["msg_type"], json!(message.header.msg_type));
        let date = result["header"]["date"].as_str().unwrap();
        assert_eq!(date.replace("+00:00", "Z"), message.header.date);
        assert_eq!(result["content"], message.value());
        let idents: Vec<String> = message.identities.iter().map(|ident| hex(ident)).collect();
        assert_eq!(result["idents"], json!(idents));
        let buffers: Vec<String> = message
            .buffers
            .iter()
            .map(|buffer| hex(&buffer.bytes().unwrap()))
            .collect();
        assert_eq!(result["buffers"], json!(buffers));
    }
    assert_eq!(results[0]["parent"]["msg_id"], json!(parent.header.msg_id));
    assert_eq!(results[0]["metadata"], json!({"a": {}}));
    let error = |at: usize| results[at]["error"].as_str().unwrap_or_default().to_owned();
    assert!(
        error(2).starts_with("Duplicate Signature"),
        "{}",
        results[2]
    );
    assert!(error(3).starts_with("Invalid Signature"), "{}", results[3]);
    assert!(error(4).starts_with("Invalid Signature"), "{}", results[4]);
}

#[test]
fn jupyter_accepts_unsigned_messages_without_a_key() {
    let message = Message::new("status", "us", &json!({"a": 1}));
    let frames = MessageCodec::new("").encode(&message);
    assert_eq!(frames[1], "");
    let results = verify_with_jupyter("", std::slice::from_ref(&frames));
    assert_eq!(results[0]["content"], json!({"a": 1}), "{}", results[0]);
    let mut codec = MessageCodec::new("");
    codec.decode(frames).unwrap();
}
