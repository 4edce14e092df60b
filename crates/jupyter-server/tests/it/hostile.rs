//! Stale and forged records, and servers that do not reply as they should.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};
use std::time::Duration;

use cellwright_jupyter_server::UnansweredReason;
use cellwright_test_support::skip;
use serde_json::{Value, json};

use crate::support::{Machine, TOKEN, write_private};

/// SHA-256 of `{}`, the content of the notebook.
const HASH: &str = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";

/// A server without collaboration that has the notebook open in a page.
fn with_page(request: &str) -> (u16, Value) {
    match request.split_once('?').map_or(request, |(path, _)| path) {
        "GET /api/sessions" => (
            200,
            json!([{"path": "a.ipynb", "type": "notebook", "kernel": {"id": "k", "name": "python3", "connections": 1}}]),
        ),
        "GET /api/contents/a.ipynb" => (200, json!({"hash": HASH, "hash_algorithm": "sha256"})),
        _ => (404, json!({"message": "Not Found"})),
    }
}

/// A server with a live room.
fn with_room(request: &str) -> (u16, Value) {
    match request {
        "GET /api/sessions" => (200, json!([])),
        "PUT /api/collaboration/session/a.ipynb" => (200, json!({"fileId": "f", "sessionId": "s"})),
        "PUT /api/collaboration/fork/json:notebook:f" => (201, json!({"fork_roomid": "copy"})),
        "DELETE /api/collaboration/fork/copy?merge=false" => (200, json!({})),
        other => with_page(other),
    }
}

/// A process of this user that has no socket.
struct OtherProcess(std::process::Child);

impl OtherProcess {
    fn start() -> Self {
        let mut command = Command::new("sleep");
        Self(command.arg("600").stdin(Stdio::null()).spawn().unwrap())
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.0.id()).unwrap()
    }
}

