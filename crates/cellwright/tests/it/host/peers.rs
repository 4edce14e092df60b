//! Clients and hosts of other versions, clients of other users, and invalid messages.

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
    // One client sends nothing, another one half of a message.
    let silent = test_host.connect();
    let mut half = test_host.connect();
    half.send(b"{\"hello\":");
    for invalid in [
        &b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..],
        b"\0\0\0\0\n",
        b"[]\n",
        b"{\"n\":99999999999999}\n",
        b"{\"do\":\"stop\"}\n",
    ] {
        let mut connection = test_host.connect();
        connection.send(invalid);
        let reply = connection.receive();
        assert!(reply["error"]["code"].is_string(), "{reply}");
        assert_eq!(connection.read_to_end(), "");
    }
    let mut connection = test_host.connect();
    connection.send_json(&json!({"hello": {"protocol": 6}}));
    connection.receive();
    connection.send_json(&json!({"what": 1}));
    assert_eq!(connection.receive()["error"]["code"], "not_understood");
    connection.send_json(&json!({"do": "dance"}));
    assert_eq!(connection.receive()["error"]["code"], "unknown_request");
    connection.send(b"{\"do\":\"dance\",\"n\":3}\nabc{\"do\":\"status\"}\n");
    assert_eq!(connection.receive()["error"]["code"], "unknown_request");
    let status = connection.receive();
    assert_eq!(status["status"]["pid"], pid);
    drop(half);
    // The host sends an error after five seconds and closes the connection.
    let mut silent = silent;
    assert_eq!(silent.receive()["error"]["code"], "no_hello");
    assert_eq!(silent.read_to_end(), "");
    assert_eq!(test_host.status()["pid"], pid);
}

#[test]
fn a_client_of_another_version_can_request_status_and_stop() {
    let test_host = TestHost::new();
    let pid = test_host.start();
    for protocol in [1, 7] {
        let mut connection = test_host.connect();
        connection.send_json(&json!({"hello": {"protocol": protocol, "version": "9", "new": [1]}}));
        let hello = connection.receive()["hello"].take();
        assert_eq!(
            (&hello["protocol"], &hello["pid"]),
            (&json!(6), &json!(pid))
        );
        connection.send_json(&json!({"do": "execute", "code": "1"}));
        assert_eq!(connection.receive()["error"]["code"], "other_protocol");
        connection.send_json(&json!({"do": "status"}));
        assert_eq!(connection.receive()["status"]["pid"], pid);
    }
    let mut connection = test_host.connect();
    connection.send_json(&json!({"hello": {"protocol": 7}}));
    connection.receive();
    connection.send_json(&json!({"do": "stop"}));
    assert_eq!(connection.receive(), json!({"end": true, "ended": {}}));
    super::wait_until("the host does not end", || !super::is_host(pid, ""));
}

/// Starts a fake host of another version, which ends at a `stop` request.
fn start_fake_host(test_host: &TestHost, protocol: u32) -> JoinHandle<()> {
    fs::DirBuilder::new()
        .mode(0o700)
        .create(&test_host.dir)
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
                let request: Value = serde_json::from_str(&line.unwrap()).unwrap();
                let reply = match request["do"].as_str() {
                    None => json!({"hello": {
                        "protocol": protocol, "version": "0.9", "pid": pid, "instance": "played",
                    }}),
                    Some("status") => json!({"end": 1, "status": {
                        "pid": pid, "version": "0.9", "protocol": protocol,
                    }}),
                    Some("stop") => json!({"end": 1, "ended": {"sessions": 3}}),
                    Some(other) => panic!("unexpected request {other}"),
                };
                writer.write_all(format!("{reply}\n").as_bytes()).unwrap();
                if request["do"] == "stop" {
                    return;
                }
            }
        }
    })
}

#[test]
fn a_host_of_another_version_is_reported_and_can_be_stopped() {
    for protocol in [1, 7] {
        let test_host = TestHost::new();
        let fake = start_fake_host(&test_host, protocol);
        let result = test_host.run(&["start"]).exits(2);
        let message = format!("has version 0.9 and uses protocol {protocol}");
        assert!(result.stderr.contains(&message), "{}", result.stderr);
        assert!(
            result.stderr.contains("`cellwright host stop`"),
            "{}",
            result.stderr
        );
        let found = test_host.context.run(&["doctor", "--json"]).stdout;
        assert!(found.contains("\"host-other-protocol\""), "{found}");
        let status = test_host.run(&["status"]).exits(0).stdout;
        assert!(status.contains("this command uses 6"), "{status}");
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
        fs::set_permissions(test_host.context.dir(), mode).unwrap();
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
    stream.write_all(b"{\"hello\":{\"protocol\":5}}\n").ok();
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
    // The host also rejects the user if directory and socket are open by mistake.
    for path in test_host.file("host.sock").ancestors() {
        if path.starts_with(test_host.context.home()) {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
            fs::set_permissions(path, mode).unwrap();
        }
    }
    let report = connect_as_other_user(&test_host);
    assert!(report.contains("connected, 0 bytes"), "{report}");
    for path in [test_host.context.home(), &test_host.dir] {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        fs::set_permissions(path, mode).unwrap();
    }
    super::wait_until("the host does not log it", || {
        let log = test_host.log();
        log.contains("rejected a client of user 65534")
    });
}
