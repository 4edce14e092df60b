//! Clients that read the output of their code late or not at all.

use std::io::Read;
use std::process::Stdio;

use super::{ClientProcess, SessionFixture};
use crate::host::wait_until;

/// Prints without end. At its end, writes the number of lines into the file `count`.
const ENDLESS_OUTPUT: &str = "i = 0\ntry:\n    while True:\n        print('line', i)\n        i += 1\nfinally:\n    open('count', 'w').write(str(i))";

#[test]
fn a_timeout_applies_if_the_output_is_not_read() {
    let fixture = SessionFixture::new();
    fixture.eval("s", &["1"]).exits(0);
    for session in [Some("s"), None] {
        std::fs::remove_file(fixture.path("count")).ok();
        let arguments = ["--full", "--timeout", "2", ENDLESS_OUTPUT];
        let command = match session {
            Some(session) => fixture.eval_command(session, &arguments),
            None => fixture.host.context.eval_command(&arguments),
        };
        let mut client = ClientProcess::new(&fixture, command);
        wait_until("the code does not end", || fixture.path("count").exists());
        if session.is_some() {
            wait_until("the session stays busy", || {
                fixture.kernel("s")["state"] == "idle"
            });
            assert_eq!(fixture.eval_stdout("s", "'free'"), "'free'\n");
        }
        assert!(
            !client.has_exited(),
            "the client ended before its output was read"
        );
        // The client writes all output as soon as the pipe is read.
        let mut output = String::new();
        let child = client.child.as_mut().unwrap();
        child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut output)
            .unwrap();
        let result = client.wait().exits(124);
        let lines: Vec<&str> = output.lines().collect();
        let count: usize = fixture.host.context.content("count").parse().unwrap();
        // The last line may be missing, because the timeout can interrupt `print`.
        assert!(
            lines.len() == count || lines.len() == count + 1,
            "{} of {count} lines; {}",
            lines.len(),
            result.stderr
        );
        for (number, line) in lines[..count].iter().enumerate() {
            assert_eq!(*line, format!("line {number}"));
        }
    }
}

#[test]
fn fifty_megabytes_of_output_are_kept_until_they_are_read() {
    let fixture = SessionFixture::new();
    let code = "line = 'x' * 99\nfor i in range(500_000): print(line)\nopen('done', 'w').close()";
    let command = fixture.eval_command("s", &["--full", "--timeout", "100", code]);
    let mut client = ClientProcess::new(&fixture, command);
    wait_until("the code waits for its reader", || {
        fixture.path("done").exists()
    });
    let mut output = Vec::new();
    let child = client.child.as_mut().unwrap();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_end(&mut output)
        .unwrap();
    client.wait().exits(0);
    assert_eq!(output.len(), 50_000_000);
    assert!(output.iter().all(|byte| matches!(byte, b'x' | b'\n')));
}

#[test]
fn large_code_and_large_displays_are_transferred() {
    let fixture = SessionFixture::new();
    // 5 MB of code, and a display of 60 MB.
    fixture.host.context.file(
        "large.py",
        format!("text = '{}'\nprint(len(text))", "y".repeat(5_000_000)),
    );
    let result = fixture.eval("s", &["-f", "large.py"]).exits(0);
    assert_eq!(result.stdout, "5000000\n");
    let code = "display({'image/png': 'A' * 60_000_000, 'text/plain': 'large'}, raw=True)";
    let report = fixture.eval_json("s", &[code], 0);
    let png = &report["cells"][0]["outputs"][0]["data"]["image/png"];
    assert!(png.to_string().len() >= 60_000_000);
    let shown = fixture.eval("s", &[code]).exits(0).stdout;
    assert_eq!(shown, "large\n[figure image/png, artifact://2]\n");
    assert_eq!(fixture.eval_stdout("s", "1"), "1\n");
}

#[test]
fn a_stopped_client_blocks_no_other_client_and_loses_no_output() {
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
    let client = ClientProcess::new(&fixture, command);
    fixture.wait_until_started();
    client.signal("-STOP");
    wait_until("the code waits for the client", || {
        fixture.path("done").exists()
    });
    assert_eq!(fixture.eval_stdout("s", "'free'"), "'free'\n");
    client.signal("-CONT");
    let result = client.wait().exits(0);
    let shown = std::fs::metadata(fixture.path("shown")).unwrap();
    assert_eq!(shown.len(), 30_000_000, "{}", result.stderr);
}

/// Only a command that follows a run ends with its reader.
#[test]
fn a_closed_pipe_does_not_stop_the_code() {
    let fixture = SessionFixture::new();
    let code = "import os, time\nx = 0\nwhile not os.path.exists('go'):\n    print('x' * 99, flush=True)\n    x += 1\n    time.sleep(0.001)";
    let mut client = fixture.start_client("s", &["--full", "--timeout", "0", code]);
    close_after_first_bytes(&mut client);
    let runs = fixture.run(&["runs", "list", "--json"]).exits(0).stdout;
    let runs: serde_json::Value = serde_json::from_str(&runs).unwrap();
    let run = runs["runs"][0]["run"].as_str().unwrap();
    let command = fixture.host.context.command(&["runs", "tail", "-f", run]);
    let mut follower = ClientProcess::new(&fixture, command);
    close_after_first_bytes(&mut follower);
    follower.wait().exits(0);
    assert!(!client.has_exited());
    std::fs::write(fixture.path("go"), "").unwrap();
    client.wait().exits(0);
    assert_eq!(fixture.eval_stdout("s", "x > 0"), "True\n");
}

/// Reads the first bytes of stdout and closes it.
fn close_after_first_bytes(client: &mut ClientProcess<'_>) {
    let mut bytes = [0; 100];
    let child = client.child.as_mut().unwrap();
    child.stdout.take().unwrap().read_exact(&mut bytes).unwrap();
}
