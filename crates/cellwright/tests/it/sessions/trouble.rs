//! What a hostile user tries.

use std::io::Read;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use super::{LONG, SessionFixture, Terminal, notices};
use crate::context::CommandOutput;
use crate::host::{signal, wait_until};

/// `eval` on an interpreter of its own.
fn on_python(
    fixture: &SessionFixture,
    session: &str,
    python: &str,
    arguments: &[&str],
) -> CommandOutput {
    let mut all = vec!["eval", "--session", session, "--python", python];
    all.extend(arguments);
    fixture.run(&all)
}

#[test]
fn a_call_that_cannot_succeed_takes_nothing_from_others() {
    let fixture = SessionFixture::with(&[("sessions.max", "1")]);
    fixture.eval("a", &["x = 1"]).exits(0);
    let lost = fixture.eval("b", &["1", "--cwd", "nowhere"]).exits(2);
    assert!(lost.stderr.contains("does not exist"), "{}", lost.stderr);
    assert_eq!(fixture.eval_stdout("a", "x"), "1\n");
    // One that fails later leaves no session behind.
    let failed = on_python(&fixture, "c", "/bin/false", &["1"]).exits(2);
    assert!(!failed.stderr.is_empty());
    assert!(
        fixture
            .kernels()
            .iter()
            .all(|kernel| kernel["session"] != "c")
    );
}

#[test]
fn why_there_is_no_kernel_is_in_the_document_too() {
    let fixture = SessionFixture::new();
    let answer = on_python(&fixture, "s", "/bin/false", &["1", "--json"]);
    let answer = answer.exits(2).json();
    assert_eq!(answer["status"], "not_started");
    let why = answer["error"]["message"].as_str().unwrap();
    assert!(why.contains("ended while starting"), "{why}");
}

#[test]
fn silent_connections_do_not_block_others() {
    let fixture = SessionFixture::new();
    let url = fixture.eval_stdout("s", "import os; print(os.environ['CELLWRIGHT_BRIDGE_URL'])");
    let address = url.trim().strip_prefix("http://").unwrap();
    let silent: Vec<TcpStream> = (0..300)
        .filter_map(|_| TcpStream::connect(address).ok())
        .collect();
    assert!(silent.len() > 100, "they can knock");
    let host = fixture.host_pid();
    let open = std::fs::read_dir(format!("/proc/{host}/fd"))
        .unwrap()
        .count();
    assert!(open < 150, "{open} descriptors");
    assert_eq!(fixture.eval_stdout("s", "1"), "1\n");
    // After a while those who say nothing are sent away, and others come in.
    wait_until("cells cannot call", || {
        fixture
            .eval("s", &["print(len(tool.artifact('list')) >= 0)"])
            .stdout
            == "True\n"
    });
}

#[test]
fn one_can_leave_a_host_that_does_not_answer() {
    let fixture = SessionFixture::new();
    let mut terminal = fixture.start_busy("s");
    let host = fixture.host_pid();
    signal(host, "-STOP");
    terminal.signal("-INT");
    std::thread::sleep(std::time::Duration::from_millis(300));
    terminal.signal("-INT");
    wait_until("it waits for ever", || terminal.has_exited());
    let left = terminal.end().exits(130);
    assert!(left.stderr.contains("does not answer"), "{}", left.stderr);
    signal(host, "-CONT");
}

#[test]
fn an_end_caused_by_another_caller_is_reported() {
    let fixture = SessionFixture::new();
    let held = fixture.start_busy("s");
    fixture.run(&["kernels", "reset", "s"]).exits(0);
    let reset = held.end().exits(130).stderr;
    assert!(reset.contains("the kernel was reset"), "{reset}");
    assert!(!reset.contains("did not react"), "{reset}");
    let held = fixture.start_busy("s");
    fixture.run(&["kernels", "stop", "s"]).exits(0);
    let ended = held.end().exits(130).stderr;
    assert!(ended.contains("the session was stopped"), "{ended}");
}

#[test]
fn other_users_of_a_stopped_session_are_notified() {
    let fixture = SessionFixture::new();
    for owner in ["a", "b"] {
        fixture.eval("s", &["x = 1", "--owner", owner]).exits(0);
    }
    fixture.run(&["kernels", "stop", "s"]).exits(0);
    let answer = fixture.eval_json("s", &["1", "--owner", "b"], 0);
    assert_eq!(notices(&answer), ["session_ended"]);
}

