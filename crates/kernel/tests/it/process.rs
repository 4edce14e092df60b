//! Processes under a supervisor: how they end, and that no descendant remains.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use cellwright_kernel::process::{
    ChildCommand, ChildPipes, Exit, StartError, Supervised, Supervisor,
};
use cellwright_stdext::Directory;

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
    let missing = Supervisor {
        program: "/no/such/supervisor".into(),
        arguments: Vec::new(),
    };
    let error = Supervised::start(&missing, &shell("")).await.unwrap_err();
    assert!(matches!(error, StartError::Supervisor(_)));
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

#[tokio::test]
async fn child_ends_when_its_supervisor_is_killed() {
    let (mut child, _pipes) = start("sleep 60").await;
    let pid = child.pid();
    let parent = parent_of(pid);
    let parent = rustix::process::Pid::from_raw(parent).unwrap();
    rustix::process::kill_process(parent, rustix::process::Signal::KILL).unwrap();
    assert_eq!(child.wait().await, Exit::UNKNOWN);
    assert!(eventually(EXIT_TIMEOUT, || !is_running(pid)).await);
}

#[tokio::test]
async fn stopped_supervisor_does_not_block_the_owner() {
    // Not before it has reported the start of the child.
    let (mut child, _pipes) = start("sleep 0.3; kill -STOP $PPID; sleep 60").await;
    let pid = child.pid();
    let parent = u32::try_from(parent_of(pid)).unwrap();
    let stopped = || {
        let stat = std::fs::read_to_string(format!("/proc/{parent}/stat")).unwrap_or_default();
        stat.contains(") T ")
    };
    assert!(eventually(EXIT_TIMEOUT, stopped).await);
    assert_eq!(child.kill_and_wait().await, Exit::UNKNOWN);
    assert!(eventually(EXIT_TIMEOUT, || !is_running(pid) && !is_running(parent)).await);
}

fn parent_of(pid: u32) -> i32 {
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
