//! [`SocketDir`]: short paths, private to the user, removed at the end.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use cellwright_jupyter::connection::{Channel, Connection, SocketDir, SocketDirProblem};
use cellwright_jupyter::zmtp::Endpoint;
use serde_json::{Value, json};

use crate::support::{start_oracle, temp_dir};

const CHANNELS: [Channel; 5] = [
    Channel::Shell,
    Channel::Iopub,
    Channel::Stdin,
    Channel::Control,
    Channel::Heartbeat,
];

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

/// A path below `root` of `length` bytes.
fn path_of_length(root: &Path, length: usize) -> PathBuf {
    let missing = length - root.as_os_str().len() - 1;
    root.join("x".repeat(missing))
}

fn problem(
    result: Result<SocketDir, cellwright_jupyter::connection::NoSocketDir>,
) -> SocketDirProblem {
    let mut tried = result.unwrap_err().tried;
    assert_eq!(tried.len(), 1);
    tried.remove(0).1
}

#[test]
fn a_socket_dir_is_private_and_is_removed_with_its_contents() {
    let (_guard, root) = temp_dir();
    let candidate = root.join("new/sockets");
    let sockets = SocketDir::new(std::slice::from_ref(&candidate)).unwrap();
    assert_eq!(mode(&candidate), 0o700);
    assert_eq!(mode(sockets.path()), 0o700);
    assert_eq!(sockets.path().parent().unwrap(), candidate);
    assert_eq!(sockets.stem().parent().unwrap(), sockets.path());
    fs::create_dir_all(sockets.path().join("a/b")).unwrap();
    // The target of a link stays.
    let outside = root.join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "").unwrap();
    std::os::unix::fs::symlink(&outside, sockets.path().join("link")).unwrap();
    let path = sockets.path().to_owned();
    drop(sockets);
    assert!(!path.exists());
    assert!(candidate.exists());
    assert!(outside.join("file").exists());
}

#[test]
fn a_kernel_can_listen_in_the_longest_accepted_directory() {
    let (_guard, root) = temp_dir();
    let mut accepted = None;
    for length in (root.as_os_str().len() + 2..104).rev() {
        let candidate = path_of_length(&root, length);
        match SocketDir::new(std::slice::from_ref(&candidate)) {
            Ok(sockets) => {
                accepted = Some(sockets);
                break;
            }
            Err(error) => {
                assert!(
                    matches!(error.tried[0].1, SocketDirProblem::TooLong { .. }),
                    "{error}"
                );
                assert!(!candidate.exists(), "a rejected directory was created");
            }
        }
    }
    let sockets = accepted.unwrap();
    let connection = Connection::new_ipc(sockets.stem()).unwrap();
    let endpoints = CHANNELS.map(|channel| connection.endpoint(channel));
    let Endpoint::Ipc(longest) = &endpoints[4] else {
        panic!("{endpoints:?}");
    };
    assert_eq!(longest.as_os_str().as_bytes().len(), 103);

    let urls = endpoints.clone().map(|endpoint| endpoint.to_string());
    let mut kernel = start_oracle("bind", &json!({ "urls": urls }));
    let mut line = String::new();
    let mut answers = BufReader::new(kernel.stdout.take().unwrap());
    answers.read_line(&mut line).unwrap();
    assert_eq!(line.trim(), "\"listening\"");
    for endpoint in &endpoints {
        let Endpoint::Ipc(path) = endpoint else {
            panic!("{endpoint}");
        };
        UnixStream::connect(path).unwrap();
    }
    drop(kernel.stdin.take());
    assert!(kernel.wait().unwrap().success());
}

#[test]
fn the_first_usable_directory_is_used() {
    let (_guard, root) = temp_dir();
    let file = root.join("file");
    fs::write(&file, "").unwrap();
    let long = path_of_length(&root, 100);
    let good = root.join("good");
    let candidates = [file.clone(), long, good.clone(), root.join("unused")];
    let sockets = SocketDir::new(&candidates).unwrap();
    assert_eq!(sockets.path().parent().unwrap(), good);
    assert!(!root.join("unused").exists());
}

#[test]
fn the_error_names_each_directory_with_its_problem() {
    let (_guard, root) = temp_dir();
    let file = root.join("file");
    fs::write(&file, "").unwrap();
    let long = path_of_length(&root, 90);
    let error = SocketDir::new(&[file.clone(), long.clone()]).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains(&format!("{}: it cannot be used", file.display())),
        "{text}"
    );
    let too_long = "the path of a socket would have 116 bytes, more than 103";
    assert!(
        text.contains(&format!("{}: {too_long}", long.display())),
        "{text}"
    );

    let error = SocketDir::new(&[]).unwrap_err();
    assert_eq!(error.tried.len(), 0);
}

