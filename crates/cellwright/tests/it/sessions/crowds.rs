//! Many at once, and too many.

use std::process::Command;

use super::{SessionFixture, Terminal, number};
use crate::context::CommandOutput;
use crate::host::wait_until;
use crate::survivors::runs;

#[test]
fn fifty_sessions_at_once() {
    let fixture = SessionFixture::with(&[("sessions.max", "64"), ("eval.timeout", "120")]);
    let names: Vec<String> = (0..50).map(|number| format!("s{number}")).collect();
    let ask = |code: &dyn Fn(&str) -> String| -> Vec<String> {
        let all: Vec<Terminal<'_>> = names
            .iter()
            .map(|name| fixture.terminal(name, &[&code(name)]))
            .collect();
        all.into_iter()
            .map(|one| one.end().exits(0).stdout)
            .collect()
    };
    ask(&|name| format!("mine = '{name}'"));
    let seen = ask(&|_| "print(mine)".to_owned());
    let expected: Vec<String> = names.iter().map(|name| format!("{name}\n")).collect();
    assert_eq!(seen, expected);
    let kernels = fixture.kernels();
    assert_eq!(kernels.len(), 50);
    let pids: Vec<u32> = kernels
        .iter()
        .map(|kernel| number(&kernel["pid"]))
        .collect();
    let host = fixture.host_pid();
    fixture.run(&["host", "stop"]).exits(0);
    let alive: Vec<&u32> = pids.iter().filter(|pid| runs(**pid)).collect();
    assert!(alive.is_empty(), "{alive:?}");
    // It has let go of everything, and is about to be gone.
    wait_until("the host stays", || !runs(host));
}

#[test]
fn twenty_first_commands_at_once_find_one_host() {
    let fixture = SessionFixture::with(&[("sessions.max", "20"), ("eval.timeout", "120")]);
    let all: Vec<Terminal<'_>> = (0..20)
        .map(|number| fixture.terminal(&format!("s{}", number % 4), &[&number.to_string()]))
        .collect();
    for (number, one) in all.into_iter().enumerate() {
        assert_eq!(one.end().exits(0).stdout, format!("{number}\n"));
    }
    assert_eq!(fixture.kernels().len(), 4);
    let log = fixture.host.log();
    assert_eq!(log.matches("started: pid").count(), 1, "{log}");
}

/// A host that may have few descriptors: sessions are refused in time, so that those there are can
/// still be used.
#[test]
fn a_host_without_descriptors_says_so_and_serves_the_sessions_it_has() {
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
        let mut made = 0;
        let refused = loop {
            let name = format!("s{made}");
            let code = format!("x = {made}");
            let mut ran = fixture.eval(&name, &[&code]);
            if ran.code != Some(0) {
                // The command before may not have been quite gone.
                std::thread::sleep(std::time::Duration::from_millis(300));
                ran = fixture.eval(&name, &[&code]);
            }
            if ran.code != Some(0) {
                break ran.exits(2);
            }
            made += 1;
            assert!(made < 64, "there is no limit");
        };
        assert!(made >= 2, "{}", refused.stderr);
        assert!(
            refused.stderr.contains("Out of file descriptors"),
            "{}",
            refused.stderr
        );
        // Those there are work, also several at once, and nobody was ended.
        let all: Vec<Terminal<'_>> = (0..made)
            .map(|number| fixture.terminal(&format!("s{number}"), &["x"]))
            .collect();
        for (number, one) in all.into_iter().enumerate() {
            assert_eq!(one.end().exits(0).stdout, format!("{number}\n"));
        }
        fixture.eval("another", &["1"]).exits(2);
        fixture.run(&["kernels", "stop", "s0"]).exits(0);
        wait_until("there is room again", || {
            fixture.eval("another", &["1"]).code == Some(0)
        });
        fixture.run(&["host", "stop"]).exits(0);
    }
}
