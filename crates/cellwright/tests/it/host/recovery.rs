//! Hosts that are killed, stopped or without their files, hosts that cannot start, and unsafe directories.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use serde_json::json;

use super::{TestHost, hosts, is_host, signal, wait_until};

#[test]
fn an_unsafe_directory_is_refused_with_a_hint() {
    let test_host = TestHost::new();
    fs::create_dir(&test_host.dir).unwrap();
    fs::set_permissions(&test_host.dir, fs::Permissions::from_mode(0o755)).unwrap();
    for action in ["start", "status", "stop", "log"] {
        let result = test_host.run(&[action]).exits(2);
        assert!(
            result
                .stderr
                .contains("is accessible to other users (mode 755)"),
            "{}",
            result.stderr
        );
        assert!(
            result
                .stderr
                .contains("hint: if no other user put files there: `chmod 700 ")
        );
    }
    assert_eq!(fs::read_dir(&test_host.dir).unwrap().count(), 0);
    let found = test_host.context.run(&["doctor", "--json"]).stdout;
    assert!(found.contains("\"host-directory\""), "{found}");

    fs::remove_dir(&test_host.dir).unwrap();
    let elsewhere = test_host.context.home().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::set_permissions(&elsewhere, fs::Permissions::from_mode(0o700)).unwrap();
    symlink(&elsewhere, &test_host.dir).unwrap();
    let result = test_host.run(&["start"]).exits(2);
    assert!(
        result
            .stderr
            .contains("is not a directory but a symbolic link"),
        "{}",
        result.stderr
    );
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);

    fs::remove_file(&test_host.dir).unwrap();
    fs::write(&test_host.dir, "").unwrap();
    let result = test_host.run(&["start"]).exits(2);
    assert!(
        result.stderr.contains("is not a directory but a file"),
        "{}",
        result.stderr
    );
    fs::remove_file(&test_host.dir).unwrap();
}

#[test]
fn a_killed_host_is_replaced_and_its_files_are_removed() {
    let test_host = TestHost::new();
    let first = test_host.start();
    let record = test_host.record();
    signal(first, "-KILL");
    wait_until("the host still runs", || !is_host(first, ""));
    assert!(test_host.file("host.json").exists() && test_host.file("host.sock").exists());
    assert_eq!(test_host.status()["running"], false);
    let found = test_host.context.run(&["doctor", "--json"]).stdout;
    assert!(found.contains("\"host-stale\""), "{found}");
    let second = test_host.start();
    assert_ne!(first, second);
    assert_ne!(test_host.record()["instance"], record["instance"]);
    signal(second, "-KILL");
    wait_until("the host still runs", || !is_host(second, ""));
    let result = test_host.run(&["stop"]).exits(0);
    assert_eq!(result.stdout, "no host was running\n");
    assert!(!test_host.file("host.json").exists() && !test_host.file("host.sock").exists());
}

#[test]
fn a_process_id_in_a_file_is_verified() {
    let test_host = TestHost::new();
    let host = test_host.start();
    let mut record = test_host.record();
    signal(host, "-KILL");
    wait_until("the host still runs", || !is_host(host, ""));
    let mut other_process = Command::new("sleep").arg("120").spawn().unwrap();
    record["pid"] = json!(other_process.id());
    fs::write(test_host.file("host.json"), record.to_string()).unwrap();
    fs::write(test_host.file("host.lock"), record.to_string()).unwrap();
    assert_eq!(test_host.status()["running"], false);
    test_host.run(&["stop"]).exits(0);
    assert!(
        other_process.try_wait().unwrap().is_none(),
        "another process was ended"
    );

    // The same if another process holds the lock that names it.
    fs::write(test_host.file("host.lock"), record.to_string()).unwrap();
    let lock = fs::File::open(test_host.file("host.lock")).unwrap();
    lock.lock().unwrap();
    let result = test_host.run(&["stop"]).exits(2);
    assert!(
        result.stderr.contains("which is another process"),
        "{}",
        result.stderr
    );
    assert!(
        other_process.try_wait().unwrap().is_none(),
        "another process was ended"
    );
    drop(lock);
    other_process.kill().unwrap();
    other_process.wait().unwrap();
}