#[test]
fn unsafe_directories_are_rejected() {
    let (_guard, root) = temp_dir();
    let open = root.join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    let unsafe_dir = problem(SocketDir::new(std::slice::from_ref(&open)));
    assert!(
        unsafe_dir
            .to_string()
            .contains("other users can replace what is in"),
        "{unsafe_dir}"
    );
    assert_eq!(fs::read_dir(&open).unwrap().count(), 0);
    // Like /tmp.
    fs::set_permissions(&open, fs::Permissions::from_mode(0o1777)).unwrap();
    SocketDir::new(&[open]).unwrap();

    let unsafe_dir = problem(SocketDir::new(&["relative".into()]));
    assert!(
        unsafe_dir.to_string().contains("not an absolute path"),
        "{unsafe_dir}"
    );

    let mut odd = root.clone().into_os_string().into_vec();
    odd.extend(b"/\xff");
    let odd = PathBuf::from(std::ffi::OsString::from_vec(odd));
    assert!(matches!(
        problem(SocketDir::new(&[odd])),
        SocketDirProblem::NotUtf8
    ));
}

#[test]
fn the_path_of_a_socket_dir_has_no_links() {
    let (_guard, root) = temp_dir();
    fs::create_dir(root.join("real")).unwrap();
    std::os::unix::fs::symlink("real", root.join("link")).unwrap();
    let sockets = SocketDir::new(&[root.join("link")]).unwrap();
    assert_eq!(sockets.path().parent().unwrap(), root.join("real"));
}

fn leak_socket_dir(candidate: &Path) -> PathBuf {
    let sockets = SocketDir::new(&[candidate.to_owned()]).unwrap();
    let path = sockets.path().to_owned();
    std::mem::forget(sockets);
    path
}

/// Changes the pid in a directory's owner file.
fn set_owner_pid(dir: &Path, pid: i32) {
    let path = dir.join("owner.json");
    let mut owner: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    owner["pid"] = pid.into();
    fs::write(path, owner.to_string()).unwrap();
}

#[test]
fn only_directories_of_exited_owners_are_swept() {
    let (_guard, root) = temp_dir();
    let alive = leak_socket_dir(&root);
    let dead = leak_socket_dir(&root);
    set_owner_pid(&dead, i32::MAX);
    fs::write(dead.join("k-1"), "").unwrap();
    let broken = leak_socket_dir(&root);
    fs::write(broken.join("owner.json"), "{").unwrap();
    let ownerless = leak_socket_dir(&root);
    fs::remove_file(ownerless.join("owner.json")).unwrap();
    // The name of another kind of directory.
    let other = root.join("cellwright-execution-1000");
    fs::create_dir(&other).unwrap();
    fs::copy(dead.join("owner.json"), other.join("owner.json")).unwrap();
    // Links are not followed.
    fs::create_dir(root.join("outside")).unwrap();
    fs::copy(dead.join("owner.json"), root.join("outside/owner.json")).unwrap();
    std::os::unix::fs::symlink("outside", root.join("cellwright-0123456789")).unwrap();

    assert_eq!(SocketDir::sweep(std::slice::from_ref(&root)), 1);
    assert!(!dead.exists());
    for path in [
        alive,
        broken,
        ownerless,
        other,
        root.join("outside/owner.json"),
    ] {
        assert!(path.exists(), "{}", path.display());
    }
    assert_eq!(SocketDir::sweep(&[root.join("nowhere")]), 0);
}

#[test]
fn an_old_directory_without_an_owner_is_swept_if_it_is_empty() {
    let (_guard, root) = temp_dir();
    let long_ago = SystemTime::now() - Duration::from_hours(2);
    let make_ownerless = |path: &Path| {
        fs::remove_file(path.join("owner.json")).unwrap();
        let dir = fs::File::open(path).unwrap();
        dir.set_modified(long_ago).unwrap();
    };
    let empty = leak_socket_dir(&root);
    make_ownerless(&empty);
    let full = leak_socket_dir(&root);
    fs::write(full.join("something"), "").unwrap();
    make_ownerless(&full);
    assert_eq!(SocketDir::sweep(&[root]), 1);
    assert!(!empty.exists());
    assert!(full.exists());
}
