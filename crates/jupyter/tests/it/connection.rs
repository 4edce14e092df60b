//! Connection files: Python's Jupyter reads those of this crate and the other way round; they are private to the user
//! and removed at the end.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use cellwright_jupyter::connection::{
    Channel, Connection, ConnectionError, ConnectionFile, Ports, SocketDir, Transport, sweep,
};
use cellwright_jupyter::kernelspec::Kernelspec;
use cellwright_jupyter::ports::ReservedPorts;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{python, run_oracle, temp_dir};

const CHANNELS: [(Channel, &str); 5] = [
    (Channel::Shell, "shell"),
    (Channel::Iopub, "iopub"),
    (Channel::Stdin, "stdin"),
    (Channel::Control, "control"),
    (Channel::Heartbeat, "hb"),
];

fn tcp_connection() -> Connection {
    let ports = Ports {
        shell: 50001,
        iopub: 50002,
        stdin: 50003,
        control: 50004,
        hb: 65535,
    };
    Connection::new_tcp(ports).unwrap()
}

/// A valid connection file.
fn valid_json() -> Value {
    serde_json::from_str(&tcp_connection().to_json()).unwrap()
}

fn parse(text: impl AsRef<[u8]>) -> Result<Connection, ConnectionError> {
    let (_guard, root) = temp_dir();
    let path = root.join("connection.json");
    fs::write(&path, text).unwrap();
    Connection::read(&path)
}

/// Parses a valid connection file with one member changed.
fn parse_with(name: &str, value: impl Into<Value>) -> Result<Connection, ConnectionError> {
    let mut members = valid_json();
    members[name] = value.into();
    parse(members.to_string())
}

