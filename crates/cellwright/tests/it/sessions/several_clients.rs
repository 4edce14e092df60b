//! Several clients of one session.

use super::{LONG_CELL, SessionFixture, notices, text};
use crate::host::wait_until;

#[test]
fn variables_are_kept_for_the_next_command() {
    let fixture = SessionFixture::new();
    assert_eq!(fixture.eval_stdout("s", "x = 20"), "");
    assert_eq!(fixture.eval_stdout("s", "x + 1"), "21\n");
    let report = fixture.eval_json("s", &["x + 2"], 0);
    assert_eq!(text(&report), "22");
    assert_eq!(report["session"], "s");
    assert_eq!(report["kernel"]["generation"], 1);
    assert_eq!(report["cells"][0]["execution_count"], 3);
    assert_eq!(notices(&report), [""; 0]);
    // Another name is another session, and so is the same name in another directory.
    fixture.eval("t", &["x"]).exits(1);
    std::fs::create_dir(fixture.path("elsewhere")).unwrap();
    let report_of_other_directory = fixture.eval_json("s", &["x", "--cwd", "elsewhere"], 1);
    assert_eq!(notices(&report_of_other_directory), ["session_other_cwd"]);
    let directories: Vec<_> = fixture
        .kernels()
        .iter()
        .map(|kernel| kernel["cwd"].clone())
        .collect();
    assert_eq!(directories.len(), 3);
    // An exception does not change other variables.
    fixture.eval("s", &["1 / 0"]).exits(1);
    assert_eq!(fixture.eval_stdout("s", "x"), "20\n");
}

#[test]
fn calls_of_two_clients_run_one_after_the_other() {
    let fixture = SessionFixture::new();
    let code = "import time\nfor _ in range(5):\n    with open('order', 'a') as file: file.write(NAME)\n    time.sleep(0.1)";
    let run =
        |name: &str| fixture.start_client("s", &[&code.replace("NAME", &format!("'{name}'"))]);
    let (first, second) = (run("a"), run("b"));
    first.wait().exits(0);
    second.wait().exits(0);
    let order = fixture.host.context.content("order");
    assert!(order == "aaaaabbbbb" || order == "bbbbbaaaaa", "{order}");
    assert_eq!(fixture.kernel("s")["executions"], 2);
    assert_eq!(
        fixture.kernel("s")["generation"],
        1,
        "one kernel was started"
    );
}

#[test]
fn a_cancelled_waiting_call_does_not_affect_other_calls() {
    let fixture = SessionFixture::new();
    let running_client = fixture.start_busy("s");
    let cancelled_client = fixture.start_client("s", &["open('wrong', 'w')"]);
    fixture.wait_for_queue("s", 1);
    let waiting_client = fixture.start_client("s", &["'served'", "--timeout", "0"]);
    fixture.wait_for_queue("s", 2);
    cancelled_client.signal("-INT");
    let cancelled = cancelled_client.wait().exits(130);
    assert!(
        cancelled
            .stderr
            .contains("Cancelled before the code started"),
        "{}",
        cancelled.stderr
    );
    fixture.wait_for_queue("s", 1);
    running_client.signal("-INT");
    let interrupted = running_client.wait().exits(130);
    assert!(
        interrupted.stderr.contains("the code was interrupted"),
        "{}",
        interrupted.stderr
    );
    assert_eq!(waiting_client.wait().exits(0).stdout, "'served'\n");
    assert!(!fixture.path("wrong").exists(), "the cancelled call ran");
}

