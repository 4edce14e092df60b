//! Hosts and kernels that a signal has suspended.

use super::{LONG_CELL, SessionFixture, number};
use crate::host::{signal, wait_until};

#[test]
fn a_host_suspended_during_a_run_is_reported() {
    let fixture = SessionFixture::new();
    fixture.eval("s", &["x = 'kept'"]).exits(0);
    let host = fixture.host_pid();
    let message = format!("error: The host (pid {host}) does not answer\n");
    let hint = format!("hint: a signal has suspended it; `kill -CONT {host}` continues it\n");
    let run = fixture.start_background("s", &[LONG_CELL, "--timeout", "0"]);
    fixture.wait_until_started();
    let commands: [&[&str]; 5] = [
        &[
            "eval",
            "--session",
            "t",
            "import time; time.sleep(100)",
            "--timeout",
            "0",
        ],
        &["eval", "--session", "s", "1", "--timeout", "2"],
        &["runs", "wait", &run],
        &["runs", "tail", "--follow", &run],
        &["kernels", "variables", "s", "--timeout", "60"],
    ];
    let clients: Vec<_> = commands
        .iter()
        .map(|command| super::ClientProcess::new(&fixture, fixture.command(command)))
        .collect();
    // Each of these has sent its request.
    wait_until("the host does not serve the clients", || {
        fixture.host.status()["clients"].as_u64() >= Some(5)
    });
    signal(host, "-STOP");
    for (client, command) in clients.into_iter().zip(commands) {
        let reported = client.wait().exits(2).stderr;
        assert!(reported.contains(&message), "{command:?}: {reported}");
        assert!(reported.contains(&hint), "{command:?}: {reported}");
    }
    for command in [
        &["kernels", "list"][..],
        &["runs", "list"],
        &["host", "status"],
    ] {
        let reported = fixture.run(command).exits(2).stderr;
        assert!(reported.contains(&message), "{command:?}: {reported}");
    }
    signal(host, "-CONT");
    fixture.run(&["runs", "cancel", &run]).exits(0);
    assert_eq!(fixture.eval_stdout("s", "x"), "'kept'\n");
}

#[test]
fn a_signal_ends_a_command_whose_host_is_suspended() {
    let fixture = SessionFixture::new();
    let client = fixture.start_busy("s");
    let host = fixture.host_pid();
    signal(host, "-STOP");
    client.signal("-INT");
    let cancelled = client.wait().exits(130).stderr;
    let message = format!("error: Cancelled; the host (pid {host}) does not answer");
    assert!(cancelled.contains(&message), "{cancelled}");
    // A client that waits for the hello of the host ends as well.
    let path = fixture.host.file("host.sock").display().to_string();
    let connections = || {
        let sockets = std::fs::read_to_string("/proc/net/unix").unwrap();
        sockets.lines().filter(|line| line.ends_with(&path)).count()
    };
    let before = connections();
    let client = fixture.start_client("s", &["1"]);
    wait_until("the client does not connect", || connections() > before);
    client.signal("-INT");
    let cancelled = client.wait().exits(130).stderr;
    assert!(cancelled.contains("error: Cancelled"), "{cancelled}");
    signal(host, "-CONT");
    assert_eq!(fixture.eval_stdout("s", "1"), "1\n");
}

#[test]
fn code_on_a_suspended_kernel_times_out() {
    let fixture = SessionFixture::with(&[("kernel.interrupt_grace", "0.2")]);
    fixture.eval("s", &["1"]).exits(0);
    let kernel = number(&fixture.kernel("s")["pid"]);
    signal(kernel, "-STOP");
    let result = fixture.eval("s", &["1", "--timeout", "0.5"]).exits(124);
    assert!(result.stderr.contains("was killed"), "{}", result.stderr);
    assert_eq!(fixture.eval_stdout("s", "2"), "2\n");
}
