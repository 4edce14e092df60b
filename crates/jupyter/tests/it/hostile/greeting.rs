//! Greetings that are none.

use cellwright_jupyter::zmtp::{Role, ZmtpError};

use super::{frame, greeting, met, opening, property, ready};

async fn refusal(bytes: &[u8]) -> ZmtpError {
    match met(Role::Dealer, bytes).await {
        Ok(_) => panic!("accepted: {bytes:?}"),
        Err(error) => error,
    }
}

/// A greeting with some of its bytes changed, and a READY after it.
fn changed(at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut opening = opening("ROUTER");
    opening[at..at + bytes.len()].copy_from_slice(bytes);
    opening
}

#[tokio::test]
async fn who_does_not_speak_our_language_is_told_apart() {
    let http = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 0\r\n\r\n";
    let ssh = [b"SSH-2.0-OpenSSH_9.6\r\n".repeat(4)].concat();
    let not = [
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
    for bytes in not {
        let error = refusal(&bytes).await;
        match bytes.len() {
            0..64 => assert!(matches!(error, ZmtpError::Io(_)), "{error:?}"),
            _ => assert!(matches!(error, ZmtpError::NotZmtp), "{error:?}"),
        }
    }
    // A later version is fine: it speaks ours, too.
    met(Role::Dealer, &changed(10, &[9, 9])).await.unwrap();
}

#[tokio::test]
async fn another_mechanism_is_named() {
    for name in ["CURVE", "PLAIN", "GSSAPI", "NULLX", "", "null"] {
        let mut mechanism = [0; 20];
        mechanism[..name.len()].copy_from_slice(name.as_bytes());
        match refusal(&changed(12, &mechanism)).await {
            ZmtpError::Mechanism { mechanism } => assert_eq!(mechanism, name),
            error => panic!("{error:?}"),
        }
    }
    // As long as there is room, and no text.
    let error = refusal(&changed(12, &[0xc3; 20])).await;
    assert!(matches!(error, ZmtpError::Mechanism { .. }), "{error:?}");
}

#[tokio::test]
async fn sockets_that_do_not_go_with_ours_are_named() {
    for kind in [
        "PUB", "SUB", "XPUB", "PUSH", "PULL", "PAIR", "", "router", "ROUTERX",
    ] {
        match refusal(&opening(kind)).await {
            ZmtpError::WrongPeer { found } => assert_eq!(found, kind),
            error => panic!("{error:?}"),
        }
    }
    let nameless = [greeting(), ready(&property("Identity", b"x"))].concat();
    let error = refusal(&nameless).await;
    assert!(matches!(error, ZmtpError::WrongPeer { .. }), "{error:?}");
}

#[tokio::test]
async fn an_error_is_passed_on_in_its_own_words() {
    let error = |carries: &[u8]| {
        let command = [&b"\x05ERROR"[..], carries].concat();
        [greeting(), frame(4, &command)].concat()
    };
    let cases: [(&[u8], &str); 5] = [
        (b"\x07go away", "go away"),
        (b"\x02go away", "go"),
        (b"\xffgo", "go"),
        (b"\x01\xff", "\u{fffd}"),
        (b"", ""),
    ];
    for (carries, words) in cases {
        match refusal(&error(carries)).await {
            ZmtpError::Refused { reason } => assert_eq!(reason, words),
            error => panic!("{error:?}"),
        }
    }
}

#[tokio::test]
async fn a_first_command_that_makes_no_sense_is_refused() {
    let kind = property("Socket-Type", b"ROUTER");
    let mut cut = Vec::new();
    // Every property cut short, at every byte but the last.
    for end in 1..kind.len() {
        cut.push(ready(&kind[..end]));
    }
    let mut long = kind.clone();
    long.extend([1, b'x', 0xff, 0xff, 0xff, 0xff]);
    cut.push(ready(&long));
    let mut identity = kind.clone();
    identity.extend(property("Identity", &[b'x'; 256]));
    cut.push(ready(&identity));
    for bytes in cut {
        let error = refusal(&[greeting(), bytes].concat()).await;
        let expected = matches!(error, ZmtpError::Malformed { .. });
        assert!(expected, "{error:?}");
    }
    let other = [
        frame(0, b"a message"),
        frame(4, b"\x05HELLO"),
        frame(4, b"\x04PING\0\0"),
    ];
    for bytes in other {
        let error = refusal(&[greeting(), bytes].concat()).await;
        assert!(matches!(error, ZmtpError::NotZmtp), "{error:?}");
    }
}

#[tokio::test]
async fn a_greeting_that_ends_early_is_an_error_wherever_it_ends() {
    let opening = opening("ROUTER");
    for end in 0..opening.len() {
        let error = refusal(&opening[..end]).await;
        assert!(matches!(error, ZmtpError::Io(_)), "{end}: {error:?}");
    }
    met(Role::Dealer, &opening).await.unwrap();
}
