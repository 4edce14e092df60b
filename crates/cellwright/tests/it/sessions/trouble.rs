//! What a hostile user tries.

use std::io::Read;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use super::{Desk, LONG, Terminal, notices};
use crate::context::Ran;
use crate::host::{eventually, signal};

/// `eval` on an interpreter of its own.
fn on_python(desk: &Desk, session: &str, python: &str, arguments: &[&str]) -> Ran {
    let mut all = vec!["eval", "--session", session, "--python", python];
    all.extend(arguments);
    desk.run(&all)
}

#[test]
fn a_call_that_cannot_succeed_takes_nothing_from_others() {
    let desk = Desk::with(&[("sessions.max", "1")]);
    desk.eval("a", &["x = 1"]).exits(0);
    let lost = desk.eval("b", &["1", "--cwd", "nowhere"]).exits(2);
    assert!(lost.stderr.contains("does not exist"), "{}", lost.stderr);
    assert_eq!(desk.prints("a", "x"), "1\n");
    // One that fails later leaves no session behind.
    let failed = on_python(&desk, "c", "/bin/false", &["1"]).exits(2);
    assert!(!failed.stderr.is_empty());
    assert!(desk.kernels().iter().all(|kernel| kernel["session"] != "c"));
}

#[test]
fn why_there_is_no_kernel_is_in_the_document_too() {
    let desk = Desk::new();
    let answer = on_python(&desk, "s", "/bin/false", &["1", "--json"]);
    let answer = answer.exits(2).json();
    assert_eq!(answer["status"], "not_started");
    let why = answer["error"]["message"].as_str().unwrap();
    assert!(why.contains("ended while starting"), "{why}");
}

#[test]
fn whoever_stands_in_the_door_does_not_block_the_way() {
    let desk = Desk::new();
    let url = desk.prints("s", "import os; print(os.environ['CELLWRIGHT_BRIDGE_URL'])");
    let address = url.trim().strip_prefix("http://").unwrap();
    let silent: Vec<TcpStream> = (0..300)
        .filter_map(|_| TcpStream::connect(address).ok())
        .collect();
    assert!(silent.len() > 100, "they can knock");
    let host = desk.host_pid();
    let open = std::fs::read_dir(format!("/proc/{host}/fd"))
        .unwrap()
        .count();
    assert!(open < 150, "{open} descriptors");
    assert_eq!(desk.prints("s", "1"), "1\n");
    // After a while those who say nothing are sent away, and others come in.
    eventually("cells cannot call", || {
        desk.eval("s", &["print(len(tool.artifact('list')) >= 0)"])
            .stdout
            == "True\n"
    });
}

#[test]
fn one_can_leave_a_host_that_does_not_answer() {
    let desk = Desk::new();
    let mut terminal = desk.busy("s");
    let host = desk.host_pid();
    signal(host, "-STOP");
    terminal.signal("-INT");
    std::thread::sleep(std::time::Duration::from_millis(300));
    terminal.signal("-INT");
    eventually("it waits for ever", || terminal.is_over());
    let left = terminal.end().exits(130);
    assert!(left.stderr.contains("does not answer"), "{}", left.stderr);
    signal(host, "-CONT");
}

#[test]
fn the_end_that_somebody_else_made_is_told_as_it_was() {
    let desk = Desk::new();
    let held = desk.busy("s");
    desk.run(&["kernels", "reset", "s"]).exits(0);
    let reset = held.end().exits(130).stderr;
    assert!(reset.contains("the kernel was reset"), "{reset}");
    assert!(!reset.contains("did not react"), "{reset}");
    let held = desk.busy("s");
    desk.run(&["kernels", "stop", "s"]).exits(0);
    let ended = held.end().exits(130).stderr;
    assert!(ended.contains("the session was stopped"), "{ended}");
}

#[test]
fn others_are_told_when_somebody_ends_their_session() {
    let desk = Desk::new();
    for owner in ["a", "b"] {
        desk.eval("s", &["x = 1", "--owner", owner]).exits(0);
    }
    desk.run(&["kernels", "stop", "s"]).exits(0);
    let answer = desk.answer("s", &["1", "--owner", "b"], 0);
    assert_eq!(notices(&answer), ["session_ended"]);
}

