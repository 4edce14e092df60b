//! Processes under a supervisor: how they end, and that nothing is left.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use cellwright_kernel::process::{Command, Ends, Exit, StartError, Supervised, Supervisor};

use crate::support::{environment, eventually, runs, supervisor};

fn shell(script: &str) -> Command {
    Command {
        arguments: vec!["/bin/sh".into(), "-c".into(), script.into()],
        env: environment(),
        cwd: "/".into(),
    }
}

async fn start(script: &str) -> (Supervised, Ends) {
    Supervised::start(&supervisor(), &shell(script))
        .await
        .unwrap()
}

/// The first line that a process writes.
async fn first_line(ends: &mut Ends) -> String {
    let pipe = ends.stdout.try_clone().unwrap();
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

const LONG: Duration = Duration::from_secs(3);

#[tokio::test]
async fn exit_codes_and_signals_are_told() {
    let (mut child, _ends) = start("exit 7").await;
    let code = Exit {
        code: Some(7),
        signal: None,
    };
    assert_eq!(child.exited().await, code);
    assert_eq!(child.exited().await, code, "asking again");
    let (mut child, _ends) = start("kill -SEGV $$").await;
    assert_eq!(
        child.exited().await,
        Exit {
            code: None,
            signal: Some(11)
        }
    );
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
    let missing = Supervisor {
        program: "/no/such/supervisor".into(),
        arguments: Vec::new(),
    };
    let error = Supervised::start(&missing, &shell("")).await.unwrap_err();
    assert!(matches!(error, StartError::Supervisor(_)));
}

#[tokio::test]
async fn an_interrupt_reaches_the_group_and_not_the_supervisor() {
    let script = "trap 'echo caught; exit 3' INT; sleep 60 & echo $!; wait";
    let (mut child, mut ends) = start(script).await;
    first_line(&mut ends).await;
    child.interrupt();
    assert_eq!(child.exited().await.code, Some(3));
    assert_eq!(first_line(&mut ends).await, "caught");
}

/// What a child can do to hide its own children.
const HIDING: [(&str, &str); 4] = [
    ("plain", "sleep 60 & echo $!"),
    ("setsid", "setsid sh -c 'echo $$; exec sleep 60' &"),
    ("double fork", "sh -c 'sleep 60 & echo $!; exit' "),
    (
        "setsid twice",
        "setsid sh -c 'setsid sh -c \"echo \\$\\$; trap : TERM; sleep 60; sleep 60\" & exit' &",
    ),
];

#[tokio::test]
async fn nothing_outlives_an_owner_that_lets_go() {
    for (how, script) in HIDING {
        let (child, mut ends) = start(&format!("{script}\nsleep 60")).await;
        let grandchild: u32 = first_line(&mut ends).await.parse().unwrap();
        let pid = child.pid();
        assert!(runs(grandchild) && runs(pid), "{how}");
        drop(child);
        let ended = eventually(LONG, || !runs(grandchild) && !runs(pid)).await;
        assert!(ended, "{how}");
    }
}

#[tokio::test]
async fn nothing_outlives_a_child_that_ends_or_is_killed() {
    for (how, script) in HIDING {
        for ending in ["exit", "kill -9 $$"] {
            let folder = tempfile::tempdir().unwrap();
            let go = folder.path().join("go");
            let wait = format!("while [ ! -e {} ]; do sleep 0.01; done", go.display());
            let (mut child, mut ends) = start(&format!("{script}\n{wait}\n{ending}")).await;
            let grandchild: u32 = first_line(&mut ends).await.parse().unwrap();
            std::fs::write(&go, "").unwrap();
            child.exited().await;
            assert!(
                eventually(LONG, || !runs(grandchild)).await,
                "{how}, {ending}"
            );
            let gone = child.gone(LONG).await;
            assert!(gone.code == Some(0) || gone.signal == Some(9), "{gone:?}");
        }
    }
}

#[tokio::test]
async fn killing_takes_everything_at_once() {
    for (how, script) in HIDING {
        let (mut child, mut ends) = start(&format!("trap '' TERM INT\n{script}\nsleep 60")).await;
        let grandchild: u32 = first_line(&mut ends).await.parse().unwrap();
        child.kill();
        assert_eq!(child.exited().await.signal, Some(9), "{how}");
        assert!(eventually(LONG, || !runs(grandchild)).await, "{how}");
    }
}

#[tokio::test]
async fn a_killed_supervisor_does_not_leave_the_child_unwatched() {
    let (mut child, _ends) = start("sleep 60").await;
    let pid = child.pid();
    let parent = parent_of(pid);
    let parent = rustix::process::Pid::from_raw(parent).unwrap();
    rustix::process::kill_process(parent, rustix::process::Signal::KILL).unwrap();
    assert_eq!(child.exited().await, Exit::UNKNOWN);
    assert!(eventually(LONG, || !runs(pid)).await);
}

#[tokio::test]
async fn a_stopped_supervisor_hangs_nobody() {
    // Not before it has told that the child runs.
    let (mut child, _ends) = start("sleep 0.3; kill -STOP $PPID; sleep 60").await;
    let pid = child.pid();
    let parent = u32::try_from(parent_of(pid)).unwrap();
    let stopped = || {
        let stat = std::fs::read_to_string(format!("/proc/{parent}/stat")).unwrap_or_default();
        stat.contains(") T ")
    };
    assert!(eventually(LONG, stopped).await);
    assert_eq!(child.end().await, Exit::UNKNOWN);
    assert!(eventually(LONG, || !runs(pid) && !runs(parent)).await);
}

fn parent_of(pid: u32) -> i32 {
    let stat =
        std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).unwrap();
    let rest = stat.rsplit(") ").next().unwrap();
    rest.split(' ').nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn descriptors_of_the_owner_do_not_leak_into_the_child() {
    // What this very process was given by whoever started it, everybody below it has, too.
    let given = std::fs::read_dir("/proc/self/fd").unwrap().count();
    let (_first, _first_ends) = start("sleep 60").await;
    let (_second, _second_ends) = start("sleep 60").await;
    let now = std::fs::read_dir("/proc/self/fd").unwrap().count();
    assert!(now >= given + 8, "two children need that many");
    let plain = std::process::Command::new("sh")
        .args(["-c", "ls /proc/self/fd | wc -l"])
        .output()
        .unwrap();
    let plain: usize = String::from_utf8(plain.stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let (mut child, mut ends) = start("ls /proc/self/fd | wc -l").await;
    let open: usize = first_line(&mut ends).await.trim().parse().unwrap();
    child.exited().await;
    assert_eq!(open, plain + 1, "only the channel is added");
}
