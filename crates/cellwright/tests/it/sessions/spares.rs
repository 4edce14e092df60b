//! Kernels that are ready before anybody needs them.

use std::fs;

use super::{SessionFixture, text};
use crate::host::wait_until;

/// The processes below a host that have no session: the spare and nobody else.
fn children(fixture: &SessionFixture) -> Vec<u32> {
    let parent = |pid: u32| -> Option<u32> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit(") ").next()?.split(' ').nth(1)?.parse().ok()
    };
    let all = fs::read_dir("/proc").unwrap();
    let all = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let host = fixture.host_pid();
    // Kernels are children of their supervisors, which are the host's.
    all.filter(|pid| parent(*pid).and_then(parent) == Some(host))
        .collect()
}

#[test]
fn the_second_session_takes_a_kernel_that_was_ready() {
    let fixture = SessionFixture::new();
    fixture.eval("first", &["1"]).exits(0);
    wait_until("there is no spare", || children(&fixture).len() == 2);
    // Ready is more than there.
    std::thread::sleep(std::time::Duration::from_millis(500));
    let before = children(&fixture);
    fs::create_dir(fixture.path("elsewhere")).unwrap();
    fs::write(fixture.path("elsewhere/beside.py"), "name = 'beside'").unwrap();
    let code = "import os, sys, beside\nprint(os.getpid(), os.getcwd(), sys.path[0] in ('', os.getcwd()), os.environ['CELLWRIGHT_SESSION'], os.environ.get('PWD'), beside.name)";
    let answer = fixture.eval_json("second", &[code, "--cwd", "elsewhere"], 0);
    let words: Vec<&str> = text(&answer).split(' ').collect();
    assert!(
        before.contains(&words[0].parse().unwrap()),
        "{words:?} {before:?}"
    );
    let folder = fixture.path("elsewhere").canonicalize().unwrap();
    let folder = folder.to_str().unwrap();
    assert_eq!(words[1..4], [folder, "True", "second"]);
    assert_ne!(words[4], "/");
    assert_eq!(words[5], "beside");
    assert_eq!(answer["kernel"]["generation"], 1);
    assert_eq!(answer["cells"][0]["execution_count"], 1);
    assert_eq!(answer["notices"], serde_json::json!([]));
    // A reset takes one, too, and the folder stays.
    wait_until("there is no other spare", || children(&fixture).len() == 3);
    std::thread::sleep(std::time::Duration::from_millis(500));
    let before = children(&fixture);
    let code = "import os\nprint(os.getpid(), os.getcwd())";
    let fresh = fixture.eval_json("second", &["--reset", code, "--cwd", "elsewhere"], 0);
    let words: Vec<&str> = text(&fresh).split(' ').collect();
    assert!(
        before.contains(&words[0].parse().unwrap()),
        "{words:?} {before:?}"
    );
    assert_eq!(words[1], folder);
    fixture.run(&["host", "stop"]).exits(0);
    assert!(before.iter().all(|pid| !crate::survivors::runs(*pid)));
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
fn a_kernel_gets_nothing_of_the_environment_of_its_host() {
    let fixture = SessionFixture::new();
    fixture.eval("first", &["1"]).exits(0);
    wait_until("there is no spare", || children(&fixture).len() == 2);
    for session in ["first", "second"] {
        let code = "import os\nprint([name for name in os.environ if name.startswith('MALLOC_')])";
        assert_eq!(fixture.eval_stdout(session, code), "[]\n");
    }
}

#[test]
fn without_spares_there_is_no_process_too_many() {
    let fixture = SessionFixture::with(&[("kernel.spare", "false")]);
    fixture.eval("first", &["1"]).exits(0);
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(children(&fixture).len(), 1);
}
