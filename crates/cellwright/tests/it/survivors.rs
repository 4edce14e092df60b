//! Nothing that a cell starts outlives the command, however cell and command end.

use std::io::{BufRead, BufReader};
use std::process::Child;
use std::time::{Duration, Instant};

use crate::context::Context;

/// Ways to start a process that hides from its parent. Each prints the process's number.
const HIDING: [(&str, &str); 3] = [
    (
        "plain",
        "import subprocess\nprint(subprocess.Popen(['sleep', '120']).pid, flush=True)",
    ),
    (
        "setsid",
        "import subprocess\nprint(subprocess.Popen(['sleep', '120'], start_new_session=True).pid, flush=True)",
    ),
    (
        "double fork",
        "import os, time\nr, w = os.pipe()\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        os.write(w, str(os.getpid()).encode())\n        os.execvp('sleep', ['sleep', '120'])\n    os._exit(0)\nos.wait()\nprint(os.read(r, 20).decode(), flush=True)",
    ),
];

/// What follows in the cell, how the command is ended, and its exit code.
enum End {
    Close,
    Timeout,
    Cancel,
    KernelKilled,
    CommandKilled,
}

#[test]
fn nothing_survives() {
    for (how, start) in HIDING {
        for end in [
            End::Close,
            End::Timeout,
            End::Cancel,
            End::KernelKilled,
            End::CommandKilled,
        ] {
            survive(how, start, &end);
        }
    }
}

fn survive(how: &str, start: &str, end: &End) {
    let context = Context::new();
    let (then, timeout, name) = match end {
        End::Close => ("", "0", "close"),
        End::Timeout => ("import time\ntime.sleep(120)", "1.5", "timeout"),
        End::Cancel => ("import time\ntime.sleep(120)", "0", "cancel"),
        End::KernelKilled => ("import os\nos.kill(os.getpid(), 9)", "0", "kernel killed"),
        End::CommandKilled => ("import time\ntime.sleep(120)", "0", "command killed"),
    };
    let code = format!("{start}\nimport os\nprint(os.getpid(), flush=True)\n{then}");
    let mut command = context.eval_command(&["--timeout", timeout, &code]);
    let mut child = command.stderr(std::process::Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut number = || {
        lines
            .next()
            .unwrap()
            .unwrap()
            .trim()
            .parse::<u32>()
            .unwrap()
    };
    let (hidden, kernel) = (number(), number());
    match end {
        End::Cancel => signal(&child, "-INT"),
        End::CommandKilled => signal(&child, "-KILL"),
        _ => {}
    }
    let code = child.wait().unwrap().code();
    let expected = match end {
        End::Close => Some(0),
        End::Timeout => Some(124),
        End::Cancel => Some(130),
        End::KernelKilled => Some(2),
        End::CommandKilled => None,
    };
    assert_eq!(code, expected, "{how}, {name}");
    let until = Instant::now() + Duration::from_secs(3);
    while (runs(hidden) || runs(kernel)) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(!runs(hidden), "{how}, {name}: the child lives on");
    assert!(!runs(kernel), "{how}, {name}: the kernel lives on");
}

fn signal(child: &Child, signal: &str) {
    let killed = std::process::Command::new("kill")
        .args([signal, &child.id().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
}

/// Whether a process runs (a zombie does not).
pub(crate) fn runs(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    let state = stat
        .rsplit(") ")
        .next()
        .and_then(|rest| rest.chars().next());
    state != Some('Z') && state != Some('X')
}
