//! Who talks to a host, and whom commands talk to: other versions, other users, other programs.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Command;
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};

use super::TestHost;

#[test]
fn invalid_messages_are_rejected() {
    let test_host = TestHost::new();
    let pid = test_host.start();
    // Somebody who never says anything, somebody who stops in the middle.
    let silent = test_host.connect();
    let mut half = test_host.connect();
    half.send(b"{\"hello\":");
    for garbage in [
        &b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..],
        b"\0\0\0\0\n",
        b"[]\n",
        b"{\"n\":99999999999999}\n",
        b"{\"do\":\"stop\"}\n",
    ] {
        let mut line = test_host.connect();
        line.send(garbage);
        let answer = line.receive();
        assert!(answer["error"]["code"].is_string(), "{answer}");
        assert_eq!(line.read_to_end(), "");
    }
    let mut line = test_host.connect();
    line.send_json(&json!({"hello": {"protocol": 3}}));
    line.receive();
    line.send_json(&json!({"what": 1}));
    assert_eq!(line.receive()["error"]["code"], "not_understood");
    line.send_json(&json!({"do": "dance"}));
    assert_eq!(line.receive()["error"]["code"], "unknown_request");
    line.send(b"{\"do\":\"dance\",\"n\":3}\nabc{\"do\":\"status\"}\n");
    assert_eq!(line.receive()["error"]["code"], "unknown_request");
    let status = line.receive();
    assert_eq!(status["status"]["pid"], pid);
    drop(half);
    // Told after five seconds, and let go.
    let mut silent = silent;
    assert_eq!(silent.receive()["error"]["code"], "no_hello");
    assert_eq!(silent.read_to_end(), "");
    assert_eq!(test_host.status()["pid"], pid);
}

#[test]
fn a_client_of_another_version_is_told_and_can_still_ask_and_stop() {
    let test_host = TestHost::new();
    let pid = test_host.start();
    for protocol in [1, 4] {
        let mut line = test_host.connect();
        line.send_json(&json!({"hello": {"protocol": protocol, "version": "9", "new": [1]}}));
        let hello = line.receive()["hello"].take();
        assert_eq!(
            (&hello["protocol"], &hello["pid"]),
            (&json!(3), &json!(pid))
        );
        line.send_json(&json!({"do": "execute", "code": "1"}));
        assert_eq!(line.receive()["error"]["code"], "other_protocol");
        line.send_json(&json!({"do": "status"}));
        assert_eq!(line.receive()["status"]["pid"], pid);
    }
    let mut line = test_host.connect();
    line.send_json(&json!({"hello": {"protocol": 7}}));
    line.receive();
    line.send_json(&json!({"do": "stop"}));
    assert_eq!(line.receive(), json!({"end": true, "ended": {}}));
    super::wait_until("it does not end", || !super::is_host(pid, ""));
}

/// Starts a fake host of another version, which ends at a `stop` request.
fn start_fake_host(test_host: &TestHost, protocol: u32) -> JoinHandle<()> {
    fs::DirBuilder::new()
        .mode(0o700)
        .create(&test_host.folder)
        .unwrap();
    let listener = UnixListener::bind(test_host.file("host.sock")).unwrap();
    let pid = std::process::id();
    let record = json!({
        "pid": pid, "protocol": protocol, "version": "0.9", "socket": "host.sock",
        "instance": "played", "started": 0, "born": null, "later": true,
    });
    fs::write(test_host.file("host.json"), record.to_string()).unwrap();
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
        let test_host = TestHost::new();
        let fake = start_fake_host(&test_host, protocol);
        let ran = test_host.run(&["start"]).exits(2);
        let words = format!("has version 0.9 and speaks protocol {protocol}");
        assert!(ran.stderr.contains(&words), "{}", ran.stderr);
        assert!(
            ran.stderr.contains("`cellwright host stop`"),
            "{}",
            ran.stderr
        );
        let found = test_host.context.run(&["doctor", "--json"]).stdout;
        assert!(found.contains("\"host-other-protocol\""), "{found}");
        let status = test_host.run(&["status"]).exits(0).stdout;
        assert!(status.contains("this command speaks 3"), "{status}");
        let stopped = test_host.run(&["stop"]).exits(0).stdout;
        assert!(stopped.contains("ended sessions: 3"), "{stopped}");
        fake.join().unwrap();
        assert_eq!(test_host.status()["running"], false);
    }
}

/// The variable with the socket that the child process connects to.
const PEER_SOCKET: &str = "CELLWRIGHT_TEST_PEER_SOCKET";

/// Connects as another user, in a child process: this test again, in a copy that every user may execute.
fn connect_as_other_user(test_host: &TestHost) -> String {
    let copy = test_host.context.path("tests");
    if !copy.exists() {
        fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(test_host.context.folder(), mode).unwrap();
    }
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--clear-groups"])
        .arg(&copy)
        .args(["--exact", "--nocapture"])
        .arg("host::peers::another_user_is_rejected")
        .env(PEER_SOCKET, test_host.file("host.sock"))
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    stderr.into_owned()
}

/// Sends a hello and prints the reply. The host may close the connection before it is sent.
fn report_reply(socket: &OsStr) {
    let mut stream = match UnixStream::connect(socket) {
        Ok(stream) => stream,
        Err(error) => {
            eprintln!("not connected: {}", error.kind());
            return;
        }
    };
    stream.write_all(b"{\"hello\":{\"protocol\":3}}\n").ok();
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).ok();
    eprintln!("connected, {} bytes", reply.len());
}

#[test]
fn another_user_is_rejected() {
    if let Some(socket) = std::env::var_os(PEER_SOCKET) {
        report_reply(&socket);
        return;
    }
    let test_host = TestHost::new();
    test_host.start();
    // Only root can become another user.
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        cellwright_test_support::skip("root", "only root can become another user");
        return;
    }
    let report = connect_as_other_user(&test_host);
    assert!(
        report.contains("not connected: permission denied"),
        "{report}"
    );
    // The host also rejects the user if folder and socket are open by mistake.
    for path in test_host.file("host.sock").ancestors() {
        if path.starts_with(test_host.context.home()) {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
            fs::set_permissions(path, mode).unwrap();
        }
    }
    let report = connect_as_other_user(&test_host);
    assert!(report.contains("connected, 0 bytes"), "{report}");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    fs::set_permissions(&test_host.folder, mode).unwrap();
    super::wait_until("the host does not log it", || {
        let log = test_host.log();
        log.contains("rejected a client of user 65534")
    });
}
