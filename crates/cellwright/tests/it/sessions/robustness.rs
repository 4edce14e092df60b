//! Calls that fail, connections that are silent, hosts that do not answer, full disks and wrong arguments.

use std::io::Read;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use super::{ClientProcess, LONG_CELL, SessionFixture, notices};
use crate::context::CommandOutput;
use crate::host::{signal, wait_until};

/// Runs `eval` on a session with this interpreter.
fn eval_with_python(
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
fn a_call_that_fails_does_not_affect_other_sessions() {
    let fixture = SessionFixture::with(&[("sessions.max", "1")]);
    fixture.eval("a", &["x = 1"]).exits(0);
    let missing = fixture.eval("b", &["1", "--cwd", "nowhere"]).exits(2);
    assert!(
        missing.stderr.contains("does not exist"),
        "{}",
        missing.stderr
    );
    assert_eq!(fixture.eval_stdout("a", "x"), "1\n");
    // A kernel that does not start leaves no session.
    let failed = eval_with_python(&fixture, "c", "/bin/false", &["1"]).exits(2);
    assert!(!failed.stderr.is_empty());
    assert!(
        fixture
            .kernels()
            .iter()
            .all(|kernel| kernel["session"] != "c")
    );
}

#[test]
fn the_json_report_contains_the_reason_of_a_failed_start() {
    let fixture = SessionFixture::new();
    let report = eval_with_python(&fixture, "s", "/bin/false", &["1", "--json"]);
    let report = report.exits(2).json();
    assert_eq!(report["status"], "not_started");
    let message = report["error"]["message"].as_str().unwrap();
    assert!(message.contains("ended while starting"), "{message}");
}

#[test]
fn silent_connections_do_not_block_others() {
    let fixture = SessionFixture::new();
    let url = fixture.eval_stdout("s", "import os; print(os.environ['CELLWRIGHT_BRIDGE_URL'])");
    let address = url.trim().strip_prefix("http://").unwrap();
    let silent: Vec<TcpStream> = (0..300)
        .filter_map(|_| TcpStream::connect(address).ok())
        .collect();
    assert!(silent.len() > 100, "too few connections were accepted");
    let host = fixture.host_pid();
    let open = std::fs::read_dir(format!("/proc/{host}/fd"))
        .unwrap()
        .count();
    assert!(open < 150, "{open} descriptors");
    assert_eq!(fixture.eval_stdout("s", "1"), "1\n");
    // The bridge closes silent connections after a timeout, and then accepts others.
    wait_until("cells cannot call verbs", || {
        fixture
            .eval("s", &["print(len(tool.artifact('list')) >= 0)"])
            .stdout
            == "True\n"
    });
}

#[test]
fn a_command_can_be_interrupted_if_its_host_does_not_answer() {
    let fixture = SessionFixture::new();
    let mut client = fixture.start_busy("s");
    let host = fixture.host_pid();
    signal(host, "-STOP");
    client.signal("-INT");
    std::thread::sleep(std::time::Duration::from_millis(300));
    client.signal("-INT");
    wait_until("the command does not return", || client.has_exited());
    let interrupted = client.wait().exits(130);
    assert!(
        interrupted.stderr.contains("does not answer"),
        "{}",
        interrupted.stderr
    );
    signal(host, "-CONT");
}

#[test]
fn an_end_caused_by_another_caller_is_reported() {
    let fixture = SessionFixture::new();
    let running_client = fixture.start_busy("s");
    fixture.run(&["kernels", "reset", "s"]).exits(0);
    let reset = running_client.wait().exits(130).stderr;
    assert!(reset.contains("the kernel was reset"), "{reset}");
    assert!(!reset.contains("did not react"), "{reset}");
    let running_client = fixture.start_busy("s");
    fixture.run(&["kernels", "stop", "s"]).exits(0);
    let ended = running_client.wait().exits(130).stderr;
    assert!(ended.contains("the session was stopped"), "{ended}");
}

#[test]
fn other_users_of_a_stopped_session_are_notified() {
    let fixture = SessionFixture::new();
    for owner in ["a", "b"] {
        fixture.eval("s", &["x = 1", "--owner", owner]).exits(0);
    }
    fixture.run(&["kernels", "stop", "s"]).exits(0);
    let report = fixture.eval_json("s", &["1", "--owner", "b"], 0);
    assert_eq!(notices(&report), ["session_ended"]);
}

#[test]
fn tail_ends_when_its_pipe_is_closed() {
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
fn sessions_with_the_same_name_are_selected_by_number() {
    let fixture = SessionFixture::new();
    let found = fixture.eval_stdout("s", "import sys; print(sys.executable)");
    let link = fixture.path("other-python");
    std::os::unix::fs::symlink(found.trim(), &link).unwrap();
    eval_with_python(&fixture, "s", link.to_str().unwrap(), &["1"]).exits(0);
    let which = fixture.run(&["kernels", "interrupt", "s"]).exits(2).stderr;
    assert!(
        which.contains("@1 in ") && which.contains("@2 in "),
        "{which}"
    );
    fixture.run(&["kernels", "stop", "@2"]).exits(0);
    fixture.run(&["kernels", "interrupt", "s"]).exits(0);
}

#[test]
fn the_history_misses_only_the_runs_that_did_not_fit_on_a_full_disk() {
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
fn an_export_keeps_links_and_modes_of_existing_files() {
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
fn invalid_names_and_timeouts_are_errors() {
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
    // A tiny timeout differs from 0, which means no timeout.
    fixture.eval("s", &["--timeout", "1e-300", "1"]).exits(124);
}

#[test]
fn the_error_names_the_cell_that_failed() {
    let fixture = SessionFixture::new();
    let result = fixture
        .eval("s", &["--cell", "1", "--cell", "1/0", "--cell", "3"])
        .exits(1);
    assert!(
        result.stderr.contains("Cell 1 raised ZeroDivisionError"),
        "{}",
        result.stderr
    );
    assert!(
        result.stderr.contains("the cell after it was skipped"),
        "{}",
        result.stderr
    );
}

#[test]
fn code_that_exceeds_the_limit_of_a_message_is_refused() {
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
fn the_loss_of_a_host_is_reported() {
    let fixture = SessionFixture::new();
    let client: ClientProcess<'_> = fixture.start_client("s", &[LONG_CELL, "--timeout", "0"]);
    fixture.wait_until_started();
    fixture.kill_host();
    let lost = client.wait().exits(2);
    assert!(
        lost.stderr.contains("variables are lost"),
        "{}",
        lost.stderr
    );
}
