//! Checks the host and its directory.

use cellwright_diagnostics::failure::{Failure, Hint};
use cellwright_engine::runtime_dir::{self, RuntimeDir};
use cellwright_host::error::HostError;
use cellwright_host::find;
use cellwright_host::hello::PROTOCOL;
use cellwright_host::host_record::HostRecord;

use super::message_with_causes;
use crate::finding::{Finding, Severity};

/// Checks the host if one runs. Starts none.
pub(super) fn check(findings: &mut Vec<Finding>) -> Result<(), Failure> {
    let path = runtime_dir::default_path();
    let dir = match RuntimeDir::open(&path) {
        Ok(dir) => dir,
        Err(error) => {
            findings.push(problem("host-directory", error.into()));
            return Ok(());
        }
    };
    let Some(dir) = dir else {
        findings.push(ok(format!(
            "no host runs; its directory is {}",
            path.display()
        )));
        return Ok(());
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    findings.push(match runtime.block_on(find::connect_existing(&dir)) {
        Ok(Some(client)) if client.host.protocol == PROTOCOL => ok(format!(
            "pid {}, version {}, in {}",
            client.host.pid,
            client.host.version,
            path.display()
        )),
        Ok(Some(client)) => match client.check_protocol() {
            Err(error) => problem("host-other-protocol", error),
            Ok(_) => return Ok(()),
        },
        Ok(None) if matches!(HostRecord::read(&dir), Ok(Some(_))) => Finding::new(
            Severity::Note,
            "host-stale",
            format!(
                "a host exited uncleanly and left files in {}",
                path.display()
            ),
        )
        .next("none needed: the next host or `cellwright host stop` removes them"),
        Ok(None) => ok(format!("no host runs; its directory is {}", path.display())),
        Err(error) => problem("host-silent", error),
    });
    Ok(())
}

fn ok(text: String) -> Finding {
    Finding::new(Severity::Ok, "host", text)
}

/// A problem of the host. Only a warning, because code runs without a host too.
fn problem(code: &'static str, error: HostError) -> Finding {
    let failure = Failure::from(error);
    let text = message_with_causes(&failure);
    Finding {
        next: failure.hints.first().map(Hint::for_command_line),
        ..Finding::new(Severity::Warning, code, text)
    }
}
