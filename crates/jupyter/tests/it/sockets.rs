//! Folders for sockets: short enough, ours alone, and gone when we are.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use cellwright_jupyter::connection::{Channel, Connection, SocketFolder, Unfit};
use cellwright_jupyter::zmtp::Endpoint;
use serde_json::{Value, json};

use crate::support::{begin, folder};

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

/// A folder below another whose path has that many bytes.
fn of_length(root: &Path, length: usize) -> PathBuf {
    let missing = length - root.as_os_str().len() - 1;
    root.join("x".repeat(missing))
}

fn why(result: Result<SocketFolder, cellwright_jupyter::connection::NoSocketFolder>) -> Unfit {
    let mut tried = result.unwrap_err().tried;
    assert_eq!(tried.len(), 1);
    tried.remove(0).1
}

#[test]
fn a_folder_is_ours_alone_and_goes_with_what_is_in_it() {
    let (_guard, root) = folder();
    let candidate = root.join("new/sockets");
    let sockets = SocketFolder::new(std::slice::from_ref(&candidate)).unwrap();
    assert_eq!(mode(&candidate), 0o700);
    assert_eq!(mode(sockets.path()), 0o700);
    assert_eq!(sockets.path().parent().unwrap(), candidate);
    assert_eq!(sockets.stem().parent().unwrap(), sockets.path());
    fs::create_dir_all(sockets.path().join("a/b")).unwrap();
    // What a link leads to stays.
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
fn a_kernel_can_listen_in_the_longest_folder_that_we_take() {
    let (_guard, root) = folder();
    let mut taken = None;
    for length in (root.as_os_str().len() + 2..104).rev() {
        let candidate = of_length(&root, length);
        match SocketFolder::new(std::slice::from_ref(&candidate)) {
            Ok(sockets) => {
                taken = Some(sockets);
                break;
            }
            Err(error) => {
                assert!(matches!(error.tried[0].1, Unfit::TooLong { .. }), "{error}");
                assert!(!candidate.exists(), "nothing is made in vain");
            }
        }
    }
    let sockets = taken.unwrap();
    let connection = Connection::new_ipc(sockets.stem()).unwrap();
    let endpoints = CHANNELS.map(|channel| connection.endpoint(channel));
    let Endpoint::Ipc(longest) = &endpoints[4] else {
        panic!("{endpoints:?}");
    };
    assert_eq!(longest.as_os_str().as_bytes().len(), 103);

    let urls = endpoints.clone().map(|endpoint| endpoint.to_string());
    let mut kernel = begin("bind", &json!({ "urls": urls }));
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
fn the_first_folder_that_will_do_is_taken() {
    let (_guard, root) = folder();
    let file = root.join("file");
    fs::write(&file, "").unwrap();
    let long = of_length(&root, 100);
    let good = root.join("good");
    let candidates = [file.clone(), long, good.clone(), root.join("unused")];
    let sockets = SocketFolder::new(&candidates).unwrap();
    assert_eq!(sockets.path().parent().unwrap(), good);
    assert!(!root.join("unused").exists());
}

#[test]
fn each_folder_is_said_with_its_reason() {
    let (_guard, root) = folder();
    let file = root.join("file");
    fs::write(&file, "").unwrap();
    let long = of_length(&root, 90);
    let error = SocketFolder::new(&[file.clone(), long.clone()]).unwrap_err();
    let words = error.to_string();
    assert!(
        words.contains(&format!("{}: it cannot be used", file.display())),
        "{words}"
    );
    let too_long = "the path of a socket would have 116 bytes, more than 103";
    assert!(
        words.contains(&format!("{}: {too_long}", long.display())),
        "{words}"
    );

    let error = SocketFolder::new(&[]).unwrap_err();
    assert_eq!(error.tried.len(), 0);
}

#[test]
fn folders_that_are_not_safe_are_refused() {
    let (_guard, root) = folder();
    let open = root.join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    let unfit = why(SocketFolder::new(std::slice::from_ref(&open)));
    assert!(
        unfit
            .to_string()
            .contains("others can change what is in it"),
        "{unfit}"
    );
    assert_eq!(fs::read_dir(&open).unwrap().count(), 0);
    // As folders for everybody's temporary files are.
    fs::set_permissions(&open, fs::Permissions::from_mode(0o1777)).unwrap();
    SocketFolder::new(&[open]).unwrap();

    let unfit = why(SocketFolder::new(&["relative".into()]));
    assert!(
        unfit.to_string().contains("not an absolute path"),
        "{unfit}"
    );

    let mut odd = root.clone().into_os_string().into_vec();
    odd.extend(b"/\xff");
    let odd = PathBuf::from(std::ffi::OsString::from_vec(odd));
    assert!(matches!(why(SocketFolder::new(&[odd])), Unfit::NotText));
}

#[test]
fn a_link_that_is_changed_later_leads_nowhere_else() {
    let (_guard, root) = folder();
    fs::create_dir(root.join("real")).unwrap();
    std::os::unix::fs::symlink("real", root.join("link")).unwrap();
    let sockets = SocketFolder::new(&[root.join("link")]).unwrap();
    assert_eq!(sockets.path().parent().unwrap(), root.join("real"));
}

fn forgotten(candidate: &Path) -> PathBuf {
    let sockets = SocketFolder::new(&[candidate.to_owned()]).unwrap();
    let path = sockets.path().to_owned();
    std::mem::forget(sockets);
    path
}

/// Changes the number of the process that a folder belongs to.
fn give_to(folder: &Path, pid: i32) {
    let path = folder.join("owner.json");
    let mut owner: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    owner["pid"] = pid.into();
    fs::write(path, owner.to_string()).unwrap();
}

#[test]
fn only_what_a_dead_process_of_ours_left_is_swept() {
    let (_guard, root) = folder();
    let alive = forgotten(&root);
    let dead = forgotten(&root);
    give_to(&dead, i32::MAX);
    fs::write(dead.join("k-1"), "").unwrap();
    let broken = forgotten(&root);
    fs::write(broken.join("owner.json"), "{").unwrap();
    let nobodys = forgotten(&root);
    fs::remove_file(nobodys.join("owner.json")).unwrap();
    // Its name is not one of ours.
    let other = root.join("cellwright-run-1000");
    fs::create_dir(&other).unwrap();
    fs::copy(dead.join("owner.json"), other.join("owner.json")).unwrap();
    // Links are not followed.
    fs::create_dir(root.join("outside")).unwrap();
    fs::copy(dead.join("owner.json"), root.join("outside/owner.json")).unwrap();
    std::os::unix::fs::symlink("outside", root.join("cellwright-0123456789")).unwrap();

    assert_eq!(SocketFolder::sweep(std::slice::from_ref(&root)), 1);
    assert!(!dead.exists());
    for path in [
        alive,
        broken,
        nobodys,
        other,
        root.join("outside/owner.json"),
    ] {
        assert!(path.exists(), "{}", path.display());
    }
    assert_eq!(SocketFolder::sweep(&[root.join("nowhere")]), 0);
}

#[test]
fn a_folder_that_was_given_up_before_it_had_an_owner_goes_if_it_is_empty() {
    let (_guard, root) = folder();
    let long_ago = SystemTime::now() - Duration::from_hours(2);
    let abandon = |path: &Path| {
        fs::remove_file(path.join("owner.json")).unwrap();
        let folder = fs::File::open(path).unwrap();
        folder.set_modified(long_ago).unwrap();
    };
    let empty = forgotten(&root);
    abandon(&empty);
    let full = forgotten(&root);
    fs::write(full.join("something"), "").unwrap();
    abandon(&full);
    assert_eq!(SocketFolder::sweep(&[root]), 1);
    assert!(!empty.exists());
    assert!(full.exists());
}
