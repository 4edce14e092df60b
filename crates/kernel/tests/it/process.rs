//! Processes under a supervisor: how they end, and that no descendant remains.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use cellwright_kernel::process::{
    ChildCommand, ChildPipes, Exit, StartError, Supervised, Supervisor,
};
use cellwright_stdext::Directory;

use rustix::process::Signal;

use crate::support::{eventually, inherited_environment, is_running, supervisor};

fn shell(script: &str) -> ChildCommand {
    ChildCommand {
        arguments: vec!["/bin/sh".into(), "-c".into(), script.into()],
        env: inherited_environment(),
        cwd: "/".into(),
    }
}

async fn start(script: &str) -> (Supervised, ChildPipes) {
    Supervised::start(&supervisor(), &shell(script))
        .await
        .unwrap()
}

/// The next line that a process writes.
async fn first_line(pipes: &mut ChildPipes) -> String {
    let pipe = pipes.stdout.try_clone().unwrap();
    tokio::task::spawn_blocking(move || {
        let mut line = Vec::new();
        let mut file = std::fs::File::from(pipe);
        let mut byte = [0];
        while file.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
            line.push(byte[0]);
        }
        String::from_utf8(line).unwrap()
    })
    .await
    .unwrap()
}

const EXIT_TIMEOUT: Duration = Duration::from_secs(3);

#[tokio::test]
async fn exit_codes_and_signals_are_reported() {
    let (mut child, _pipes) = start("exit 7").await;
    let code = Exit {
        code: Some(7),
        signal: None,
    };
    assert_eq!(child.wait().await, code);
    assert_eq!(child.wait().await, code, "a second wait");
    let (mut child, _pipes) = start("kill -SEGV $$").await;
    assert_eq!(
        child.wait().await,
        Exit {
            code: None,
            signal: Some(11)
        }
    );
}

#[tokio::test]
async fn a_child_starts_in_the_directory_that_is_held() {
    let base = tempfile::tempdir().unwrap();
    let base = base.path().canonicalize().unwrap();
    for dir in ["held", "other"] {
        std::fs::create_dir(base.join(dir)).unwrap();
    }
    let descriptor = std::fs::File::open(base.join("held")).unwrap().into();
    let cwd = Directory::hold(descriptor, base.join("held")).unwrap();
    std::fs::rename(base.join("held"), base.join("moved")).unwrap();
    std::os::unix::fs::symlink(base.join("other"), base.join("held")).unwrap();
    let command = ChildCommand {
        cwd,
        ..shell("pwd -P")
    };
    let (mut child, mut pipes) = Supervised::start(&supervisor(), &command).await.unwrap();
    let line = first_line(&mut pipes).await;
    assert_eq!(Path::new(&line), base.join("moved"));
    child.wait().await;
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_an_error() {
    let mut command = shell("");
    command.arguments[0] = "/no/such/program".into();
    let error = Supervised::start(&supervisor(), &command)
        .await
        .unwrap_err();
    assert!(
        matches!(error, StartError::Program(error) if error.kind() == std::io::ErrorKind::NotFound)
    );
    let missing = Supervisor::new("/no/such/supervisor", Vec::new());
    let error = Supervised::start(&missing, &shell("")).await.unwrap_err();
    assert!(matches!(error, StartError::Supervisor(_)));
}

/// The process ids of the children of a process.
fn children_of(parent: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|&pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let rest = stat.rsplit(") ").next().unwrap_or_default();
        rest.split(' ').nth(1) == Some(&parent.to_string())
    })
    .collect()
}

#[tokio::test]
async fn a_supervisor_that_was_started_early_gets_the_next_child() {
    let supervisor = supervisor();
    let before = children_of(std::process::id());
    supervisor.start_early();
    let mut started = children_of(std::process::id());
    started.retain(|pid| !before.contains(pid));
    let [watcher] = started[..] else {
        panic!("{started:?}");
    };
    let command = shell("echo $PPID; sleep 60");
    let mut watchers = Vec::new();
    for _ in 0..2 {
        let start = Supervised::start(&supervisor.clone(), &command).await;
        let (child, mut pipes) = start.unwrap();
        let parent: u32 = first_line(&mut pipes).await.parse().unwrap();
        watchers.push(parent_of(parent));
        drop(child);
    }
    assert_eq!(watchers[0], watcher);
    assert_ne!(watchers[1], watcher, "each child has its own");
    let running = || watchers.iter().any(|&pid| is_running(pid));
    assert!(eventually(EXIT_TIMEOUT, || !running()).await);
}