impl Drop for OtherProcess {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_server_of_this_user_replies() {
    let machine = Machine::new();
    let port = machine.serve(with_page);
    machine.write_record(&machine.record(Machine::own_pid(), port));
    let located = machine.locate();
    let [open] = &located.open[..] else {
        unreachable!("{located:?}")
    };
    assert!(open.has_page() && !open.room);
    assert_eq!(open.url, format!("http://localhost:{port}/"));
    assert_eq!(located.unanswered, []);
    assert!(
        machine
            .requests()
            .contains(&format!("Authorization: token {TOKEN}"))
    );
}

#[test]
#[cfg(target_os = "linux")]
fn a_live_room_is_found_and_its_copy_removed() {
    let machine = Machine::new();
    let port = machine.serve(with_room);
    machine.write_record(&machine.record(Machine::own_pid(), port));
    assert!(machine.locate().open[0].room);
    assert!(
        machine
            .requests()
            .contains("DELETE /api/collaboration/fork/copy?merge=false")
    );
}

/// `jupyter_server_documents` has no request about rooms, and its sessions count no pages.
#[test]
#[cfg(target_os = "linux")]
fn a_session_of_jupyter_server_documents_is_a_room() {
    let machine = Machine::new();
    let port = machine.serve(|request| match request {
        "GET /api/sessions" => (
            200,
            json!([{"path": "a.ipynb", "kernel": {"id": "k", "name": "python3", "connections": 0}}]),
        ),
        "GET /api/fileid/index" => (405, json!({})),
        other => with_page(other),
    });
    machine.write_record(&machine.record(Machine::own_pid(), port));
    assert!(machine.locate().open[0].room);
}

#[test]
#[cfg(target_os = "linux")]
fn a_server_with_a_unix_socket_replies_only_if_it_is_the_process_of_the_record() {
    let machine = Machine::new();
    let socket = machine.serve_unix(with_page);
    let mut record = machine.record(Machine::own_pid(), 0);
    record["sock"] = json!(socket);
    machine.write_record(&record);
    assert_eq!(machine.locate().open.len(), 1);

    let machine = Machine::new();
    let other = OtherProcess::start();
    let socket = machine.serve_unix(with_page);
    let mut record = machine.record(other.pid(), 0);
    record["sock"] = json!(socket);
    machine.write_record(&record);
    assert_eq!(machine.locate().open, []);
    assert_eq!(machine.requests(), "");
}

/// A killed server leaves its record. Its process id and its port may belong to others by now.
#[test]
fn no_token_leaves_for_the_port_of_another_process() {
    let machine = Machine::new();
    let other = OtherProcess::start();
    let port = machine.serve(with_page);
    machine.write_record(&machine.record(other.pid(), port));
    // A process that has ended.
    machine.write_record(&machine.record(i32::MAX - 1, port));
    let located = machine.locate();
    assert_eq!(located.open, []);
    assert_eq!(machine.requests(), "");
}

#[test]
fn records_that_others_could_have_written_are_ignored() {
    let forge: [fn(&Machine, &Value); 6] = [
        |machine, record| {
            let path = machine.write_record(record);
            fs::set_permissions(path, fs::Permissions::from_mode(0o666)).unwrap();
        },
        |machine, record| {
            let elsewhere = machine.path("elsewhere.json");
            write_private(&elsewhere, record.to_string().as_bytes());
            symlink(elsewhere, machine.record_path(Machine::own_pid())).unwrap();
        },
        |machine, _| {
            let path = machine.record_path(Machine::own_pid());
            let made = Command::new("mkfifo").arg(path).status().unwrap();
            assert!(made.success());
        },
        |machine, _| {
            write_private(&machine.record_path(Machine::own_pid()), b"{\"pid\": [");
        },
        |machine, record| {
            let mut text = record.to_string().into_bytes();
            text.resize(10 << 20, b' ');
            write_private(&machine.record_path(Machine::own_pid()), &text);
        },
        // The name and the content disagree.
        |machine, record| {
            let mut record = record.clone();
            record["pid"] = json!(1);
            let path = machine.record_path(Machine::own_pid());
            write_private(&path, record.to_string().as_bytes());
        },
    ];
    for (case, forge) in forge.into_iter().enumerate() {
        let machine = Machine::new();
        let port = machine.serve(with_page);
        forge(&machine, &machine.record(Machine::own_pid(), port));
        let located = machine.locate();
        assert_eq!(located.open, [], "case {case}");
        assert_eq!(located.unanswered, [], "case {case}");
        assert_eq!(machine.requests(), "", "case {case}");
    }
}

#[test]
fn a_record_of_another_user_is_ignored() {
    let machine = Machine::new();
    let port = machine.serve(with_page);
    let path = machine.write_record(&machine.record(Machine::own_pid(), port));
    if std::os::unix::fs::chown(path, Some(65534), None).is_err() {
        return skip("root", "the owner of a file cannot be changed");
    }
    assert_eq!(machine.locate().open, []);
    assert_eq!(machine.requests(), "");
}

#[test]
#[cfg(target_os = "linux")]
fn a_server_that_cannot_be_asked_is_reported() {
    let reason = |handler| {
        let machine = Machine::new();
        let port = machine.serve(handler);
        machine.write_record(&machine.record(Machine::own_pid(), port));
        let located = machine.locate_within(Duration::from_millis(300));
        assert_eq!(located.open, []);
        located.unanswered[0].reason.clone()
    };
    assert_eq!(reason(|_| (0, Value::Null)), UnansweredReason::TimedOut);
    assert_eq!(reason(|_| (403, json!({}))), UnansweredReason::Refused);
    let failed = |reason| matches!(reason, UnansweredReason::Failed(_));
    assert!(failed(reason(|_| (500, json!({})))));
    assert!(failed(reason(|_| (200, json!({"not": "a list"})))));

    let machine = Machine::new();
    let port = machine.serve(with_page);
    let mut record = machine.record(Machine::own_pid(), port);
    record["secure"] = json!(true);
    machine.write_record(&record);
    assert_eq!(machine.locate().unanswered[0].reason, UnansweredReason::Tls);
    assert_eq!(machine.requests(), "");
}

#[test]
#[cfg(target_os = "linux")]
fn a_server_with_other_contents_does_not_have_the_notebook() {
    let machine = Machine::new();
    let port = machine.serve(with_page);
    fs::write(machine.path("root/a.ipynb"), "another content").unwrap();
    machine.write_record(&machine.record(Machine::own_pid(), port));
    assert_eq!(machine.locate().open, []);
}

#[test]
#[cfg(target_os = "linux")]
fn a_link_below_the_directory_of_the_server_is_the_same_notebook() {
    let machine = Machine::new();
    let port = machine.serve(with_page);
    fs::rename(machine.path("root/a.ipynb"), machine.path("real.ipynb")).unwrap();
    symlink(machine.path("real.ipynb"), machine.path("root/a.ipynb")).unwrap();
    machine.write_record(&machine.record(Machine::own_pid(), port));
    assert!(machine.locate().open[0].has_page());
}