#[test]
fn following_ends_with_its_reader() {
    let desk = Desk::new();
    let code = "import time\nfor i in range(1000): print(i, flush=True); time.sleep(0.01)";
    let run = desk.background("s", &[code, "--timeout", "0"]);
    let mut command = desk.command(&["runs", "tail", &run, "--follow"]);
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
    let so_far = desk.run(&["runs", "tail", &run, "--json"]).exits(0).json();
    assert_eq!(so_far["status"], "running");
    assert!(so_far["text"].as_str().unwrap().starts_with("0\n1\n"));
    desk.run(&["runs", "cancel", &run]).exits(0);
}

#[test]
fn sessions_of_one_name_are_told_apart_by_number() {
    let desk = Desk::new();
    let found = desk.prints("s", "import sys; print(sys.executable)");
    let link = desk.path("other-python");
    std::os::unix::fs::symlink(found.trim(), &link).unwrap();
    on_python(&desk, "s", link.to_str().unwrap(), &["1"]).exits(0);
    let which = desk.run(&["kernels", "interrupt", "s"]).exits(2).stderr;
    assert!(
        which.contains("@1 in ") && which.contains("@2 in "),
        "{which}"
    );
    desk.run(&["kernels", "stop", "@2"]).exits(0);
    desk.run(&["kernels", "interrupt", "s"]).exits(0);
}

#[test]
fn a_disk_that_was_full_takes_no_more_than_it_must_from_the_history() {
    let desk = Desk::new();
    let Some(mounted) = desk.place.context.small_disk("200k") else {
        return;
    };
    let disk = mounted.path();
    std::fs::set_permissions(disk, std::fs::Permissions::from_mode(0o700)).unwrap();
    let command = |arguments: &[&str]| {
        let mut command = desk.command(arguments);
        command.env("CELLWRIGHT_HOST_DIR", disk);
        Ran::of(&desk.place.context, &command.output().unwrap())
    };
    let eval = |code: &str| {
        let mut command = desk.eval_command("s", &[code]);
        command.env("CELLWRIGHT_HOST_DIR", disk);
        Ran::of(&desk.place.context, &command.output().unwrap()).exits(0)
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
    let desk = Desk::new();
    desk.eval("s", &["1 + 1"]).exits(0);
    let real = desk.path("real.ipynb");
    std::fs::write(&real, "old").unwrap();
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink(&real, desk.path("link.ipynb")).unwrap();
    desk.run(&["kernels", "export", "s", "link.ipynb"]).exits(2);
    desk.run(&["kernels", "export", "s", "link.ipynb", "--force"])
        .exits(0);
    assert!(desk.path("link.ipynb").is_symlink());
    let mode = real.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    desk.run(&["kernels", "export", "s", "/dev/null", "--force"])
        .exits(2);
    let printed = desk.run(&["kernels", "export", "s", "-"]).exits(0).stdout;
    assert_eq!(printed, std::fs::read_to_string(&real).unwrap());
}

#[test]
fn names_and_times_that_make_no_sense_are_errors() {
    let desk = Desk::new();
    for name in ["", "a b", "a\u{1b}b", "@1", &"x".repeat(101)] {
        desk.eval(name, &["1"]).exits(2);
        desk.eval("s", &["1", "--owner", name]).exits(2);
    }
    for time in ["-1", "nan", "x"] {
        let flag = format!("--timeout={time}");
        let wrong = desk.eval("s", &["1", &flag]).exits(2).stderr;
        assert!(wrong.contains("a number of seconds, 0 or more"), "{wrong}");
    }
    // Nearly nothing is not no limit.
    desk.eval("s", &["--timeout", "1e-300", "1"]).exits(124);
}

#[test]
fn of_several_cells_the_one_that_failed_is_named() {
    let desk = Desk::new();
    let ran = desk
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
    let desk = Desk::new();
    let path = desk.path("large.py");
    std::fs::write(&path, format!("#{}\n", "x".repeat(70 << 20))).unwrap();
    let refused = desk.eval("s", &["-f", path.to_str().unwrap()]).exits(2);
    assert!(
        refused.stderr.contains("larger than 64 MiB"),
        "{}",
        refused.stderr
    );
}

#[test]
fn whoever_loses_the_host_is_told_what_that_means() {
    let desk = Desk::new();
    let terminal: Terminal<'_> = desk.terminal("s", &[LONG, "--timeout", "0"]);
    desk.begun();
    desk.kill_host();
    let lost = terminal.end().exits(2);
    assert!(
        lost.stderr.contains("variables are lost"),
        "{}",
        lost.stderr
    );
}