#[tokio::test]
async fn a_supervisor_without_a_child_ends_with_its_owner_and_on_signals() {
    for signal in [None, Some(Signal::TERM), Some(Signal::KILL)] {
        for to_watcher in [true, false] {
            let supervisor = supervisor();
            let before = children_of(std::process::id());
            supervisor.start_early();
            let mut started = children_of(std::process::id());
            started.retain(|pid| !before.contains(pid));
            let watcher = started[0];
            assert!(eventually(EXIT_TIMEOUT, || !children_of(watcher).is_empty()).await);
            let child = children_of(watcher)[0];
            match signal {
                Some(signal) => send(if to_watcher { watcher } else { child }, signal),
                None => supervisor.end_early(),
            }
            let ended =
                eventually(EXIT_TIMEOUT, || !is_running(watcher) && !is_running(child)).await;
            assert!(ended, "{signal:?}, to the watcher: {to_watcher}");
        }
    }
}

#[tokio::test]
async fn a_supervisor_does_not_have_the_environment_and_directory_of_the_child() {
    let mut command = shell("echo $PPID $SECRET $(pwd)");
    command.env.push(("SECRET".into(), "hidden".into()));
    command.cwd = "/usr".into();
    command.arguments[2].push("; sleep 60");
    let (_child, mut pipes) = Supervised::start(&supervisor(), &command).await.unwrap();
    let line = first_line(&mut pipes).await;
    let (pid, rest) = line.split_once(' ').unwrap();
    assert_eq!(rest, "hidden /usr");
    let pid: u32 = pid.parse().unwrap();
    for pid in [pid, parent_of(pid)] {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
        assert_eq!(environment, b"");
        let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
        assert!(!String::from_utf8_lossy(&arguments).contains("sleep"));
        let cwd = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap();
        assert_eq!(cwd, Path::new("/"));
    }
}

#[tokio::test]
async fn a_command_larger_than_the_buffer_of_the_socket_is_started() {
    let mut command = shell("echo ${#LARGE}");
    for name in ["LARGE", "L1", "L2", "L3", "L4", "L5"] {
        command.env.push((name.into(), "x".repeat(100_000).into()));
    }
    let (mut child, mut pipes) = Supervised::start(&supervisor(), &command).await.unwrap();
    assert_eq!(first_line(&mut pipes).await, "100000");
    child.wait().await;
}

#[tokio::test]
async fn interrupt_reaches_the_process_group_and_not_the_supervisor() {
    let script = "trap 'echo caught; exit 3' INT; sleep 60 & echo $!; wait";
    let (mut child, mut pipes) = start(script).await;
    first_line(&mut pipes).await;
    child.interrupt();
    assert_eq!(child.wait().await.code, Some(3));
    assert_eq!(first_line(&mut pipes).await, "caught");
}

/// Scripts that detach a grandchild in different ways.
const DETACHING_SCRIPTS: [(&str, &str); 4] = [
    ("plain", "sleep 60 & echo $!"),
    ("setsid", "setsid sh -c 'echo $$; exec sleep 60' &"),
    ("double fork", "sh -c 'sleep 60 & echo $!; exit' "),
    (
        "setsid twice",
        "setsid sh -c 'setsid sh -c \"echo \\$\\$; trap : TERM; sleep 60; sleep 60\" & exit' &",
    ),
];

#[tokio::test]
async fn descendants_end_when_the_owner_drops_the_child() {
    for (name, script) in DETACHING_SCRIPTS {
        let (child, mut pipes) = start(&format!("{script}\nsleep 60")).await;
        let grandchild: u32 = first_line(&mut pipes).await.parse().unwrap();
        let pid = child.pid();
        assert!(is_running(grandchild) && is_running(pid), "{name}");
        drop(child);
        let ended = eventually(EXIT_TIMEOUT, || !is_running(grandchild) && !is_running(pid)).await;
        assert!(ended, "{name}");
    }
}

