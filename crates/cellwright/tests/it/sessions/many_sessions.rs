//! Many sessions, many clients, and few file descriptors.

use std::process::Command;

use super::{ClientProcess, SessionFixture, number};
use crate::context::CommandOutput;
use crate::host::wait_until;
use crate::process_cleanup::is_running;

#[test]
fn fifty_sessions_run_concurrently() {
    let fixture = SessionFixture::with(&[("sessions.max", "64"), ("eval.timeout", "120")]);
    let names: Vec<String> = (0..50).map(|number| format!("s{number}")).collect();
    let run_in_all = |code: &dyn Fn(&str) -> String| -> Vec<String> {
        let clients: Vec<ClientProcess<'_>> = names
            .iter()
            .map(|name| fixture.start_client(name, &[&code(name)]))
            .collect();
        clients
            .into_iter()
            .map(|client| client.wait().exits(0).stdout)
            .collect()
    };
    run_in_all(&|name| format!("mine = '{name}'"));
    let outputs = run_in_all(&|_| "print(mine)".to_owned());
    let expected: Vec<String> = names.iter().map(|name| format!("{name}\n")).collect();
    assert_eq!(outputs, expected);
    let kernels = fixture.kernels();
    assert_eq!(kernels.len(), 50);
    let pids: Vec<u32> = kernels
        .iter()
        .map(|kernel| number(&kernel["pid"]))
        .collect();
    let host = fixture.host_pid();
    fixture.run(&["host", "stop"]).exits(0);
    let alive: Vec<&u32> = pids.iter().filter(|pid| is_running(**pid)).collect();
    assert!(alive.is_empty(), "{alive:?}");
    // The kernels have ended. The process of the host ends shortly after the command.
    wait_until("the host still runs", || !is_running(host));
}

#[test]
fn twenty_concurrent_first_commands_start_one_host() {
    let fixture = SessionFixture::with(&[("sessions.max", "20"), ("eval.timeout", "120")]);
    let clients: Vec<ClientProcess<'_>> = (0..20)
        .map(|number| fixture.start_client(&format!("s{}", number % 4), &[&number.to_string()]))
        .collect();
    for (number, client) in clients.into_iter().enumerate() {
        assert_eq!(client.wait().exits(0).stdout, format!("{number}\n"));
    }
    assert_eq!(fixture.kernels().len(), 4);
    let log = fixture.host.log();
    assert_eq!(log.matches("started: pid").count(), 1, "{log}");
}

/// A host with few file descriptors refuses new sessions before it runs out of descriptors, so that existing
/// sessions still work.
#[test]
fn a_host_with_few_descriptors_refuses_new_sessions_and_serves_existing_ones() {
    for spare in ["false", "true"] {
        let fixture = SessionFixture::with(&[("sessions.max", "64"), ("kernel.spare", spare)]);
        let start = fixture.command(&["host", "start"]);
        let output = Command::new("sh")
            .args(["-c", "ulimit -n 64; exec \"$0\" \"$@\""])
            .arg(start.get_program())
            .args(start.get_args())
            .env_clear()
            .envs(
                start
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .output()
            .unwrap();
        CommandOutput::new(&fixture.host.context, &output).exits(0);
        let mut count = 0;
        let refused = loop {
            let name = format!("s{count}");
            let code = format!("x = {count}");
            let mut result = fixture.eval(&name, &[&code]);
            if result.code != Some(0) {
                // The process of the previous command may still exist.
                std::thread::sleep(std::time::Duration::from_millis(300));
                result = fixture.eval(&name, &[&code]);
            }
            if result.code != Some(0) {
                break result.exits(2);
            }
            count += 1;
            assert!(count < 64, "there is no limit");
        };
        assert!(count >= 2, "{}", refused.stderr);
        assert!(
            refused.stderr.contains("Out of file descriptors"),
            "{}",
            refused.stderr
        );
        // The existing sessions work, also concurrently, and none was evicted.
        let clients: Vec<ClientProcess<'_>> = (0..count)
            .map(|number| fixture.start_client(&format!("s{number}"), &["x"]))
            .collect();
        for (number, client) in clients.into_iter().enumerate() {
            assert_eq!(client.wait().exits(0).stdout, format!("{number}\n"));
        }
        fixture.eval("another", &["1"]).exits(2);
        fixture.run(&["kernels", "stop", "s0"]).exits(0);
        wait_until("a new session is still refused", || {
            fixture.eval("another", &["1"]).code == Some(0)
        });
        fixture.run(&["host", "stop"]).exits(0);
    }
}