#[test]
fn a_wait_that_times_out_names_the_running_call() {
    let fixture = SessionFixture::new();
    let running_client =
        fixture.start_client("s", &["--owner", "alice", LONG_CELL, "--timeout", "0"]);
    fixture.wait_until_started();
    let timed_out = fixture.eval("s", &["1", "--timeout", "0.3"]).exits(124);
    let stderr = &timed_out.stderr;
    assert!(stderr.contains("Timed out after 0.3 s"), "{stderr}");
    assert!(
        stderr.contains("also limits the wait for a busy session"),
        "{stderr}"
    );
    assert!(
        stderr.contains("with `open('begun', 'w').close()` (owner alice)"),
        "{stderr}"
    );
    let report = fixture.eval_json("s", &["1", "--timeout", "0.3"], 124);
    assert_eq!(notices(&report), ["session_busy"]);
    let state = fixture.kernel("s");
    assert_eq!(state["state"], "busy");
    assert_eq!(state["busy"]["owner"], "alice");
    // A request for variables also names the running call.
    let variables = fixture.run(&["kernels", "variables", "s", "--timeout", "0.3"]);
    let stderr = variables.exits(124).stderr;
    assert!(stderr.contains("(owner alice)"), "{stderr}");
    fixture.run(&["kernels", "interrupt", "s"]).exits(0);
    running_client.wait().exits(130);
    assert_eq!(fixture.eval_stdout("s", "1"), "1\n");
}

#[test]
fn a_second_interrupt_ends_a_command_without_waiting_for_its_code() {
    let fixture = SessionFixture::new();
    let ignores_sigint = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nopen('begun', 'w').close()\ntime.sleep(100)";
    let mut client = fixture.start_client("s", &[ignores_sigint, "--timeout", "0"]);
    fixture.wait_until_started();
    client.signal("-INT");
    // The host must have received the first interrupt before the second one is sent.
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(!client.has_exited());
    client.signal("-INT");
    let ended = client.wait().exits(130);
    assert!(ended.stderr.contains("was killed"), "{}", ended.stderr);
    let next = fixture.eval_json("s", &["1"], 0);
    assert_eq!(notices(&next), ["kernel_restarted"]);
}

#[test]
fn a_command_with_endless_output_can_be_interrupted() {
    let fixture = SessionFixture::new();
    let endless_output = "open('begun', 'w').close()\nwhile True: print('x' * 1000)";
    for arguments in [&[][..], &["--full"], &["--json"]] {
        std::fs::remove_file(fixture.path("begun")).ok();
        let mut all = vec![endless_output, "--timeout", "0"];
        all.extend(arguments);
        let mut command = fixture.eval_command("s", &all);
        command.stdout(std::process::Stdio::null());
        let mut client = super::ClientProcess::new(&fixture, command);
        fixture.wait_until_started();
        client.signal("-INT");
        wait_until("the command does not end", || client.has_exited());
        client.wait().exits(130);
    }
    let mut command = fixture.eval_command(
        "s",
        &[endless_output, "--timeout", "0", "--wait", "1", "--full"],
    );
    command.stdout(std::process::Stdio::null());
    let mut client = super::ClientProcess::new(&fixture, command);
    wait_until("the command does not return", || client.has_exited());
    let result = client.wait().exits(0);
    assert!(
        result.stderr.contains("continues in the background"),
        "{}",
        result.stderr
    );
    fixture.run(&["kernels", "interrupt", "s"]).exits(0);
    assert_eq!(fixture.eval_stdout("s", "1"), "1\n");
}

#[test]
fn late_output_is_reported_to_the_next_caller() {
    let fixture = SessionFixture::new();
    let code = "import threading, time\ndef later():\n    while not open('go').read(): time.sleep(0.01)\n    print('the thread says hello')\n    open('said', 'w').close()\nopen('go', 'w').close()\nthreading.Thread(target=later).start()";
    assert_eq!(fixture.eval_stdout("s", code), "");
    std::fs::write(fixture.path("go"), "now").unwrap();
    wait_until("the thread prints nothing", || {
        fixture.path("said").exists()
    });
    let report = fixture.eval_json("s", &["1"], 0);
    assert_eq!(text(&report), "1");
    assert_eq!(notices(&report), ["late_output"]);
    let message = report["notices"][0]["text"].as_str().unwrap();
    assert!(message.contains("the thread says hello"), "{message}");
    assert_eq!(notices(&fixture.eval_json("s", &["1"], 0)), [""; 0]);
}
