//! Hosts that were killed, stopped, cleaned away, or never were; folders that are not safe.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use serde_json::json;

use super::{Place, eventually, hosts, is_host, signal};

#[test]
fn an_unsafe_folder_is_refused_with_what_to_do() {
    let place = Place::new();
    fs::create_dir(&place.folder).unwrap();
    fs::set_permissions(&place.folder, fs::Permissions::from_mode(0o755)).unwrap();
    for action in ["start", "status", "stop", "log"] {
        let ran = place.host(&[action]).exits(2);
        assert!(
            ran.stderr
                .contains("is accessible to other users (mode 755)"),
            "{}",
            ran.stderr
        );
        assert!(
            ran.stderr
                .contains("hint: if no other user put files there: `chmod 700 ")
        );
    }
    assert_eq!(fs::read_dir(&place.folder).unwrap().count(), 0);
    let found = place.context.run(&["doctor", "--json"]).stdout;
    assert!(found.contains("\"host-folder\""), "{found}");

    fs::remove_dir(&place.folder).unwrap();
    let elsewhere = place.context.home().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::set_permissions(&elsewhere, fs::Permissions::from_mode(0o700)).unwrap();
    symlink(&elsewhere, &place.folder).unwrap();
    let ran = place.host(&["start"]).exits(2);
    assert!(
        ran.stderr
            .contains("is not a directory but a symbolic link"),
        "{}",
        ran.stderr
    );
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);

    fs::remove_file(&place.folder).unwrap();
    fs::write(&place.folder, "").unwrap();
    let ran = place.host(&["start"]).exits(2);
    assert!(
        ran.stderr.contains("is not a directory but a file"),
        "{}",
        ran.stderr
    );
    fs::remove_file(&place.folder).unwrap();
}

#[test]
fn a_killed_host_is_replaced_and_its_leftovers_removed() {
    let place = Place::new();
    let first = place.start();
    let record = place.record();
    signal(first, "-KILL");
    eventually("it does not die", || !is_host(first, ""));
    assert!(place.file("host.json").exists() && place.file("host.sock").exists());
    assert_eq!(place.status()["running"], false);
    let found = place.context.run(&["doctor", "--json"]).stdout;
    assert!(found.contains("\"host-stale\""), "{found}");
    let second = place.start();
    assert_ne!(first, second);
    assert_ne!(place.record()["instance"], record["instance"]);
    signal(second, "-KILL");
    eventually("it does not die", || !is_host(second, ""));
    let ran = place.host(&["stop"]).exits(0);
    assert_eq!(ran.stdout, "no host was running\n");
    assert!(!place.file("host.json").exists() && !place.file("host.sock").exists());
}