#[tokio::test]
async fn descendants_end_when_the_child_exits_or_is_killed() {
    for (name, script) in DETACHING_SCRIPTS {
        for ending in ["exit", "kill -9 $$"] {
            let dir = tempfile::tempdir().unwrap();
            let go = dir.path().join("go");
            let wait = format!("while [ ! -e {} ]; do sleep 0.01; done", go.display());
            let (mut child, mut pipes) = start(&format!("{script}\n{wait}\n{ending}")).await;
            let grandchild: u32 = first_line(&mut pipes).await.parse().unwrap();
            std::fs::write(&go, "").unwrap();
            child.wait().await;
            assert!(
                eventually(EXIT_TIMEOUT, || !is_running(grandchild)).await,
                "{name}, {ending}"
            );
            let exit = child.wait_all_gone(EXIT_TIMEOUT).await;
            assert!(exit.code == Some(0) || exit.signal == Some(9), "{exit:?}");
        }
    }
}

#[tokio::test]
async fn kill_ends_all_descendants() {
    for (name, script) in DETACHING_SCRIPTS {
        let (mut child, mut pipes) = start(&format!("trap '' TERM INT\n{script}\nsleep 60")).await;
        let grandchild: u32 = first_line(&mut pipes).await.parse().unwrap();
        child.kill();
        assert_eq!(child.wait().await.signal, Some(9), "{name}");
        assert!(
            eventually(EXIT_TIMEOUT, || !is_running(grandchild)).await,
            "{name}"
        );
    }
}

/// A child with a detached grandchild that ignores SIGTERM, and the processes above them.
struct Tree {
    child: Supervised,
    _pipes: ChildPipes,
    grandchild: u32,
    supervisor: u32,
    watcher: u32,
}

impl Tree {
    async fn start((name, script): (&str, &str)) -> Self {
        let (child, mut pipes) = start(&format!("{script}\nsleep 60")).await;
        let grandchild = first_line(&mut pipes).await.parse().unwrap();
        let supervisor = parent_of(child.pid());
        let watcher = parent_of(supervisor);
        assert_eq!(parent_of(watcher), std::process::id(), "{name}");
        Self {
            child,
            _pipes: pipes,
            grandchild,
            supervisor,
            watcher,
        }
    }

    fn pids(&self) -> [u32; 4] {
        [
            self.child.pid(),
            self.grandchild,
            self.supervisor,
            self.watcher,
        ]
    }
}

/// Waits until none of these processes runs.
async fn assert_ended(pids: [u32; 4], what: &str) {
    let running = || pids.iter().any(|&pid| is_running(pid));
    if !eventually(EXIT_TIMEOUT, || !running()).await {
        let running: Vec<_> = pids.iter().map(|&pid| is_running(pid)).collect();
        for &pid in pids.iter().filter(|&&pid| is_running(pid)) {
            send(pid, Signal::KILL);
        }
        panic!("{what}: child, grandchild, supervisor, watcher run: {running:?}");
    }
}

fn send(pid: u32, signal: Signal) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// The states that `/proc` reports for stopped processes.
fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.contains(") T ")
}

/// The signals that end a process by default, without real-time signals.
const END_SIGNALS: [Signal; 20] = [
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::ILL,
    Signal::TRAP,
    Signal::ABORT,
    Signal::BUS,
    Signal::FPE,
    Signal::KILL,
    Signal::USR1,
    Signal::SEGV,
    Signal::USR2,
    Signal::PIPE,
    Signal::ALARM,
    Signal::TERM,
    Signal::XCPU,
    Signal::XFSZ,
    Signal::VTALARM,
    Signal::PROF,
    Signal::SYS,
];

#[tokio::test]
async fn descendants_end_when_a_signal_ends_the_supervisor_or_its_watcher() {
    for (number, signal) in END_SIGNALS.into_iter().enumerate() {
        for to_watcher in [false, true] {
            let script = DETACHING_SCRIPTS[number % DETACHING_SCRIPTS.len()];
            let mut tree = Tree::start(script).await;
            let what = format!("{signal:?}, {}, to the watcher: {to_watcher}", script.0);
            let target = if to_watcher {
                tree.watcher
            } else {
                tree.supervisor
            };
            send(target, signal);
            let exit = tree.child.wait().await;
            // A supervisor that is killed, or that is not yet prepared for signals, reports no exit.
            let reported = exit.signal == Some(15);
            assert!(reported || exit == Exit::UNKNOWN, "{what}: {exit:?}");
            if signal == Signal::KILL && !to_watcher {
                assert!(!reported, "{what}");
            }
            assert_ended(tree.pids(), &what).await;
        }
    }
}

