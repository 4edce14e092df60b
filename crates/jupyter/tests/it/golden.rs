//! Jupyter's own library and we sign alike, in both directions.

use std::io::Write;
use std::process::{Command, Stdio};

use bytes::Bytes;
use cellwright_jupyter::frame::Frame;
use cellwright_jupyter::message::Message;
use cellwright_jupyter::wire::{Wire, WireError};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{KEY, oracle, python};

#[derive(Deserialize)]
struct Golden {
    key: String,
    messages: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    frames: Vec<String>,
    idents: usize,
    header: Value,
    parent: Value,
    content: Value,
    buffers: usize,
}

fn golden() -> Golden {
    let text = std::fs::read(oracle("golden.json")).unwrap();
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
fn what_jupyter_has_signed_is_read_and_written_to_the_letter() {
    let golden = golden();
    assert!(golden.messages.len() > 20);
    let mut wire = Wire::new(&golden.key);
    for case in &golden.messages {
        let name = &case.name;
        let frames: Vec<Bytes> = case.frames.iter().map(|frame| unhex(frame)).collect();
        let message = wire.decode(frames.clone());
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
        assert_eq!(wire.encode(&message), frames, "{name}");
        assert_eq!(wire.decode(frames).unwrap_err(), WireError::Replayed);
    }
}

#[test]
fn what_is_signed_with_another_key_is_refused() {
    for key in ["another", "2f9c7c9e-5a0f4a1f6d5b7e0c1d2e3f4"] {
        let mut wire = Wire::new(key);
        for case in golden().messages {
            let frames = case.frames.iter().map(|frame| unhex(frame)).collect();
            let refused = wire.decode(frames).unwrap_err();
            assert_eq!(refused, WireError::BadSignature, "{}", case.name);
        }
    }
}

#[test]
fn any_change_to_what_is_signed_is_refused() {
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
            let refused = Wire::new(&golden.key).decode(frames).unwrap_err();
            assert_eq!(refused, WireError::BadSignature, "{}: {part}", case.name);
        }
    }
}

/// What Jupyter's own library says about these frames.
fn verified(key: &str, messages: &[Vec<Bytes>]) -> Vec<Value> {
    let mut child = Command::new(python())
        .arg(oracle("verify.py"))
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
fn jupyter_accepts_what_we_sign_and_refuses_it_the_second_time() {
    let wire = Wire::new(KEY);
    let cause = Message::new("execute_request", "client", &json!({"code": "é"}));
    let mut full = cause.reply(
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
    let mut forged = wire.encode(&Message::new("forged", "us", &json!({})));
    forged[4] = Bytes::from_static(br#"{"x":1}"#);
    let messages = [
        wire.encode(&full),
        wire.encode(&empty),
        wire.encode(&full),
        forged,
        Wire::new("another").encode(&Message::new("other", "us", &json!({}))),
    ];
    let said = verified(KEY, &messages);
    for (message, said) in [(&full, &said[0]), (&empty, &said[1])] {
        assert_eq!(
            said["header"]["msg_id"],
            json!(message.header.msg_id),
            "{said}"
        );
        assert_eq!(said["header"]["msg_type"], json!(message.header.msg_type));
        let date = said["header"]["date"].as_str().unwrap();
        assert_eq!(date.replace("+00:00", "Z"), message.header.date);
        assert_eq!(said["content"], message.value());
        let idents: Vec<String> = message.identities.iter().map(|ident| hex(ident)).collect();
        assert_eq!(said["idents"], json!(idents));
        let buffers: Vec<String> = message
            .buffers
            .iter()
            .map(|buffer| hex(&buffer.bytes().unwrap()))
            .collect();
        assert_eq!(said["buffers"], json!(buffers));
    }
    assert_eq!(said[0]["parent"]["msg_id"], json!(cause.header.msg_id));
    assert_eq!(said[0]["metadata"], json!({"a": {}}));
    let error = |at: usize| said[at]["error"].as_str().unwrap_or_default().to_owned();
    assert!(error(2).starts_with("Duplicate Signature"), "{}", said[2]);
    assert!(error(3).starts_with("Invalid Signature"), "{}", said[3]);
    assert!(error(4).starts_with("Invalid Signature"), "{}", said[4]);
}

#[test]
fn without_a_key_nothing_is_signed_and_jupyter_agrees() {
    let message = Message::new("status", "us", &json!({"a": 1}));
    let frames = Wire::new("").encode(&message);
    assert_eq!(frames[1], "");
    let said = verified("", std::slice::from_ref(&frames));
    assert_eq!(said[0]["content"], json!({"a": 1}), "{}", said[0]);
    let mut wire = Wire::new("");
    wire.decode(frames).unwrap();
}