#[test]
fn a_host_that_does_not_answer_is_reported_and_can_be_stopped() {
    let test_host = TestHost::new();
    let pid = test_host.start();
    signal(pid, "-STOP");
    for action in ["start", "status"] {
        let result = test_host.run(&[action]).exits(2);
        let message = format!("The host (pid {pid}) does not answer");
        assert!(result.stderr.contains(&message), "{}", result.stderr);
        assert!(
            result.stderr.contains("`cellwright host stop`"),
            "{}",
            result.stderr
        );
    }
    let found = test_host.context.run(&["doctor", "--json"]).stdout;
    assert!(found.contains("\"host-silent\""), "{found}");
    let ended = test_host.run(&["stop", "--json"]).exits(0).json();
    assert_eq!(
        (&ended["pid"], &ended["forced"]),
        (&json!(pid), &json!(true))
    );
    assert!(!is_host(pid, ""));
    assert!(!test_host.file("host.json").exists() && !test_host.file("host.sock").exists());
}

#[test]
fn removed_files_are_created_again() {
    let test_host = TestHost::new();
    let pid = test_host.start();
    fs::remove_file(test_host.file("host.json")).unwrap();
    assert_eq!(test_host.status()["pid"], pid, "the lock names the host");
    fs::remove_file(test_host.file("host.sock")).unwrap();
    // Waits until the host has noticed.
    assert_eq!(test_host.start(), pid);
    assert!(test_host.file("host.json").exists());

    fs::remove_dir_all(&test_host.dir).unwrap();
    wait_until("the host does not create its files again", || {
        test_host.file("host.json").exists()
    });
    assert_eq!(test_host.status()["pid"], pid);
}

#[test]
fn of_two_hosts_the_one_without_a_lock_ends() {
    let test_host = TestHost::new();
    let first = test_host.start();
    fs::remove_dir_all(&test_host.dir).unwrap();
    let second = test_host.start();
    assert_ne!(first, second);
    wait_until("the first host still runs", || !is_host(first, ""));
    assert_eq!(test_host.status()["pid"], second);
    assert_eq!(hosts(&test_host.dir.display().to_string()), [second]);
}

#[test]
fn a_host_without_free_descriptors_accepts_clients_later() {
    let test_host = TestHost::new();
    let output = Command::new("sh")
        .args(["-c", "ulimit -n 40; exec \"$0\" host start --json"])
        .arg(env!("CARGO_BIN_EXE_cellwright"))
        .env("CELLWRIGHT_HOST_DIR", &test_host.dir)
        .output()
        .unwrap();
    assert!(output.status.success());
    let connections: Vec<_> = (0..60).map(|_| test_host.connect()).collect();
    wait_until("the host logs no error", || {
        test_host.log().contains("cannot accept clients")
    });
    let log = test_host.log();
    assert_eq!(log.matches("cannot accept clients").count(), 1, "{log}");
    drop(connections);
    wait_until("the host does not accept clients again", || {
        test_host.run(&["status", "--json"]).code == Some(0)
    });
}

#[test]
fn a_host_that_cannot_start_reports_the_reason() {
    let test_host = TestHost::new();
    test_host.start();
    test_host.run(&["stop"]).exits(0);
    fs::create_dir(test_host.file("host.sock")).unwrap();
    let result = test_host.run(&["start"]).exits(2);
    assert!(
        result
            .stderr
            .contains("error: The host could not be started\n  caused by: could not remove "),
        "{}",
        result.stderr
    );
    assert!(result.stderr.contains("directory"), "{}", result.stderr);
    fs::remove_dir(test_host.file("host.sock")).unwrap();
    test_host.start();
}

#[test]
fn a_long_log_is_rotated() {
    let test_host = TestHost::new();
    test_host.start();
    test_host.run(&["stop"]).exits(0);
    let mut long = fs::read(test_host.file("host.log")).unwrap();
    long.resize(1024 * 1024 + 1, b'\n');
    fs::write(test_host.file("host.log"), &long).unwrap();
    let pid = test_host.start();
    assert_eq!(fs::read(test_host.file("host.log.1")).unwrap(), long);
    let log = fs::read_to_string(test_host.file("host.log")).unwrap();
    assert!(log.contains(&format!("started: pid {pid}")) && log.len() < 1000);
    assert_eq!(
        fs::read_link(format!("/proc/{pid}/fd/2")).unwrap(),
        test_host.file("host.log").canonicalize().unwrap()
    );
}
