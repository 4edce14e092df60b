//! Spare kernels: kernels that start before a session needs them.

use std::fs;

use super::{SessionFixture, text};
use crate::host::wait_until;

/// The process ids of all kernels of the host, including the spare.
fn kernel_pids(fixture: &SessionFixture) -> Vec<u32> {
    let parent = |pid: u32| -> Option<u32> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit(") ").next()?.split(' ').nth(1)?.parse().ok()
    };
    let all = fs::read_dir("/proc").unwrap();
    let all = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let host = fixture.host_pid();
    // A kernel is a child of its supervisor, whose parent is the watcher, a child of the host.
    all.filter(|pid| parent(*pid).and_then(parent).and_then(parent) == Some(host))
        .collect()
}

#[test]
fn a_new_session_uses_the_spare_kernel() {
    let fixture = SessionFixture::new();
    fixture.eval("first", &["1"]).exits(0);
    wait_until("there is no spare", || kernel_pids(&fixture).len() == 2);
    // The process exists before the kernel is ready.
    std::thread::sleep(std::time::Duration::from_millis(500));
    let before = kernel_pids(&fixture);
    fs::create_dir(fixture.path("elsewhere")).unwrap();
    fs::write(fixture.path("elsewhere/beside.py"), "name = 'beside'").unwrap();
    let code = "import os, sys, beside\nprint(os.getpid(), os.getcwd(), sys.path[0] in ('', os.getcwd()), os.environ['CELLWRIGHT_SESSION'], os.environ.get('PWD'), beside.name)";
    let report = fixture.eval_json("second", &[code, "--cwd", "elsewhere"], 0);
    let fields: Vec<&str> = text(&report).split(' ').collect();
    assert!(
        before.contains(&fields[0].parse().unwrap()),
        "{fields:?} {before:?}"
    );
    let dir = fixture.path("elsewhere").canonicalize().unwrap();
    let dir = dir.to_str().unwrap();
    assert_eq!(fields[1..4], [dir, "True", "second"]);
    assert_ne!(fields[4], "/");
    assert_eq!(fields[5], "beside");
    assert_eq!(report["kernel"]["generation"], 1);
    assert_eq!(report["cells"][0]["execution_count"], 1);
    assert_eq!(report["notices"], serde_json::json!([]));
    // A reset also uses a spare kernel and keeps the working directory.
    wait_until("there is no other spare", || {
        kernel_pids(&fixture).len() == 3
    });
    std::thread::sleep(std::time::Duration::from_millis(500));
    let before = kernel_pids(&fixture);
    let code = "import os\nprint(os.getpid(), os.getcwd())";
    let after_reset = fixture.eval_json("second", &["--reset", code, "--cwd", "elsewhere"], 0);
    let fields: Vec<&str> = text(&after_reset).split(' ').collect();
    assert!(
        before.contains(&fields[0].parse().unwrap()),
        "{fields:?} {before:?}"
    );
    assert_eq!(fields[1], dir);
    fixture.run(&["host", "stop"]).exits(0);
    assert!(
        before
            .iter()
            .all(|pid| !crate::process_cleanup::is_running(*pid))
    );
}

#[test]
fn a_spare_has_the_environment_of_its_session() {
    let fixture = SessionFixture::new();
    let value = |session: &str, variable: &str| {
        let code = "import os\nprint(os.environ.get('LC_MINE'), os.environ['CELLWRIGHT_SESSION'])";
        let mut command = fixture.eval_command(session, &[code]);
        command.env("LC_MINE", variable);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    for (session, variable) in [
        ("a", "one"),
        ("b", "two"),
        ("c", "one"),
        ("d", "three"),
        ("e", "one"),
    ] {
        assert_eq!(value(session, variable), format!("{variable} {session}\n"));
        std::thread::sleep(std::time::Duration::from_millis(300));
    }
}

#[test]
fn a_kernel_does_not_inherit_the_environment_of_its_host() {
    let fixture = SessionFixture::new();
    fixture.eval("first", &["1"]).exits(0);
    wait_until("there is no spare", || kernel_pids(&fixture).len() == 2);
    for session in ["first", "second"] {
        let code = "import os\nprint([name for name in os.environ if name.startswith('MALLOC_')])";
        assert_eq!(fixture.eval_stdout(session, code), "[]\n");
    }
}

#[test]
fn no_spare_kernel_starts_if_the_setting_is_off() {
    let fixture = SessionFixture::with(&[("kernel.spare", "false")]);
    fixture.eval("first", &["1"]).exits(0);
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(kernel_pids(&fixture).len(), 1);
}
