//! Whoever does not read what their code says.

use std::io::Read;
use std::process::Stdio;

use super::{SessionFixture, Terminal};
use crate::host::wait_until;

/// Prints for ever; says in a file how far it came.
const ENDLESS: &str = "i = 0\ntry:\n    while True:\n        print('line', i)\n        i += 1\nfinally:\n    open('count', 'w').write(str(i))";

#[test]
fn a_time_limit_holds_without_a_reader() {
    let fixture = SessionFixture::new();
    fixture.eval("s", &["1"]).exits(0);
    for session in [Some("s"), None] {
        std::fs::remove_file(fixture.path("count")).ok();
        let arguments = ["--full", "--timeout", "2", ENDLESS];
        let command = match session {
            Some(session) => fixture.eval_command(session, &arguments),
            None => fixture.host.context.eval_command(&arguments),
        };
        let mut terminal = Terminal::new(&fixture, command);
        wait_until("it prints for ever", || fixture.path("count").exists());
        if session.is_some() {
            wait_until("it stays busy", || fixture.kernel("s")["state"] == "idle");
            assert_eq!(fixture.eval_stdout("s", "'free'"), "'free'\n");
        }
        assert!(
            !terminal.has_exited(),
            "it has more to say than a pipe takes"
        );
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
        let count: usize = fixture.host.context.content("count").parse().unwrap();
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
    let fixture = SessionFixture::new();
    let code = "line = 'x' * 99\nfor i in range(500_000): print(line)\nopen('done', 'w').close()";
    let command = fixture.eval_command("s", &["--full", "--timeout", "100", code]);
    let mut terminal = Terminal::new(&fixture, command);
    wait_until("the code waits for its reader", || {
        fixture.path("done").exists()
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
    let fixture = SessionFixture::new();
    // As much code as a generated script has, and an output as large as pictures get.
    fixture.host.context.file(
        "large.py",
        format!("text = '{}'\nprint(len(text))", "y".repeat(5_000_000)),
    );
    let ran = fixture.eval("s", &["-f", "large.py"]).exits(0);
    assert_eq!(ran.stdout, "5000000\n");
    let code = "display({'image/png': 'A' * 60_000_000, 'text/plain': 'large'}, raw=True)";
    let answer = fixture.eval_json("s", &[code], 0);
    let png = &answer["cells"][0]["outputs"][0]["data"]["image/png"];
    assert!(png.to_string().len() >= 60_000_000);
    assert_eq!(fixture.eval("s", &[code]).exits(0).stdout, "large\n");
    assert_eq!(fixture.eval_stdout("s", "1"), "1\n");
}

#[test]
fn a_stopped_client_blocks_no_other_and_loses_nothing() {
    let fixture = SessionFixture::new();
    let code = "for i in range(300_000): print('x' * 99)\nopen('done', 'w').close()";
    let mut command = fixture.eval_command(
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
    let shown = std::fs::File::create(fixture.path("shown")).unwrap();
    command.stdout(Stdio::from(shown));
    let terminal = Terminal::new(&fixture, command);
    fixture.wait_until_started();
    terminal.signal("-STOP");
    wait_until("the code waits for it", || fixture.path("done").exists());
    assert_eq!(fixture.eval_stdout("s", "'free'"), "'free'\n");
    terminal.signal("-CONT");
    let ran = terminal.end().exits(0);
    let shown = std::fs::metadata(fixture.path("shown")).unwrap();
    assert_eq!(shown.len(), 30_000_000, "{}", ran.stderr);
}

#[test]
fn a_closed_pipe_stops_the_code() {
    let fixture = SessionFixture::new();
    fixture.eval("s", &["x = 1"]).exits(0);
    let mut terminal = fixture.terminal(
        "s",
        &["--full", "--timeout", "0", "while True: print('x' * 99)"],
    );
    let mut some = [0; 1000];
    let child = terminal.child.as_mut().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut some).unwrap();
    drop(stdout);
    wait_until("it goes on", || terminal.has_exited());
    terminal.end().exits(0);
    assert_eq!(fixture.eval_stdout("s", "x"), "1\n");
}
