//! Stale files, other programs on the port, killed processes, and exhausted descriptors.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command};

use serde_json::{Value, json};

use super::{GatewayUser, is_running, kill, text, wait_until};

/// Starts a child of the kernel that detaches itself, and prints its process id.
const DETACH: &str = "import os, time\nr, w = os.pipe()\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        os.write(w, str(os.getpid()).encode())\n        os.execvp('sleep', ['sleep', '300'])\n    os._exit(0)\nos.wait()\nprint(os.read(r, 20).decode(), os.getpid(), flush=True)\ntime.sleep(300)";

/// Creates the files of a gateway at the address of a listener.
fn create_record(dir: &Path, listener: &TcpListener, pid: u32) -> File {
    fs::create_dir_all(dir).unwrap();
    for dir in [
        dir,
        dir.parent().unwrap(),
        dir.parent().unwrap().parent().unwrap(),
    ] {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700)).unwrap();
    }
    let record = json!({
        "url": format!("http://{}/", listener.local_addr().unwrap()),
        "token": "secret", "pid": pid, "start_ticks": null, "gateway_pid": pid, "python": "/bin/true",
        "version": null, "started_by": "0.1.0",
        "started": {"secs_since_epoch": 1, "nanos_since_epoch": 0},
    });
    fs::write(dir.join("info.json"), record.to_string()).unwrap();
    File::create(dir.join("keeper.lock")).unwrap()
}

#[test]
fn files_of_a_killed_gateway_and_other_servers_on_its_port_are_not_used() {
    let Some(user) = GatewayUser::new() else {
        return;
    };
    let mut process = Command::new("sleep").arg("300").spawn().unwrap();
    let stale = TcpListener::bind("127.0.0.1:0").unwrap();
    let foreign = TcpListener::bind("127.0.0.1:0").unwrap();
    create_record(&user.dir().join("3"), &stale, process.id());
    // Its keeper seems to run.
    let lock = create_record(&user.dir().join("5"), &foreign, process.id());
    lock.lock().unwrap();
    assert_eq!(user.eval(&["print(6 * 7)"]), "42");
    for listener in [stale, foreign] {
        listener.set_nonblocking(true).unwrap();
        let error = listener.accept().map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock, "no token was sent");
    }
    assert!(!user.dir().join("3").exists(), "stale files are removed");
    let status = user.status();
    let healthy = |at: usize| status["gateways"][at]["healthy"].as_bool();
    assert_eq!(
        (healthy(0), healthy(1)),
        (Some(true), Some(false)),
        "{status}"
    );
    // A process that is not a keeper is never signalled.
    user.run(&["gateway", "stop"]);
    assert!(process.try_wait().unwrap().is_none());
    process.kill().unwrap();
    process.wait().unwrap();
    drop(lock);
}

/// A process that is killed.
#[derive(Clone, Copy, Debug)]
enum Party {
    Client,
    Keeper,
    Gateway,
    Kernel,
}

fn end(mut child: Child) -> Option<i32> {
    child.wait().unwrap().code()
}

#[test]
fn nothing_survives_the_death_of_a_party() {
    let Some(user) = GatewayUser::new() else {
        return;
    };
    for party in [Party::Client, Party::Keeper, Party::Gateway, Party::Kernel] {
        let (child, line) = user.start_eval(DETACH);
        let (detached, kernel) = line.split_once(' ').unwrap();
        assert!(is_running(detached) && is_running(kernel), "{party:?}");
        let gateway = user.status()["gateways"][0].clone();
        assert_eq!(
            text(&gateway["kernels"][0]["owner_pid"]),
            child.id().to_string()
        );
        let victim = match party {
            Party::Client => child.id().to_string(),
            Party::Keeper => text(&gateway["pid"]),
            Party::Gateway => text(&gateway["gateway_pid"]),
            Party::Kernel => kernel.to_owned(),
        };
        kill(&victim);
        let code = end(child);
        if !matches!(party, Party::Client) {
            assert_eq!(code, Some(2), "{party:?}");
        }
        for pid in [kernel, detached] {
            wait_until(&format!("{party:?}: {pid} ends"), || !is_running(pid));
        }
        if matches!(party, Party::Keeper) {
            let pid = text(&gateway["gateway_pid"]);
            wait_until("the gateway ends", || !is_running(&pid));
        }
        assert_eq!(user.eval(&["print('next')"]), "next", "{party:?}");
        let no_kernels = || {
            let status = user.status();
            let kernels = status["gateways"][0]["kernels"].as_array();
            kernels.is_some_and(Vec::is_empty)
        };
        wait_until("no kernel is left", no_kernels);
    }
}

#[test]
fn a_client_that_is_killed_while_the_gateway_starts_leaves_it_usable() {
    let Some(user) = GatewayUser::new() else {
        return;
    };
    let mut client = user
        .command(&["eval", "--backend", "gateway", "1"])
        .spawn()
        .unwrap();
    let options = user.dir().join("1/options.json");
    wait_until("the gateway starts", || options.exists());
    client.kill().unwrap();
    client.wait().unwrap();
    assert_eq!(user.eval(&["print(2)"]), "2");
    assert_eq!(user.status()["gateways"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_gateway_without_descriptors_keeps_its_kernels_and_another_one_gets_new_ones() {
    let Some(user) = GatewayUser::new() else {
        return;
    };
    let command = user.command(&["gateway", "start"]);
    let mut limited = Command::new("sh");
    limited
        .args(["-c", "ulimit -n 72 && exec \"$0\" gateway start"])
        .arg(command.get_program())
        .env_clear()
        .envs(
            command
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .current_dir(user.context.dir());
    assert!(limited.status().unwrap().success());
    let gateways = |status: &Value| status["gateways"].as_array().unwrap().len();
    let mut count = 0;
    while gateways(&user.status()) == 1 {
        assert!(count < 20, "the gateway does not run out of descriptors");
        let session = format!("s{count}");
        user.eval(&["--session", &session, &format!("x = {count}")]);
        count += 1;
    }
    assert!(count > 1);
    for number in 0..count {
        let session = format!("s{number}");
        let printed = user.eval(&["--session", &session, "print(x)"]);
        assert_eq!(printed, number.to_string());
    }
    // The old gateway ends with its last kernel.
    for number in 0..count {
        user.run(&["kernels", "stop", &format!("s{number}")])
            .exits(0);
    }
    wait_until("the old gateway ends", || gateways(&user.status()) == 1);
}