#[test]
fn following_ends_with_its_reader() {
    let fixture = SessionFixture::new();
    let code = "import time\nfor i in range(1000): print(i, flush=True); time.sleep(0.01)";
    let run = fixture.start_background("s", &[code, "--timeout", "0"]);
    let mut command = fixture.command(&["runs", "tail", &run, "--follow"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 2];
    let mut out = child.stdout.take().unwrap();
    out.read_exact(&mut first).unwrap();
    drop(out);
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
    let so_far = fixture
        .run(&["runs", "tail", &run, "--json"])
        .exits(0)
        .json();
    assert_eq!(so_far["status"], "running");
    assert!(so_far["text"].as_str().unwrap().starts_with("0\n1\n"));
    fixture.run(&["runs", "cancel", &run]).exits(0);
}

#[test]
fn sessions_of_one_name_are_told_apart_by_number() {
    let fixture = SessionFixture::new();
    let found = fixture.eval_stdout("s", "import sys; print(sys.executable)");
    let link = fixture.path("other-python");
    std::os::unix::fs::symlink(found.trim(), &link).unwrap();
    on_python(&fixture, "s", link.to_str().unwrap(), &["1"]).exits(0);
    let which = fixture.run(&["kernels", "interrupt", "s"]).exits(2).stderr;
    assert!(
        which.contains("@1 in ") && which.contains("@2 in "),
        "{which}"
    );
    fixture.run(&["kernels", "stop", "@2"]).exits(0);
    fixture.run(&["kernels", "interrupt", "s"]).exits(0);
}

#[test]
fn a_disk_that_was_full_takes_no_more_than_it_must_from_the_history() {
    let fixture = SessionFixture::new();
    let Some(mounted) = fixture.host.context.small_disk("200k") else {
        return;
    };
    let disk = mounted.path();
    std::fs::set_permissions(disk, std::fs::Permissions::from_mode(0o700)).unwrap();
    let command = |arguments: &[&str]| {
        let mut command = fixture.command(arguments);
        command.env("CELLWRIGHT_HOST_DIR", disk);
        CommandOutput::new(&fixture.host.context, &command.output().unwrap())
    };
    let eval = |code: &str| {
        let mut command = fixture.eval_command("s", &[code]);
        command.env("CELLWRIGHT_HOST_DIR", disk);
        CommandOutput::new(&fixture.host.context, &command.output().unwrap()).exits(0)
    };
    eval("1");
    eval("print('x' * 250_000)");
    eval("2");
    let history = command(&["kernels", "history", "s"]).exits(0);
    assert!(
        history.stderr.contains("1 runs are missing"),
        "{}",
        history.stderr
    );
    assert_eq!(history.stdout.lines().count(), 3, "{}", history.stdout);
    command(&["host", "stop"]).exits(0);
    drop(mounted);
}

#[test]
fn an_export_keeps_what_is_there_as_it_is() {
    let fixture = SessionFixture::new();
    fixture.eval("s", &["1 + 1"]).exits(0);
    let real = fixture.path("real.ipynb");
    std::fs::write(&real, "old").unwrap();
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink(&real, fixture.path("link.ipynb")).unwrap();
    fixture
        .run(&["kernels", "export", "s", "link.ipynb"])
        .exits(2);
    fixture
        .run(&["kernels", "export", "s", "link.ipynb", "--force"])
        .exits(0);
    assert!(fixture.path("link.ipynb").is_symlink());
    let mode = real.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    fixture
        .run(&["kernels", "export", "s", "/dev/null", "--force"])
        .exits(2);
    let printed = fixture
        .run(&["kernels", "export", "s", "-"])
        .exits(0)
        .stdout;
    assert_eq!(printed, std::fs::read_to_string(&real).unwrap());
}

#[test]
fn names_and_times_that_make_no_sense_are_errors() {
    let fixture = SessionFixture::new();
    for name in ["", "a b", "a\u{1b}b", "@1", &"x".repeat(101)] {
        fixture.eval(name, &["1"]).exits(2);
        fixture.eval("s", &["1", "--owner", name]).exits(2);
    }
    for time in ["-1", "nan", "x"] {
        let flag = format!("--timeout={time}");
        let wrong = fixture.eval("s", &["1", &flag]).exits(2).stderr;
        assert!(wrong.contains("a number of seconds, 0 or more"), "{wrong}");
    }
    // Nearly nothing is not no limit.
    fixture.eval("s", &["--timeout", "1e-300", "1"]).exits(124);
}

#[test]
fn of_several_cells_the_one_that_failed_is_named() {
    let fixture = SessionFixture::new();
    let ran = fixture
        .eval("s", &["--cell", "1", "--cell", "1/0", "--cell", "3"])
        .exits(1);
    assert!(
        ran.stderr.contains("Cell 1 raised ZeroDivisionError"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains("the cell after it was skipped"),
        "{}",
        ran.stderr
    );
}

#[test]
fn code_that_is_too_large_for_a_message_is_refused_with_advice() {
    let fixture = SessionFixture::new();
    let path = fixture.path("large.py");
    std::fs::write(&path, format!("#{}\n", "x".repeat(70 << 20))).unwrap();
    let refused = fixture.eval("s", &["-f", path.to_str().unwrap()]).exits(2);
    assert!(
        refused.stderr.contains("larger than 64 MiB"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_lost_host_is_explained() {
    let fixture = SessionFixture::new();
    let terminal: Terminal<'_> = fixture.terminal("s", &[LONG, "--timeout", "0"]);
    fixture.wait_until_started();
    fixture.kill_host();
    let lost = terminal.end().exits(2);
    assert!(
        lost.stderr.contains("variables are lost"),
        "{}",
        lost.stderr
    );
}
