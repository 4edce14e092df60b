//! Whoever does not read what their code says.

use std::io::Read;
use std::process::Stdio;

use super::{Desk, Terminal};
use crate::host::eventually;

/// Prints for ever; says in a file how far it came.
const ENDLESS: &str = "i = 0\ntry:\n    while True:\n        print('line', i)\n        i += 1\nfinally:\n    open('count', 'w').write(str(i))";

#[test]
fn a_time_limit_holds_although_nobody_reads() {
    let desk = Desk::new();
    desk.eval("s", &["1"]).exits(0);
    for session in [Some("s"), None] {
        std::fs::remove_file(desk.path("count")).ok();
        let arguments = ["--full", "--timeout", "2", ENDLESS];
        let command = match session {
            Some(session) => desk.eval_command(session, &arguments),
            None => desk.place.context.eval_command(&arguments),
        };
        let mut terminal = Terminal::new(&desk, command);
        eventually("it prints for ever", || desk.path("count").exists());
        if session.is_some() {
            eventually("it stays busy", || desk.kernel("s")["state"] == "idle");
            assert_eq!(desk.prints("s", "'free'"), "'free'\n");
        }
        assert!(!terminal.is_over(), "it has more to say than a pipe takes");
        // Now somebody reads: everything is there.
        let mut said = String::new();
        let child = terminal.child.as_mut().unwrap();
        child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        let ran = terminal.end().exits(124);
        let lines: Vec<&str> = said.lines().collect();
        let count: usize = desk.place.context.content("count").parse().unwrap();
        // The line that was being printed when time was up may or may not be there.
        assert!(
            lines.len() == count || lines.len() == count + 1,
            "{} of {count} lines; {}",
            lines.len(),
            ran.stderr
        );
        for (number, line) in lines[..count].iter().enumerate() {
            assert_eq!(*line, format!("line {number}"));
        }
    }
}

#[test]
fn fifty_megabytes_wait_for_their_reader() {
    let desk = Desk::new();
    let code = "line = 'x' * 99\nfor i in range(500_000): print(line)\nopen('done', 'w').close()";
    let command = desk.eval_command("s", &["--full", "--timeout", "100", code]);
    let mut terminal = Terminal::new(&desk, command);
    eventually("the code waits for its reader", || {
        desk.path("done").exists()
    });
    let mut said = Vec::new();
    let child = terminal.child.as_mut().unwrap();
    child.stdout.take().unwrap().read_to_end(&mut said).unwrap();
    terminal.end().exits(0);
    assert_eq!(said.len(), 50_000_000);
    assert!(said.iter().all(|byte| matches!(byte, b'x' | b'\n')));
}

#[test]
fn large_things_go_through_both_ways() {
    let desk = Desk::new();
    // As much code as a generated script has, and an output as large as pictures get.
    desk.place.context.file(
        "large.py",
        format!("text = '{}'\nprint(len(text))", "y".repeat(5_000_000)),
    );
    let ran = desk.eval("s", &["-f", "large.py"]).exits(0);
    assert_eq!(ran.stdout, "5000000\n");
    let code = "display({'image/png': 'A' * 60_000_000, 'text/plain': 'large'}, raw=True)";
    let answer = desk.answer("s", &[code], 0);
    let png = &answer["cells"][0]["outputs"][0]["data"]["image/png"];
    assert!(png.to_string().len() >= 60_000_000);
    assert_eq!(desk.eval("s", &[code]).exits(0).stdout, "large\n");
    assert_eq!(desk.prints("s", "1"), "1\n");
}

#[test]
fn a_client_that_stands_still_holds_up_nobody_and_misses_nothing() {
    let desk = Desk::new();
    let code = "for i in range(300_000): print('x' * 99)\nopen('done', 'w').close()";
    let mut command = desk.eval_command(
        "s",
        &[
            "--full",
            "--timeout",
            "100",
            "open('begun', 'w').close()",
            "--cell",
            code,
        ],
    );
    let shown = std::fs::File::create(desk.path("shown")).unwrap();
    command.stdout(Stdio::from(shown));
    let terminal = Terminal::new(&desk, command);
    desk.begun();
    terminal.signal("-STOP");
    eventually("the code waits for it", || desk.path("done").exists());
    assert_eq!(desk.prints("s", "'free'"), "'free'\n");
    terminal.signal("-CONT");
    let ran = terminal.end().exits(0);
    let shown = std::fs::metadata(desk.path("shown")).unwrap();
    assert_eq!(shown.len(), 30_000_000, "{}", ran.stderr);
}

#[test]
fn whoever_has_read_enough_stops_the_code() {
    let desk = Desk::new();
    desk.eval("s", &["x = 1"]).exits(0);
    let mut terminal = desk.terminal(
        "s",
        &["--full", "--timeout", "0", "while True: print('x' * 99)"],
    );
    let mut some = [0; 1000];
    let child = terminal.child.as_mut().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut some).unwrap();
    drop(stdout);
    eventually("it goes on", || terminal.is_over());
    terminal.end().exits(0);
    assert_eq!(desk.prints("s", "x"), "1\n");
}