#[tokio::test]
async fn descendants_end_when_the_owner_ends_while_a_supervisor_is_killed_or_stopped() {
    for script in DETACHING_SCRIPTS {
        for signal in [Signal::KILL, Signal::STOP] {
            for to_watcher in [false, true] {
                let tree = Tree::start(script).await;
                let what = format!("{}, {signal:?}, to the watcher: {to_watcher}", script.0);
                let pids = tree.pids();
                let target = if to_watcher {
                    tree.watcher
                } else {
                    tree.supervisor
                };
                send(target, signal);
                drop(tree);
                assert_ended(pids, &what).await;
            }
        }
    }
}

#[tokio::test]
async fn a_stopped_supervisor_continues() {
    let mut tree = Tree::start(DETACHING_SCRIPTS[1]).await;
    send(tree.supervisor, Signal::STOP);
    // Handled by the supervisor.
    tree.child.interrupt();
    assert_eq!(tree.child.wait().await.signal, Some(2));
    assert_ended(tree.pids(), "interrupt").await;
}

#[tokio::test]
async fn a_stopped_watcher_does_not_block_the_owner() {
    let mut tree = Tree::start(DETACHING_SCRIPTS[1]).await;
    send(tree.watcher, Signal::STOP);
    assert!(eventually(EXIT_TIMEOUT, || is_stopped(tree.watcher)).await);
    send(tree.supervisor, Signal::STOP);
    assert!(eventually(EXIT_TIMEOUT, || is_stopped(tree.supervisor)).await);
    assert_eq!(tree.child.kill_and_wait().await.signal, Some(9));
    assert_ended(tree.pids(), "both are stopped").await;
}

#[tokio::test]
async fn child_ends_when_supervisor_and_watcher_are_killed() {
    let mut tree = Tree::start(("none", "echo $$")).await;
    send(tree.watcher, Signal::STOP);
    assert!(eventually(EXIT_TIMEOUT, || is_stopped(tree.watcher)).await);
    send(tree.supervisor, Signal::KILL);
    send(tree.watcher, Signal::KILL);
    assert_eq!(tree.child.wait().await, Exit::UNKNOWN);
    assert_ended(tree.pids(), "both are killed").await;
}

#[tokio::test]
async fn signals_of_a_terminal_do_not_end_a_supervisor() {
    let mut tree = Tree::start(DETACHING_SCRIPTS[0]).await;
    for signal in [
        Signal::TSTP,
        Signal::TTIN,
        Signal::TTOU,
        Signal::WINCH,
        Signal::CONT,
    ] {
        send(tree.supervisor, signal);
        send(tree.watcher, signal);
    }
    tree.child.interrupt();
    assert_eq!(tree.child.wait().await.signal, Some(2));
    assert_ended(tree.pids(), "interrupt").await;
}

#[tokio::test]
async fn the_child_starts_with_no_signal_blocked() {
    // Not a shell: some reset their signals.
    let mut command = shell("");
    command.arguments = ["grep", "SigBlk", "/proc/self/status"]
        .map(Into::into)
        .into();
    let (mut child, mut pipes) = Supervised::start(&supervisor(), &command).await.unwrap();
    let line = first_line(&mut pipes).await;
    assert_eq!(line.split_whitespace().last(), Some("0000000000000000"));
    child.wait().await;
}

fn parent_of(pid: u32) -> u32 {
    let stat =
        std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).unwrap();
    let rest = stat.rsplit(") ").next().unwrap();
    rest.split(' ').nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn owner_descriptors_do_not_leak_into_the_child() {
    // All descendants inherit the descriptors that this process was started with.
    let inherited = std::fs::read_dir("/proc/self/fd").unwrap().count();
    let (_first, _first_pipes) = start("sleep 60").await;
    let (_second, _second_pipes) = start("sleep 60").await;
    let now = std::fs::read_dir("/proc/self/fd").unwrap().count();
    assert!(
        now >= inherited + 8,
        "two children need that many descriptors"
    );
    let plain = std::process::Command::new("sh")
        .args(["-c", "ls /proc/self/fd | wc -l"])
        .output()
        .unwrap();
    let plain: usize = String::from_utf8(plain.stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let (mut child, mut pipes) = start("ls /proc/self/fd | wc -l").await;
    let open: usize = first_line(&mut pipes).await.trim().parse().unwrap();
    child.wait().await;
    assert_eq!(open, plain + 1, "only the channel is added");
}
