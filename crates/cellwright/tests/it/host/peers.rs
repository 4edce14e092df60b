//! Who talks to a host, and whom commands talk to: other versions, other users, other programs.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};

use super::Place;

#[test]
fn what_is_no_message_does_no_harm() {
    let place = Place::new();
    let pid = place.start();
    // Somebody who never says anything, somebody who stops in the middle.
    let silent = place.connect();
    let mut half = place.connect();
    half.say(b"{\"hello\":");
    for garbage in [
        &b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..],
        b"\0\0\0\0\n",
        b"[]\n",
        b"{\"n\":99999999999999}\n",
        b"{\"do\":\"stop\"}\n",
    ] {
        let mut line = place.connect();
        line.say(garbage);
        let answer = line.hear();
        assert!(answer["error"]["code"].is_string(), "{answer}");
        assert_eq!(line.rest(), "");
    }
    let mut line = place.connect();
    line.say_json(&json!({"hello": {"protocol": 3}}));
    line.hear();
    line.say_json(&json!({"what": 1}));
    assert_eq!(line.hear()["error"]["code"], "not_understood");
    line.say_json(&json!({"do": "dance"}));
    assert_eq!(line.hear()["error"]["code"], "unknown_request");
    line.say(b"{\"do\":\"dance\",\"n\":3}\nabc{\"do\":\"status\"}\n");
    assert_eq!(line.hear()["error"]["code"], "unknown_request");
    let status = line.hear();
    assert_eq!(status["status"]["pid"], pid);
    drop(half);
    // Told after five seconds, and let go.
    let mut silent = silent;
    assert_eq!(silent.hear()["error"]["code"], "no_hello");
    assert_eq!(silent.rest(), "");
    assert_eq!(place.status()["pid"], pid);
}

#[test]
fn a_client_of_another_version_is_told_and_can_still_ask_and_stop() {
    let place = Place::new();
    let pid = place.start();
    for protocol in [1, 4] {
        let mut line = place.connect();
        line.say_json(&json!({"hello": {"protocol": protocol, "version": "9", "new": [1]}}));
        let hello = line.hear()["hello"].take();
        assert_eq!(
            (&hello["protocol"], &hello["pid"]),
            (&json!(3), &json!(pid))
        );
        line.say_json(&json!({"do": "execute", "code": "1"}));
        assert_eq!(line.hear()["error"]["code"], "other_protocol");
        line.say_json(&json!({"do": "status"}));
        assert_eq!(line.hear()["status"]["pid"], pid);
    }
    let mut line = place.connect();
    line.say_json(&json!({"hello": {"protocol": 7}}));
    line.hear();
    line.say_json(&json!({"do": "stop"}));
    assert_eq!(line.hear(), json!({"end": true, "ended": {}}));
    super::eventually("it does not end", || !super::is_host(pid, ""));
}

/// Plays a host of another version until it is told to stop.
fn play_host(place: &Place, protocol: u32) -> JoinHandle<()> {
    fs::DirBuilder::new()
        .mode(0o700)
        .create(&place.folder)
        .unwrap();
    let listener = UnixListener::bind(place.file("host.sock")).unwrap();
    let pid = std::process::id();
    let record = json!({
        "pid": pid, "protocol": protocol, "version": "0.9", "socket": "host.sock",
        "instance": "played", "started": 0, "born": null, "later": true,
    });
    fs::write(place.file("host.json"), record.to_string()).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut writer = stream.unwrap();
            let reader = BufReader::new(writer.try_clone().unwrap());
            for line in reader.lines() {
                let said: Value = serde_json::from_str(&line.unwrap()).unwrap();
                let answer = match said["do"].as_str() {
                    None => json!({"hello": {
                        "protocol": protocol, "version": "0.9", "pid": pid, "instance": "played",
                    }}),
                    Some("status") => json!({"end": 1, "status": {
                        "pid": pid, "version": "0.9", "protocol": protocol,
                    }}),
                    Some("stop") => json!({"end": 1, "ended": {"sessions": 3}}),
                    Some(other) => panic!("{other} was asked for"),
                };
                writer.write_all(format!("{answer}\n").as_bytes()).unwrap();
                if said["do"] == "stop" {
                    return;
                }
            }
        }
    })
}

#[test]
fn a_host_of_another_version_is_told_and_can_be_stopped() {
    for protocol in [1, 4] {
        let place = Place::new();
        let played = play_host(&place, protocol);
        let ran = place.host(&["start"]).exits(2);
        let words = format!("is of version 0.9 and speaks protocol {protocol}");
        assert!(ran.stderr.contains(&words), "{}", ran.stderr);
        assert!(
            ran.stderr.contains("`cellwright host stop`"),
            "{}",
            ran.stderr
        );
        let found = place.context.run(&["doctor", "--json"]).stdout;
        assert!(found.contains("\"host-other-protocol\""), "{found}");
        let status = place.host(&["status"]).exits(0).stdout;
        assert!(status.contains("this command speaks 3"), "{status}");
        let stopped = place.host(&["stop"]).exits(0).stdout;
        assert!(stopped.contains("ended sessions: 3"), "{stopped}");
        played.join().unwrap();
        assert_eq!(place.status()["running"], false);
    }
}

#[test]
fn another_user_is_turned_away() {
    let place = Place::new();
    place.start();
    // Only root can become somebody else; nobody but root can get past the folder.
    let script = "import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\n\
                  s.sendall(b'{\"hello\":{\"protocol\":2}}\\n')\nprint(len(s.recv(9)))";
    let as_nobody = |arguments: &[&str]| {
        Command::new("setpriv")
            .args(["--reuid=65534", "--clear-groups"])
            .args(["python3", "-c", script])
            .args(arguments)
            .output()
    };
    let socket = place.file("host.sock").display().to_string();
    let Ok(shut_out) = as_nobody(&[&socket]) else {
        return;
    };
    let words = String::from_utf8_lossy(&shut_out.stderr).into_owned();
    if !words.contains("PermissionError") || words.contains("setpriv") {
        eprintln!("not run: {words}");
        return;
    }
    // And if folder and socket were open by some mishap:
    for path in place.file("host.sock").ancestors() {
        if path.starts_with(place.context.home()) {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
            fs::set_permissions(path, mode).unwrap();
        }
    }
    let turned_away = as_nobody(&[&socket]).unwrap();
    let said = String::from_utf8_lossy(&turned_away.stdout).into_owned();
    let words = String::from_utf8_lossy(&turned_away.stderr).into_owned();
    assert!(said == "0\n" || words.contains("reset"), "{said}{words}");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    fs::set_permissions(&place.folder, mode).unwrap();
    assert!(
        place
            .log()
            .contains("a client of user 65534 was turned away")
    );
}