fn malformed_reason(result: Result<Connection, ConnectionError>) -> String {
    match result {
        Err(ConnectionError::Malformed { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn python_reads_our_files() {
    let (_guard, root) = temp_dir();
    let mut named = tcp_connection();
    named.kernel_name = Some("python3".to_owned());
    for connection in [
        named,
        Connection::new_ipc(root.join("k")).unwrap(),
        Connection::new_ipc(root.join("é k")).unwrap(),
    ] {
        let file = ConnectionFile::write(&root, &connection).unwrap();
        let info: Value = run_oracle("load", &json!({ "path": file.path() }));
        assert_eq!(info["key"], connection.key);
        assert_eq!(info["signature_scheme"], "hmac-sha256");
        for (channel, name) in CHANNELS {
            assert_eq!(info["urls"][name], connection.endpoint(channel).to_string());
        }
        assert_eq!(Connection::read(file.path()).unwrap(), connection);
    }
}

#[test]
fn a_real_kernel_reads_our_file_and_clients_find_it() {
    let (_guard, root) = temp_dir();
    let reserved = ReservedPorts::reserve().unwrap();
    let sockets = SocketDir::new(std::slice::from_ref(&root)).unwrap();
    for connection in [
        Connection::new_tcp(reserved.ports()).unwrap(),
        Connection::new_ipc(sockets.stem()).unwrap(),
    ] {
        let file = ConnectionFile::write(&root.join("runtime"), &connection).unwrap();
        let command = Kernelspec::ipykernel(&python()).command(file.path(), None);
        let mut kernel = std::process::Command::new(&command[0])
            .args(&command[1..])
            .env("IPYTHONDIR", root.join("ipython"))
            .stdin(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let code = "__import__('os').getpid()";
        let answer: String = run_oracle("evaluate", &json!({ "path": file.path(), "code": code }));
        assert_eq!(answer, kernel.id().to_string());
        kernel.wait().unwrap();
        // The kernel has not removed it.
        assert_eq!(Connection::read(file.path()).unwrap(), connection);
        assert_eq!(sweep(&root.join("runtime")), 0);
    }
}

#[test]
fn we_read_files_written_by_python() {
    let (_guard, root) = temp_dir();
    let stem = root.join("stem");
    for (number, more) in [
        json!({ "transport": "tcp", "ip": "127.0.0.1", "kernel_name": "r", "jupyter_session": "x" }),
        json!({ "transport": "tcp", "ip": "", "key": "" }),
        json!({ "transport": "ipc", "ip": stem }),
    ]
    .into_iter()
    .enumerate()
    {
        let path = root.join(format!("{number}.json"));
        let mut case = json!({ "fname": path, "key": "secret-é" });
        case.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let written: Value = run_oracle("write", &case);
        let info: Value = run_oracle("load", &json!({ "path": path }));
        let read = Connection::read(&path).unwrap();
        assert_eq!(read.key, written["key"].as_str().unwrap());
        let name = more.get("kernel_name").and_then(Value::as_str);
        assert_eq!(read.kernel_name.as_deref(), name);
        for (channel, name) in CHANNELS {
            assert_eq!(info["urls"][name], read.endpoint(channel).to_string());
        }
    }
}

#[test]
fn unix_sockets_have_the_names_that_jupyter_uses() {
    let (_guard, root) = temp_dir();
    let stem = root.join("stem");
    let path = root.join("c.json");
    let case = json!({ "fname": path, "key": "", "transport": "ipc", "ip": stem });
    let _: Value = run_oracle("write", &case);
    let written = Connection::read(&path).unwrap();
    let created = Connection::new_ipc(stem).unwrap();
    assert_eq!(written.ports, created.ports);
    assert_eq!(written.transport, created.transport);
    let shell = created.endpoint(Channel::Shell).to_string();
    assert_eq!(shell, format!("ipc://{}/stem-1", root.display()));
}

#[test]
fn keys_are_long_and_unique() {
    let keys: BTreeSet<String> = (0..100).map(|_| tcp_connection().key).collect();
    assert_eq!(keys.len(), 100);
    for key in keys {
        assert_eq!(key.len(), 64);
        assert!(key.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }
}

#[test]
fn errors_and_debug_output_do_not_contain_the_key() {
    let connection = tcp_connection();
    assert!(!format!("{connection:?}").contains(&connection.key));
    let mut members = valid_json();
    members["key"] = "SECRET".into();
    for (name, value) in [
        ("transport", json!("carrier pigeon")),
        ("hb_port", json!({})),
        ("ip", json!(1)),
        ("signature_scheme", json!("hmac-md5")),
    ] {
        let mut members = members.clone();
        members[name] = value;
        let error = parse(members.to_string()).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("SECRET"), "{error}");
    }
    for text in [
        r#"{"key": "SECRET" "#,
        r#"{"key": "SECRET\ud800"}"#,
        r#""SECRET""#,
        r#"{"key": ["SECRET"]}"#,
    ] {
        let error = parse(text).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("SECRET"), "{error}");
    }
}

#[test]
fn small_deviations_are_accepted() {
    let expected = |result: Result<Connection, ConnectionError>| result.unwrap().ports.shell;
    assert_eq!(expected(parse_with("shell_port", "4711")), 4711);
    assert_eq!(expected(parse_with("shell_port", " 4711 ")), 4711);
    assert_eq!(
        expected(parse_with("more", json!({"deep": [1, null]}))),
        50001
    );
    assert_eq!(expected(parse_with("kernel_name", 3)), 50001);
    assert_eq!(expected(parse_with("transport", Value::Null)), 50001);
    assert_eq!(expected(parse_with("transport", "TCP")), 50001);
    assert_eq!(expected(parse_with("signature_scheme", Value::Null)), 50001);
    assert_eq!(expected(parse(format!("\u{feff} {}", valid_json()))), 50001);
    assert_eq!(parse_with("key", Value::Null).unwrap().key, "");
    let ip = |ip: &str| parse_with("ip", ip).unwrap().transport;
    let tcp = |ip: &str| Transport::Tcp { ip: ip.to_owned() };
    assert_eq!(ip("*"), tcp("0.0.0.0"));
    assert_eq!(ip("[::1]"), tcp("::1"));
    assert_eq!(ip("some.host"), tcp("some.host"));
}

#[test]
fn unusable_files_are_rejected_with_a_reason() {
    let mut members = valid_json();
    for (_, name) in CHANNELS {
        let name = format!("{name}_port");
        let port = members.as_object_mut().unwrap().shift_remove(&name);
        let port = port.unwrap();
        assert_eq!(
            malformed_reason(parse(members.to_string())),
            format!("`{name}` is missing")
        );
        members[&name] = port;
        let not = format!("`{name}` is not a port number");
        for value in [
            json!(0),
            json!(-1),
            json!(65536),
            json!(1e300),
            json!(true),
            json!("x"),
            json!("0"),
            json!([1]),
        ] {
            assert_eq!(malformed_reason(parse_with(&name, value)), not);
        }
    }
    assert_eq!(
        malformed_reason(parse_with("hb_port", 50001)),
        "`hb_port` is the port of another channel"
    );
    for (name, value, reason) in [
        ("ip", Value::Null, "`ip` is missing"),
        ("ip", json!(""), "`ip` is missing"),
        ("ip", json!(1), "`ip` is not a string"),
        ("ip", json!("a\0b"), "`ip` has a NUL in it"),
        (
            "transport",
            json!("udp"),
            "the transport `udp` is not supported",
        ),
        ("transport", json!(""), "the transport `` is not supported"),
        ("key", json!(5), "`key` is not a string"),
        (
            "signature_scheme",
            json!("hmac-sha512"),
            "its messages are signed with `hmac-sha512`; only hmac-sha256 is supported",
        ),
    ] {
        assert_eq!(malformed_reason(parse_with(name, value)), reason);
    }
    for text in ["", "[]", "3", "{", "\u{0}"] {
        malformed_reason(parse(text));
    }
    let mut members = valid_json();
    members["transport"] = "ipc".into();
    members.as_object_mut().unwrap().shift_remove("ip");
    assert_eq!(
        malformed_reason(parse(members.to_string())),
        "`ip` is missing"
    );
}

#[test]
fn without_a_key_any_signature_scheme_is_accepted() {
    let mut members = valid_json();
    members["key"] = "".into();
    members["signature_scheme"] = "hmac-sha512".into();
    assert_eq!(parse(members.to_string()).unwrap().key, "");
    members["signature_scheme"] = "".into();
    parse(members.to_string()).unwrap();
}

#[test]
fn encrypted_sockets_are_rejected() {
    let mut members = valid_json();
    members["curve_publickey"] = "p".into();
    parse(members.to_string()).unwrap();
    members["curve_secretkey"] = "s".into();
    let reason = malformed_reason(parse(members.to_string()));
    assert!(reason.contains("encrypted"), "{reason}");
    members["curve_secretkey"] = Value::Null;
    parse(members.to_string()).unwrap();
}

#[test]
fn only_regular_files_of_reasonable_length_are_read() {
    let (_guard, root) = temp_dir();
    let pipe = root.join("pipe");
    let mode = rustix::fs::Mode::from(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let long = root.join("long");
    fs::write(&long, valid_json().to_string() + &" ".repeat(1 << 20)).unwrap();
    let link_loop = root.join("loop");
    std::os::unix::fs::symlink("loop", &link_loop).unwrap();
    for path in [
        root.clone(),
        pipe,
        long,
        link_loop,
        root.join("nothing"),
        "/dev/zero".into(),
    ] {
        let error = Connection::read(&path).unwrap_err();
        assert!(matches!(error, ConnectionError::File { .. }), "{error}");
    }
}

#[test]
fn the_file_is_private_and_is_removed_at_the_end() {
    let (_guard, root) = temp_dir();
    let runtime = root.join("new/runtime");
    let file = ConnectionFile::write(&runtime, &tcp_connection()).unwrap();
    assert_eq!(mode(&runtime), 0o700);
    assert_eq!(mode(&root.join("new")), 0o700);
    assert_eq!(mode(file.path()), 0o600);
    assert_eq!(fs::read_dir(&runtime).unwrap().count(), 1);

    let name = file.path().file_name().unwrap().to_str().unwrap();
    let uuid = name.strip_prefix("kernel-").unwrap();
    let uuid = uuid.strip_suffix(".json").unwrap();
    let lengths: Vec<usize> = uuid.split('-').map(str::len).collect();
    assert_eq!(lengths, [8, 4, 4, 4, 12]);
    assert_eq!(&uuid[14..15], "4");
    assert!("89ab".contains(&uuid[19..20]));

    let path = file.path().to_owned();
    drop(file);
    assert!(!path.exists());
    assert!(runtime.exists());
}

#[test]
fn a_file_that_was_removed_already_is_no_error() {
    let (_guard, root) = temp_dir();
    let file = ConnectionFile::write(&root, &tcp_connection()).unwrap();
    fs::remove_file(file.path()).unwrap();
    drop(file);
}

#[test]
fn a_runtime_directory_that_others_can_write_is_made_safe() {
    let (_guard, root) = temp_dir();
    let runtime = root.join("runtime");
    fs::create_dir(&runtime).unwrap();
    fs::set_permissions(&runtime, fs::Permissions::from_mode(0o777)).unwrap();
    let _file = ConnectionFile::write(&runtime, &tcp_connection()).unwrap();
    assert_eq!(mode(&runtime), 0o1777);
}

#[test]
fn a_runtime_directory_that_is_a_file_is_an_error() {
    let (_guard, root) = temp_dir();
    let file = root.join("file");
    fs::write(&file, "").unwrap();
    for runtime in [file.clone(), file.join("below")] {
        match ConnectionFile::write(&runtime, &tcp_connection()) {
            Err(ConnectionError::File { path, .. }) => assert_eq!(path, runtime),
            other => panic!("{other:?}"),
        }
    }
}

/// Edits the JSON of a connection file.
fn edit_json(path: &Path, change: impl FnOnce(&mut Value)) {
    let mut members: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    change(&mut members);
    fs::write(path, members.to_string()).unwrap();
}

#[test]
fn the_file_names_its_owner() {
    let (_guard, root) = temp_dir();
    let file = ConnectionFile::write(&root, &tcp_connection()).unwrap();
    let members: Value = serde_json::from_slice(&fs::read(file.path()).unwrap()).unwrap();
    assert_eq!(members["cellwright"]["pid"], std::process::id());
    if cfg!(target_os = "linux") {
        assert!(members["cellwright"]["started"].is_string());
    }
}

#[test]
fn only_files_of_exited_owners_are_swept() {
    let (_guard, root) = temp_dir();
    let write = || {
        let file = ConnectionFile::write(&root, &tcp_connection()).unwrap();
        let path = file.path().to_owned();
        std::mem::forget(file);
        path
    };
    let alive = write();
    let dead = write();
    edit_json(&dead, |members| {
        members["cellwright"]["pid"] = i32::MAX.into();
    });
    // A file of Jupyter, and some with an invalid owner.
    let plain = write();
    edit_json(&plain, |members| {
        members.as_object_mut().unwrap().shift_remove("cellwright");
    });
    let odd: Vec<PathBuf> = [
        json!(null),
        json!(i32::MAX),
        json!({}),
        json!({"pid": "x"}),
        json!({"pid": -5}),
    ]
    .into_iter()
    .map(|owner| {
        let path = write();
        edit_json(&path, |members| members["cellwright"] = owner);
        path
    })
    .collect();
    let broken = root.join("kernel-broken.json");
    fs::write(&broken, "{\"cellwright\"").unwrap();
    // A file that its process has not renamed yet.
    let unfinished = root.join(".kernel-abc.json");
    fs::copy(&dead, &unfinished).unwrap();
    let other_name = root.join("other.json");
    fs::copy(&dead, &other_name).unwrap();
    // Links are not followed, and stay.
    let outside = root.join("outside");
    fs::copy(&dead, &outside).unwrap();
    let link = root.join("kernel-link.json");
    std::os::unix::fs::symlink(&outside, &link).unwrap();
    let pipe = root.join("kernel-pipe.json");
    let mode = rustix::fs::Mode::from(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    fs::create_dir(root.join("kernel-directory.json")).unwrap();

    assert_eq!(sweep(&root), 2);
    assert!(!dead.exists() && !unfinished.exists());
    for path in [alive, plain, broken, other_name, outside, link, pipe]
        .iter()
        .chain(&odd)
    {
        assert!(path.symlink_metadata().is_ok(), "{}", path.display());
    }
    assert_eq!(sweep(&root), 0);
    assert_eq!(sweep(&root.join("nowhere")), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_of_an_earlier_process_with_our_pid_is_swept() {
    let (_guard, root) = temp_dir();
    let file = ConnectionFile::write(&root, &tcp_connection()).unwrap();
    edit_json(file.path(), |members| {
        members["cellwright"]["started"] = "1".into();
    });
    assert_eq!(sweep(&root), 1);
}

#[test]
fn the_file_of_a_killed_process_is_swept_after_its_death() {
    let (_guard, root) = temp_dir();
    let mut child = std::process::Command::new("sleep")
        .arg("600")
        .spawn()
        .unwrap();
    let file = ConnectionFile::write(&root, &tcp_connection()).unwrap();
    edit_json(file.path(), |members| {
        members["cellwright"]["pid"] = child.id().into();
        members["cellwright"]["started"] = Value::Null;
    });
    assert_eq!(sweep(&root), 0);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(sweep(&root), 1);
}

fn transport() -> impl Strategy<Value = Transport> {
    prop_oneof![
        "[a-z0-9.:]{1,20}".prop_map(|ip| Transport::Tcp { ip }),
        "/[a-zé \"\\\\]{0,20}[a-z]".prop_map(|stem| Transport::Ipc { stem: stem.into() }),
    ]
}

fn ports() -> impl Strategy<Value = Ports> {
    prop::collection::btree_set(1..=u16::MAX, 5)
        .prop_map(|ports| ports.into_iter().collect::<Vec<u16>>())
        .prop_shuffle()
        .prop_map(|ports| Ports {
            shell: ports[0],
            iopub: ports[1],
            stdin: ports[2],
            control: ports[3],
            hb: ports[4],
        })
}

proptest! {
    #[test]
    fn reading_returns_the_written_connection(
        transport in transport(),
        ports in ports(),
        key in ".{0,40}",
        kernel_name in prop::option::of(".{1,20}"),
    ) {
        let connection = Connection { transport, ports, key, kernel_name };
        prop_assert_eq!(parse(connection.to_json()).unwrap(), connection);
    }

    #[test]
    fn arbitrary_bytes_are_rejected(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(parse(bytes).is_err());
    }

    #[test]
    fn arbitrary_members_do_not_panic(
        name in prop::sample::select(vec![
            "ip", "key", "transport", "signature_scheme", "hb_port", "kernel_name", "curve_publickey",
        ]),
        value in prop_oneof![
            any::<f64>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,20}".prop_map(Value::from),
            Just(json!([])),
            Just(json!({})),
        ],
    ) {
        drop(parse_with(name, value));
    }
}
