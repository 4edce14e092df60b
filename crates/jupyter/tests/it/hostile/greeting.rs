//! Invalid handshakes.

use cellwright_jupyter::zmtp::{SocketType, ZmtpError};

use super::{frame, greeting, handshake_with, opening, property, ready};

async fn handshake_error(bytes: &[u8]) -> ZmtpError {
    match handshake_with(SocketType::Dealer, bytes).await {
        Ok(_) => panic!("accepted: {bytes:?}"),
        Err(error) => error,
    }
}

/// A handshake with some bytes of the greeting changed.
fn changed(at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut opening = opening("ROUTER");
    opening[at..at + bytes.len()].copy_from_slice(bytes);
    opening
}

#[tokio::test]
async fn other_protocols_are_recognized() {
    let http = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 0\r\n\r\n";
    let ssh = [b"SSH-2.0-OpenSSH_9.6\r\n".repeat(4)].concat();
    let invalid = [
        http.to_vec(),
        ssh,
        vec![0; 64],
        vec![0xff; 8],
        changed(0, &[0xfe]),
        changed(9, &[0x7e]),
        // ZMTP 1 and 2.
        changed(10, &[0]),
        changed(10, &[1]),
        changed(10, &[2]),
    ];
    for bytes in invalid {
        let error = handshake_error(&bytes).await;
        match bytes.len() {
            0..64 => assert!(matches!(error, ZmtpError::Io(_)), "{error:?}"),
            _ => assert!(matches!(error, ZmtpError::NotZmtp), "{error:?}"),
        }
    }
    // A later version is compatible.
    handshake_with(SocketType::Dealer, &changed(10, &[9, 9]))
        .await
        .unwrap();
}

#[tokio::test]
async fn the_error_names_an_unsupported_mechanism() {
    for name in ["CURVE", "PLAIN", "GSSAPI", "NULLX", "", "null"] {
        let mut mechanism = [0; 20];
        mechanism[..name.len()].copy_from_slice(name.as_bytes());
        match handshake_error(&changed(12, &mechanism)).await {
            ZmtpError::UnsupportedMechanism { mechanism } => assert_eq!(mechanism, name),
            error => panic!("{error:?}"),
        }
    }
    // All 20 bytes, and not UTF-8.
    let error = handshake_error(&changed(12, &[0xc3; 20])).await;
    assert!(
        matches!(error, ZmtpError::UnsupportedMechanism { .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn the_error_names_an_incompatible_socket_type() {
    for socket_type in [
        "PUB", "SUB", "XPUB", "PUSH", "PULL", "PAIR", "", "router", "ROUTERX",
    ] {
        match handshake_error(&opening(socket_type)).await {
            ZmtpError::IncompatibleSocket { found } => assert_eq!(found, socket_type),
            error => panic!("{error:?}"),
        }
    }
    let without_type = [greeting(), ready(&property("Identity", b"x"))].concat();
    let error = handshake_error(&without_type).await;
    assert!(
        matches!(error, ZmtpError::IncompatibleSocket { .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn the_reason_of_an_error_command_is_reported() {
    let error = |data: &[u8]| {
        let command = [&b"\x05ERROR"[..], data].concat();
        [greeting(), frame(4, &command)].concat()
    };
    let cases: [(&[u8], &str); 5] = [
        (b"\x07go away", "go away"),
        (b"\x02go away", "go"),
        (b"\xffgo", "go"),
        (b"\x01\xff", "\u{fffd}"),
        (b"", ""),
    ];
    for (data, expected) in cases {
        match handshake_error(&error(data)).await {
            ZmtpError::PeerError { reason } => assert_eq!(reason, expected),
            error => panic!("{error:?}"),
        }
    }
}

#[tokio::test]
async fn an_invalid_first_command_is_rejected() {
    let socket_type = property("Socket-Type", b"ROUTER");
    let mut malformed = Vec::new();
    // The property truncated at every byte.
    for end in 1..socket_type.len() {
        malformed.push(ready(&socket_type[..end]));
    }
    let mut long = socket_type.clone();
    long.extend([1, b'x', 0xff, 0xff, 0xff, 0xff]);
    malformed.push(ready(&long));
    let mut identity = socket_type.clone();
    identity.extend(property("Identity", &[b'x'; 256]));
    malformed.push(ready(&identity));
    for bytes in malformed {
        let error = handshake_error(&[greeting(), bytes].concat()).await;
        let expected = matches!(error, ZmtpError::Malformed { .. });
        assert!(expected, "{error:?}");
    }
    let other = [
        frame(0, b"a message"),
        frame(4, b"\x05HELLO"),
        frame(4, b"\x04PING\0\0"),
    ];
    for bytes in other {
        let error = handshake_error(&[greeting(), bytes].concat()).await;
        assert!(matches!(error, ZmtpError::NotZmtp), "{error:?}");
    }
}

#[tokio::test]
async fn a_truncated_handshake_is_an_error() {
    let opening = opening("ROUTER");
    for end in 0..opening.len() {
        let error = handshake_error(&opening[..end]).await;
        assert!(matches!(error, ZmtpError::Io(_)), "{end}: {error:?}");
    }
    handshake_with(SocketType::Dealer, &opening).await.unwrap();
}
