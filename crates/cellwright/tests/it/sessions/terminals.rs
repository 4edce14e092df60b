//! Several terminals on one session.

use super::{LONG, SessionFixture, notices, text};
use crate::host::wait_until;

#[test]
fn variables_are_there_for_the_next_command() {
    let fixture = SessionFixture::new();
    assert_eq!(fixture.eval_stdout("s", "x = 20"), "");
    assert_eq!(fixture.eval_stdout("s", "x + 1"), "21\n");
    let answer = fixture.eval_json("s", &["x + 2"], 0);
    assert_eq!(text(&answer), "22");
    assert_eq!(answer["session"], "s");
    assert_eq!(answer["kernel"]["generation"], 1);
    assert_eq!(answer["cells"][0]["execution_count"], 3);
    assert_eq!(notices(&answer), [""; 0]);
    // Another name is another session, and so is the same name in another folder.
    fixture.eval("t", &["x"]).exits(1);
    std::fs::create_dir(fixture.path("elsewhere")).unwrap();
    let elsewhere = fixture.eval_json("s", &["x", "--cwd", "elsewhere"], 1);
    assert_eq!(notices(&elsewhere), ["session_other_cwd"]);
    let places: Vec<_> = fixture
        .kernels()
        .iter()
        .map(|it| it["cwd"].clone())
        .collect();
    assert_eq!(places.len(), 3);
    // Code that raises takes nothing away.
    fixture.eval("s", &["1 / 0"]).exits(1);
    assert_eq!(fixture.eval_stdout("s", "x"), "20\n");
}

#[test]
fn two_terminals_are_served_one_after_the_other() {
    let fixture = SessionFixture::new();
    let code = "import time\nfor _ in range(5):\n    with open('order', 'a') as file: file.write(NAME)\n    time.sleep(0.1)";
    let run = |name: &str| fixture.terminal("s", &[&code.replace("NAME", &format!("'{name}'"))]);
    let (first, second) = (run("a"), run("b"));
    first.end().exits(0);
    second.end().exits(0);
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
fn a_waiter_that_is_cancelled_leaves_and_the_others_go_on() {
    let fixture = SessionFixture::new();
    let holder = fixture.start_busy("s");
    let leaver = fixture.terminal("s", &["open('wrong', 'w')"]);
    fixture.wait_for_queue("s", 1);
    let stayer = fixture.terminal("s", &["'served'", "--timeout", "0"]);
    fixture.wait_for_queue("s", 2);
    leaver.signal("-INT");
    let left = leaver.end().exits(130);
    assert!(
        left.stderr.contains("Cancelled before the code started"),
        "{}",
        left.stderr
    );
    fixture.wait_for_queue("s", 1);
    holder.signal("-INT");
    let held = holder.end().exits(130);
    assert!(
        held.stderr.contains("the code was interrupted"),
        "{}",
        held.stderr
    );
    assert_eq!(stayer.end().exits(0).stdout, "'served'\n");
    assert!(!fixture.path("wrong").exists(), "who left did not run");
}

#[test]
fn a_wait_that_times_out_names_the_running_call() {
    let fixture = SessionFixture::new();
    let holder = fixture.terminal("s", &["--owner", "alice", LONG, "--timeout", "0"]);
    fixture.wait_until_started();
    let waiter = fixture.eval("s", &["1", "--timeout", "0.3"]).exits(124);
    let words = &waiter.stderr;
    assert!(words.contains("Timed out after 0.3 s"), "{words}");
    assert!(
        words.contains("with `open('begun', 'w').close()` (owner alice)"),
        "{words}"
    );
    let answer = fixture.eval_json("s", &["1", "--timeout", "0.3"], 124);
    assert_eq!(notices(&answer), ["session_busy"]);
    let state = fixture.kernel("s");
    assert_eq!(state["state"], "busy");
    assert_eq!(state["busy"]["owner"], "alice");
    // Whoever asks something is told as well.
    let asked = fixture.run(&["kernels", "variables", "s", "--timeout", "0.3"]);
    let words = asked.exits(124).stderr;
    assert!(words.contains("(owner alice)"), "{words}");
    fixture.run(&["kernels", "interrupt", "s"]).exits(0);
    holder.end().exits(130);
    assert_eq!(fixture.eval_stdout("s", "1"), "1\n");
}

#[test]
fn a_command_that_is_interrupted_twice_does_not_wait_for_its_code() {
    let fixture = SessionFixture::new();
    let stubborn = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nopen('begun', 'w').close()\ntime.sleep(100)";
    let mut terminal = fixture.terminal("s", &[stubborn, "--timeout", "0"]);
    fixture.wait_until_started();
    terminal.signal("-INT");
    // It is the host that must have heard of the first before the second counts as one.
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(!terminal.has_exited());
    terminal.signal("-INT");
    let ended = terminal.end().exits(130);
    assert!(ended.stderr.contains("was killed"), "{}", ended.stderr);
    let next = fixture.eval_json("s", &["1"], 0);
    assert_eq!(notices(&next), ["kernel_restarted"]);
}

#[test]
fn a_flood_of_output_does_not_keep_a_command_from_being_interrupted() {
    let fixture = SessionFixture::new();
    let flood = "open('begun', 'w').close()\nwhile True: print('x' * 1000)";
    for arguments in [&[][..], &["--full"], &["--json"]] {
        std::fs::remove_file(fixture.path("begun")).ok();
        let mut all = vec![flood, "--timeout", "0"];
        all.extend(arguments);
        let mut command = fixture.eval_command("s", &all);
        command.stdout(std::process::Stdio::null());
        let mut terminal = super::Terminal::new(&fixture, command);
        fixture.wait_until_started();
        terminal.signal("-INT");
        wait_until("it goes on for ever", || terminal.has_exited());
        terminal.end().exits(130);
    }
    let mut command =
        fixture.eval_command("s", &[flood, "--timeout", "0", "--wait", "1", "--full"]);
    command.stdout(std::process::Stdio::null());
    let mut terminal = super::Terminal::new(&fixture, command);
    wait_until("it waits for ever", || terminal.has_exited());
    let ran = terminal.end().exits(0);
    assert!(
        ran.stderr.contains("continues in the background"),
        "{}",
        ran.stderr
    );
    fixture.run(&["kernels", "interrupt", "s"]).exits(0);
    assert_eq!(fixture.eval_stdout("s", "1"), "1\n");
}

#[test]
fn late_output_is_told_to_the_next_caller() {
    let fixture = SessionFixture::new();
    let code = "import threading, time\ndef later():\n    while not open('go').read(): time.sleep(0.01)\n    print('the thread says hello')\n    open('said', 'w').close()\nopen('go', 'w').close()\nthreading.Thread(target=later).start()";
    assert_eq!(fixture.eval_stdout("s", code), "");
    std::fs::write(fixture.path("go"), "now").unwrap();
    wait_until("the thread is silent", || fixture.path("said").exists());
    let answer = fixture.eval_json("s", &["1"], 0);
    assert_eq!(text(&answer), "1");
    assert_eq!(notices(&answer), ["late_output"]);
    let words = answer["notices"][0]["text"].as_str().unwrap();
    assert!(words.contains("the thread says hello"), "{words}");
    assert_eq!(notices(&fixture.eval_json("s", &["1"], 0)), [""; 0]);
}
