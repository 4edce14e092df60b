//! Several terminals on one session.

use super::{Desk, LONG, notices, text};
use crate::host::eventually;

#[test]
fn variables_are_there_for_the_next_command() {
    let desk = Desk::new();
    assert_eq!(desk.prints("s", "x = 20"), "");
    assert_eq!(desk.prints("s", "x + 1"), "21\n");
    let answer = desk.answer("s", &["x + 2"], 0);
    assert_eq!(text(&answer), "22");
    assert_eq!(answer["session"], "s");
    assert_eq!(answer["kernel"]["generation"], 1);
    assert_eq!(answer["cells"][0]["execution_count"], 3);
    assert_eq!(notices(&answer), [""; 0]);
    // Another name is another session, and so is the same name in another folder.
    desk.eval("t", &["x"]).exits(1);
    std::fs::create_dir(desk.path("elsewhere")).unwrap();
    let elsewhere = desk.answer("s", &["x", "--cwd", "elsewhere"], 1);
    assert_eq!(notices(&elsewhere), ["session_other_cwd"]);
    let places: Vec<_> = desk.kernels().iter().map(|it| it["cwd"].clone()).collect();
    assert_eq!(places.len(), 3);
    // Code that raises takes nothing away.
    desk.eval("s", &["1 / 0"]).exits(1);
    assert_eq!(desk.prints("s", "x"), "20\n");
}

#[test]
fn two_terminals_are_served_one_after_the_other() {
    let desk = Desk::new();
    let code = "import time\nfor _ in range(5):\n    with open('order', 'a') as file: file.write(NAME)\n    time.sleep(0.1)";
    let run = |name: &str| desk.terminal("s", &[&code.replace("NAME", &format!("'{name}'"))]);
    let (first, second) = (run("a"), run("b"));
    first.end().exits(0);
    second.end().exits(0);
    let order = desk.place.context.content("order");
    assert!(order == "aaaaabbbbb" || order == "bbbbbaaaaa", "{order}");
    assert_eq!(desk.kernel("s")["executions"], 2);
    assert_eq!(desk.kernel("s")["generation"], 1, "one kernel was started");
}

#[test]
fn a_waiter_that_is_cancelled_leaves_and_the_others_go_on() {
    let desk = Desk::new();
    let holder = desk.busy("s");
    let leaver = desk.terminal("s", &["open('wrong', 'w')"]);
    desk.waiting("s", 1);
    let stayer = desk.terminal("s", &["'served'", "--timeout", "0"]);
    desk.waiting("s", 2);
    leaver.signal("-INT");
    let left = leaver.end().exits(130);
    assert!(
        left.stderr.contains("Cancelled before the code started"),
        "{}",
        left.stderr
    );
    desk.waiting("s", 1);
    holder.signal("-INT");
    let held = holder.end().exits(130);
    assert!(
        held.stderr.contains("the code was interrupted"),
        "{}",
        held.stderr
    );
    assert_eq!(stayer.end().exits(0).stdout, "'served'\n");
    assert!(!desk.path("wrong").exists(), "who left did not run");
}

#[test]
fn whoever_waits_in_vain_is_told_for_what_and_for_whom() {
    let desk = Desk::new();
    let holder = desk.terminal("s", &["--owner", "alice", LONG, "--timeout", "0"]);
    desk.begun();
    let waiter = desk.eval("s", &["1", "--timeout", "0.3"]).exits(124);
    let words = &waiter.stderr;
    assert!(words.contains("Timed out after 0.3 s"), "{words}");
    assert!(
        words.contains("with `open('begun', 'w').close()` (owner alice)"),
        "{words}"
    );
    let answer = desk.answer("s", &["1", "--timeout", "0.3"], 124);
    assert_eq!(notices(&answer), ["session_busy"]);
    let state = desk.kernel("s");
    assert_eq!(state["state"], "busy");
    assert_eq!(state["busy"]["owner"], "alice");
    // Whoever asks something is told as well.
    let asked = desk.run(&["kernels", "variables", "s", "--timeout", "0.3"]);
    let words = asked.exits(124).stderr;
    assert!(words.contains("(owner alice)"), "{words}");
    desk.run(&["kernels", "interrupt", "s"]).exits(0);
    holder.end().exits(130);
    assert_eq!(desk.prints("s", "1"), "1\n");
}

#[test]
fn a_command_that_is_interrupted_twice_does_not_wait_for_its_code() {
    let desk = Desk::new();
    let stubborn = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nopen('begun', 'w').close()\ntime.sleep(100)";
    let mut terminal = desk.terminal("s", &[stubborn, "--timeout", "0"]);
    desk.begun();
    terminal.signal("-INT");
    // It is the host that must have heard of the first before the second counts as one.
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(!terminal.is_over());
    terminal.signal("-INT");
    let ended = terminal.end().exits(130);
    assert!(ended.stderr.contains("was killed"), "{}", ended.stderr);
    let next = desk.answer("s", &["1"], 0);
    assert_eq!(notices(&next), ["kernel_restarted"]);
}

#[test]
fn a_flood_of_output_does_not_keep_a_command_from_being_interrupted() {
    let desk = Desk::new();
    let flood = "open('begun', 'w').close()\nwhile True: print('x' * 1000)";
    for arguments in [&[][..], &["--full"], &["--json"]] {
        std::fs::remove_file(desk.path("begun")).ok();
        let mut all = vec![flood, "--timeout", "0"];
        all.extend(arguments);
        let mut command = desk.eval_command("s", &all);
        command.stdout(std::process::Stdio::null());
        let mut terminal = super::Terminal::new(&desk, command);
        desk.begun();
        terminal.signal("-INT");
        eventually("it goes on for ever", || terminal.is_over());
        terminal.end().exits(130);
    }
    let mut command = desk.eval_command("s", &[flood, "--timeout", "0", "--wait", "1", "--full"]);
    command.stdout(std::process::Stdio::null());
    let mut terminal = super::Terminal::new(&desk, command);
    eventually("it waits for ever", || terminal.is_over());
    let ran = terminal.end().exits(0);
    assert!(ran.stderr.contains("goes on"), "{}", ran.stderr);
    desk.run(&["kernels", "interrupt", "s"]).exits(0);
    assert_eq!(desk.prints("s", "1"), "1\n");
}

#[test]
fn late_output_is_told_to_the_next_caller() {
    let desk = Desk::new();
    let code = "import threading, time\ndef later():\n    while not open('go').read(): time.sleep(0.01)\n    print('the thread says hello')\n    open('said', 'w').close()\nopen('go', 'w').close()\nthreading.Thread(target=later).start()";
    assert_eq!(desk.prints("s", code), "");
    std::fs::write(desk.path("go"), "now").unwrap();
    eventually("the thread is silent", || desk.path("said").exists());
    let answer = desk.answer("s", &["1"], 0);
    assert_eq!(text(&answer), "1");
    assert_eq!(notices(&answer), ["late_output"]);
    let words = answer["notices"][0]["text"].as_str().unwrap();
    assert!(words.contains("the thread says hello"), "{words}");
    assert_eq!(notices(&desk.answer("s", &["1"], 0)), [""; 0]);
}
