//! Nothing that a cell starts outlives the command, however cell and command end.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
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

/// All of them.
const ENDS: [End; 5] = [
    End::Close,
    End::Timeout,
    End::Cancel,
    End::KernelKilled,
    End::CommandKilled,
];

#[test]
fn nothing_survives() {
    for (how, start) in HIDING {
        for end in &ENDS {
            survive(&Context::new(), "runner", how, start, end);
        }
    }
}

/// What is left of a killed command in the file system goes with the next one.
#[test]
fn nothing_of_jupyters_kernels_survives() {
    let context = Context::new();
    let (how, start) = HIDING[2];
    for end in &ENDS {
        survive(&context, "jupyter", how, start, end);
        let left = left_over(&context);
        match end {
            End::CommandKilled => assert_eq!(left.len(), 2, "{left:?}"),
            _ => assert_eq!(left, Vec::<PathBuf>::new()),
        }
    }
    context.eval(&["--backend", "jupyter", "1"]).exits(0);
    assert_eq!(left_over(&context), Vec::<PathBuf>::new());
}

/// Connection files, and folders with sockets.
fn left_over(context: &Context) -> Vec<PathBuf> {
    let home = context.home();
    let runtime = home.join(".local/share/jupyter/runtime");
    assert!(runtime.exists());
    let folders = [runtime, home.join("host/kernels")];
    let entries = folders.iter().filter_map(|folder| folder.read_dir().ok());
    let paths = entries.flatten().map(|entry| entry.unwrap().path());
    paths.collect()
}

fn survive(context: &Context, backend: &str, how: &str, start: &str, end: &End) {
    let (then, timeout, name) = match end {
        End::Close => ("", "0", "close"),
        End::Timeout => ("import time\ntime.sleep(120)", "1.5", "timeout"),
        End::Cancel => ("import time\ntime.sleep(120)", "0", "cancel"),
        End::KernelKilled => (
            "import os, time\ntime.sleep(0.3)\nos.kill(os.getpid(), 9)",
            "0",
            "kernel killed",
        ),
        End::CommandKilled => ("import time\ntime.sleep(120)", "0", "command killed"),
    };
    let code = format!("{start}\nimport os\nprint(os.getpid(), flush=True)\n{then}");
    let arguments = ["--backend", backend, "--timeout", timeout, &code];
    let mut command = context.eval_command(&arguments);
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
    let how = format!("{backend}, {how}");
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
