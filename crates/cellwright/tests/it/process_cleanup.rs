//! Processes that a cell starts end with the command, for every end of the cell and of the command.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};

use crate::context::Context;

/// Code that starts a child process, attached or detached, and prints its process id.
const CHILD_STARTERS: [(&str, &str); 3] = [
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

/// How the cell or the command ends.
enum End {
    Close,
    Timeout,
    Cancel,
    KernelKilled,
    CommandKilled,
}

/// All ends.
const ENDS: [End; 5] = [
    End::Close,
    End::Timeout,
    End::Cancel,
    End::KernelKilled,
    End::CommandKilled,
];

#[test]
fn child_processes_end_with_the_command() {
    for (kind, start) in CHILD_STARTERS {
        for end in &ENDS {
            check_cleanup(&Context::new(), "runner", kind, start, end);
        }
    }
}

/// A process between the command and its kernel.
#[derive(Clone, Copy, Debug)]
enum Level {
    Supervisor,
    Watcher,
}

/// Sends a signal to the supervisor of a kernel or to its watcher, and with `kill_command` SIGKILL to the command at the
/// same time. The process that the cell has detached must end.
#[test]
fn child_processes_end_when_a_supervisor_is_killed_or_stopped() {
    let cases = [
        (Level::Supervisor, "-KILL", false),
        (Level::Supervisor, "-KILL", true),
        (Level::Supervisor, "-TERM", false),
        (Level::Supervisor, "-INT", false),
        (Level::Supervisor, "-USR1", false),
        (Level::Supervisor, "-STOP", true),
        (Level::Watcher, "-KILL", false),
        (Level::Watcher, "-HUP", false),
        (Level::Watcher, "-STOP", true),
    ];
    let context = Context::new();
    for (level, name, kill_command) in cases {
        let start = CHILD_STARTERS[2].1;
        let code =
            format!("{start}\nimport os, time\nprint(os.getpid(), flush=True)\ntime.sleep(120)");
        let mut command = context.eval_command(&["--timeout", "0", &code]);
        let mut child = command.stderr(std::process::Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let pids: Vec<u32> = lines
            .take(2)
            .map(|line| line.unwrap().trim().parse().unwrap())
            .collect();
        let supervisor = parent_of(pids[1]);
        let watcher = parent_of(supervisor);
        let target = match level {
            Level::Supervisor => supervisor,
            Level::Watcher => watcher,
        };
        signal_process(target, name);
        if kill_command {
            signal_process(child.id(), "-KILL");
        }
        let code = child.wait().unwrap().code();
        assert_eq!(
            code,
            (!kill_command).then_some(2),
            "{name} to {level:?}: the exit code"
        );
        let all = [pids[0], pids[1], supervisor, watcher];
        let until = Instant::now() + Duration::from_secs(3);
        while all.iter().any(|&pid| is_running(pid)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        let running = all.map(is_running);
        for pid in all.into_iter().filter(|&pid| is_running(pid)) {
            signal_process(pid, "-KILL");
        }
        assert_eq!(
            running, [false; 4],
            "{name} to {level:?}: detached process, kernel, supervisor, watcher"
        );
    }
}

fn parent_of(pid: u32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let rest = stat.rsplit(") ").next().unwrap();
    rest.split(' ').nth(1).unwrap().parse().unwrap()
}

/// The next command removes the files of a killed command.
#[test]
fn processes_and_files_of_jupyter_kernels_are_removed() {
    let context = Context::new();
    let (kind, start) = CHILD_STARTERS[2];
    for end in &ENDS {
        check_cleanup(&context, "jupyter", kind, start, end);
        let leftovers = leftover_paths(&context);
        match end {
            End::CommandKilled => assert_eq!(leftovers.len(), 2, "{leftovers:?}"),
            _ => assert_eq!(leftovers, Vec::<PathBuf>::new()),
        }
    }
    context.eval(&["--backend", "jupyter", "1"]).exits(0);
    assert_eq!(leftover_paths(&context), Vec::<PathBuf>::new());
}

/// Connection files and directories with sockets that still exist.
fn leftover_paths(context: &Context) -> Vec<PathBuf> {
    let home = context.home();
    let runtime = home.join(".local/share/jupyter/runtime");
    assert!(runtime.exists());
    let dirs = [runtime, home.join("host/kernels")];
    let entries = dirs.iter().filter_map(|dir| dir.read_dir().ok());
    let paths = entries.flatten().map(|entry| entry.unwrap().path());
    paths.collect()
}

/// Runs a cell that starts a process, ends it in this way, and checks that the process and the kernel end.
fn check_cleanup(context: &Context, backend: &str, kind: &str, start: &str, end: &End) {
    let (last_lines, timeout, name) = match end {
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
    let code = format!("{start}\nimport os\nprint(os.getpid(), flush=True)\n{last_lines}");
    let arguments = ["--backend", backend, "--timeout", timeout, &code];
    let mut command = context.eval_command(&arguments);
    let mut child = command.stderr(std::process::Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut read_pid = || {
        lines
            .next()
            .unwrap()
            .unwrap()
            .trim()
            .parse::<u32>()
            .unwrap()
    };
    let (descendant, kernel) = (read_pid(), read_pid());
    let kind = format!("{backend}, {kind}");
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
    assert_eq!(code, expected, "{kind}, {name}");
    let until = Instant::now() + Duration::from_secs(3);
    while (is_running(descendant) || is_running(kernel)) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(
        !is_running(descendant),
        "{kind}, {name}: the child process still runs"
    );
    assert!(!is_running(kernel), "{kind}, {name}: the kernel still runs");
}

fn signal(child: &Child, signal: &str) {
    signal_process(child.id(), signal);
}

fn signal_process(pid: u32, signal: &str) {
    let killed = std::process::Command::new("kill")
        .args([signal, &pid.to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
}

/// Whether a process is running. A zombie is not.
pub(crate) fn is_running(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    let state = stat
        .rsplit(") ")
        .next()
        .and_then(|rest| rest.chars().next());
    state != Some('Z') && state != Some('X')
}