#[test]
fn a_number_in_a_file_is_not_trusted() {
    let place = Place::new();
    let host = place.start();
    let mut record = place.record();
    signal(host, "-KILL");
    eventually("it does not die", || !is_host(host, ""));
    let mut bystander = Command::new("sleep").arg("120").spawn().unwrap();
    record["pid"] = json!(bystander.id());
    fs::write(place.file("host.json"), record.to_string()).unwrap();
    fs::write(place.file("host.lock"), record.to_string()).unwrap();
    assert_eq!(place.status()["running"], false);
    place.host(&["stop"]).exits(0);
    assert!(
        bystander.try_wait().unwrap().is_none(),
        "somebody else was ended"
    );

    // Even when somebody holds the lock that names it.
    fs::write(place.file("host.lock"), record.to_string()).unwrap();
    let lock = fs::File::open(place.file("host.lock")).unwrap();
    lock.lock().unwrap();
    let ran = place.host(&["stop"]).exits(2);
    assert!(
        ran.stderr.contains("which is some other process"),
        "{}",
        ran.stderr
    );
    assert!(
        bystander.try_wait().unwrap().is_none(),
        "somebody else was ended"
    );
    drop(lock);
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

#[test]
fn a_host_that_does_not_answer_is_named_and_can_be_ended() {
    let place = Place::new();
    let pid = place.start();
    signal(pid, "-STOP");
    for action in ["start", "status"] {
        let ran = place.host(&[action]).exits(2);
        let words = format!("The host (pid {pid}) does not answer");
        assert!(ran.stderr.contains(&words), "{}", ran.stderr);
        assert!(
            ran.stderr.contains("`cellwright host stop`"),
            "{}",
            ran.stderr
        );
    }
    let found = place.context.run(&["doctor", "--json"]).stdout;
    assert!(found.contains("\"host-silent\""), "{found}");
    let ended = place.host(&["stop", "--json"]).exits(0).json();
    assert_eq!(
        (&ended["pid"], &ended["forced"]),
        (&json!(pid), &json!(true))
    );
    assert!(!is_host(pid, ""));
    assert!(!place.file("host.json").exists() && !place.file("host.sock").exists());
}

#[test]
fn files_that_were_cleaned_away_come_back() {
    let place = Place::new();
    let pid = place.start();
    fs::remove_file(place.file("host.json")).unwrap();
    assert_eq!(place.status()["pid"], pid, "the lock still tells");
    fs::remove_file(place.file("host.sock")).unwrap();
    // Waits until the host has noticed.
    assert_eq!(place.start(), pid);
    assert!(place.file("host.json").exists());

    fs::remove_dir_all(&place.folder).unwrap();
    eventually("it does not come back", || place.file("host.json").exists());
    assert_eq!(place.status()["pid"], pid);
}

#[test]
fn of_two_hosts_the_one_without_a_lock_goes() {
    let place = Place::new();
    let first = place.start();
    fs::remove_dir_all(&place.folder).unwrap();
    let second = place.start();
    assert_ne!(first, second);
    eventually("the first stays", || !is_host(first, ""));
    assert_eq!(place.status()["pid"], second);
    assert_eq!(hosts(&place.folder.display().to_string()), [second]);
}

#[test]
fn without_descriptors_it_waits_and_goes_on() {
    let place = Place::new();
    let output = Command::new("sh")
        .args(["-c", "ulimit -n 40; exec \"$0\" host start --json"])
        .arg(env!("CARGO_BIN_EXE_cellwright"))
        .env("CELLWRIGHT_HOST_DIR", &place.folder)
        .output()
        .unwrap();
    assert!(output.status.success());
    let crowd: Vec<_> = (0..60).map(|_| place.connect()).collect();
    eventually("it says nothing", || {
        place.log().contains("no client can come in")
    });
    let log = place.log();
    assert_eq!(log.matches("no client can come in").count(), 1, "{log}");
    drop(crowd);
    eventually("it does not recover", || {
        place.host(&["status", "--json"]).code == Some(0)
    });
}

#[test]
fn a_host_that_cannot_start_says_why() {
    let place = Place::new();
    place.start();
    place.host(&["stop"]).exits(0);
    fs::create_dir(place.file("host.sock")).unwrap();
    let ran = place.host(&["start"]).exits(2);
    assert!(
        ran.stderr
            .contains("error: The host could not be started\n  caused by: could not remove "),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("directory"), "{}", ran.stderr);
    fs::remove_dir(place.file("host.sock")).unwrap();
    place.start();
}

#[test]
fn a_long_log_becomes_the_old_one() {
    let place = Place::new();
    place.start();
    place.host(&["stop"]).exits(0);
    let mut long = fs::read(place.file("host.log")).unwrap();
    long.resize(1024 * 1024 + 1, b'\n');
    fs::write(place.file("host.log"), &long).unwrap();
    let pid = place.start();
    assert_eq!(fs::read(place.file("host.log.1")).unwrap(), long);
    let log = fs::read_to_string(place.file("host.log")).unwrap();
    assert!(log.contains(&format!("started: pid {pid}")) && log.len() < 1000);
    assert_eq!(
        fs::read_link(format!("/proc/{pid}/fd/2")).unwrap(),
        place.file("host.log").canonicalize().unwrap()
    );
}
