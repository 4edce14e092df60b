//! Hosts that were killed, stopped, cleaned away, or never were; folders that are not safe.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use serde_json::json;

use super::{TestHost, hosts, is_host, signal, wait_until};

#[test]
fn an_unsafe_folder_is_refused_with_what_to_do() {
    let test_host = TestHost::new();
    fs::create_dir(&test_host.folder).unwrap();
    fs::set_permissions(&test_host.folder, fs::Permissions::from_mode(0o755)).unwrap();
    for action in ["start", "status", "stop", "log"] {
        let ran = test_host.run(&[action]).exits(2);
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
    assert_eq!(fs::read_dir(&test_host.folder).unwrap().count(), 0);
    let found = test_host.context.run(&["doctor", "--json"]).stdout;
    assert!(found.contains("\"host-folder\""), "{found}");

    fs::remove_dir(&test_host.folder).unwrap();
    let elsewhere = test_host.context.home().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::set_permissions(&elsewhere, fs::Permissions::from_mode(0o700)).unwrap();
    symlink(&elsewhere, &test_host.folder).unwrap();
    let ran = test_host.run(&["start"]).exits(2);
    assert!(
        ran.stderr
            .contains("is not a directory but a symbolic link"),
        "{}",
        ran.stderr
    );
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);

    fs::remove_file(&test_host.folder).unwrap();
    fs::write(&test_host.folder, "").unwrap();
    let ran = test_host.run(&["start"]).exits(2);
    assert!(
        ran.stderr.contains("is not a directory but a file"),
        "{}",
        ran.stderr
    );
    fs::remove_file(&test_host.folder).unwrap();
}

#[test]
fn a_killed_host_is_replaced_and_its_leftovers_removed() {
    let test_host = TestHost::new();
    let first = test_host.start();
    let record = test_host.record();
    signal(first, "-KILL");
    wait_until("it does not die", || !is_host(first, ""));
    assert!(test_host.file("host.json").exists() && test_host.file("host.sock").exists());
    assert_eq!(test_host.status()["running"], false);
    let found = test_host.context.run(&["doctor", "--json"]).stdout;
    assert!(found.contains("\"host-stale\""), "{found}");
    let second = test_host.start();
    assert_ne!(first, second);
    assert_ne!(test_host.record()["instance"], record["instance"]);
    signal(second, "-KILL");
    wait_until("it does not die", || !is_host(second, ""));
    let ran = test_host.run(&["stop"]).exits(0);
    assert_eq!(ran.stdout, "no host was running\n");
    assert!(!test_host.file("host.json").exists() && !test_host.file("host.sock").exists());
}

#[test]
fn a_number_in_a_file_is_not_trusted() {
    let test_host = TestHost::new();
    let host = test_host.start();
    let mut record = test_host.record();
    signal(host, "-KILL");
    wait_until("it does not die", || !is_host(host, ""));
    let mut bystander = Command::new("sleep").arg("120").spawn().unwrap();
    record["pid"] = json!(bystander.id());
    fs::write(test_host.file("host.json"), record.to_string()).unwrap();
    fs::write(test_host.file("host.lock"), record.to_string()).unwrap();
    assert_eq!(test_host.status()["running"], false);
    test_host.run(&["stop"]).exits(0);
    assert!(
        bystander.try_wait().unwrap().is_none(),
        "somebody else was ended"
    );

    // Even when somebody holds the lock that names it.
    fs::write(test_host.file("host.lock"), record.to_string()).unwrap();
    let lock = fs::File::open(test_host.file("host.lock")).unwrap();
    lock.lock().unwrap();
    let ran = test_host.run(&["stop"]).exits(2);
    assert!(
        ran.stderr.contains("which is another process"),
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
    let test_host = TestHost::new();
    let pid = test_host.start();
    signal(pid, "-STOP");
    for action in ["start", "status"] {
        let ran = test_host.run(&[action]).exits(2);
        let words = format!("The host (pid {pid}) does not answer");
        assert!(ran.stderr.contains(&words), "{}", ran.stderr);
        assert!(
            ran.stderr.contains("`cellwright host stop`"),
            "{}",
            ran.stderr
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
fn files_that_were_cleaned_away_come_back() {
    let test_host = TestHost::new();
    let pid = test_host.start();
    fs::remove_file(test_host.file("host.json")).unwrap();
    assert_eq!(test_host.status()["pid"], pid, "the lock still tells");
    fs::remove_file(test_host.file("host.sock")).unwrap();
    // Waits until the host has noticed.
    assert_eq!(test_host.start(), pid);
    assert!(test_host.file("host.json").exists());

    fs::remove_dir_all(&test_host.folder).unwrap();
    wait_until("it does not come back", || {
        test_host.file("host.json").exists()
    });
    assert_eq!(test_host.status()["pid"], pid);
}

#[test]
fn of_two_hosts_the_one_without_a_lock_goes() {
    let test_host = TestHost::new();
    let first = test_host.start();
    fs::remove_dir_all(&test_host.folder).unwrap();
    let second = test_host.start();
    assert_ne!(first, second);
    wait_until("the first stays", || !is_host(first, ""));
    assert_eq!(test_host.status()["pid"], second);
    assert_eq!(hosts(&test_host.folder.display().to_string()), [second]);
}

#[test]
fn without_descriptors_it_waits_and_continues() {
    let test_host = TestHost::new();
    let output = Command::new("sh")
        .args(["-c", "ulimit -n 40; exec \"$0\" host start --json"])
        .arg(env!("CARGO_BIN_EXE_cellwright"))
        .env("CELLWRIGHT_HOST_DIR", &test_host.folder)
        .output()
        .unwrap();
    assert!(output.status.success());
    let crowd: Vec<_> = (0..60).map(|_| test_host.connect()).collect();
    wait_until("it says nothing", || {
        test_host.log().contains("cannot accept clients")
    });
    let log = test_host.log();
    assert_eq!(log.matches("cannot accept clients").count(), 1, "{log}");
    drop(crowd);
    wait_until("it does not recover", || {
        test_host.run(&["status", "--json"]).code == Some(0)
    });
}

#[test]
fn a_host_that_cannot_start_says_why() {
    let test_host = TestHost::new();
    test_host.start();
    test_host.run(&["stop"]).exits(0);
    fs::create_dir(test_host.file("host.sock")).unwrap();
    let ran = test_host.run(&["start"]).exits(2);
    assert!(
        ran.stderr
            .contains("error: The host could not be started\n  caused by: could not remove "),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("directory"), "{}", ran.stderr);
    fs::remove_dir(test_host.file("host.sock")).unwrap();
    test_host.start();
}

#[test]
fn a_long_log_becomes_the_old_one() {
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
