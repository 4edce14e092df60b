//! Is the host well, if there is one, and could there be one?

use super::{Finding, Level};
use crate::failure::Failure;
use crate::host::error::HostError;
use crate::host::find;
use crate::host::hello::PROTOCOL;
use crate::host::record::HostRecord;
use crate::runtime_dir::{self, RuntimeDir};

/// Looks at the host and its folder; starts nothing.
pub(super) fn check(findings: &mut Vec<Finding>) -> Result<(), Failure> {
    let path = runtime_dir::default_path();
    let folder = match RuntimeDir::open(path.clone()) {
        Ok(folder) => folder,
        Err(error) => {
            findings.push(trouble("host-folder", error.into()));
            return Ok(());
        }
    };
    let Some(folder) = folder else {
        findings.push(good(format!("none runs; its folder is {}", path.display())));
        return Ok(());
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    findings.push(match runtime.block_on(find::connect_existing(&folder)) {
        Ok(Some(client)) if client.host.protocol == PROTOCOL => good(format!(
            "pid {}, version {}, in {}",
            client.host.pid,
            client.host.version,
            path.display()
        )),
        Ok(Some(client)) => match client.check_protocol() {
            Err(error) => trouble("host-other-protocol", error),
            Ok(_) => return Ok(()),
        },
        Ok(None) if matches!(HostRecord::read(&folder), Ok(Some(_))) => Finding {
            code: "host-stale",
            level: Level::Note,
            text: format!(
                "a host did not end well and left its files in {}",
                path.display()
            ),
            next: Some("nothing: the next host, or `cellwright host stop`, removes them".into()),
        },
        Ok(None) => good(format!("none runs; its folder is {}", path.display())),
        Err(error) => trouble("host-silent", error),
    });
    Ok(())
}

fn good(text: String) -> Finding {
    Finding {
        code: "host",
        level: Level::Ok,
        text,
        next: None,
    }
}

/// Code can be run without a host, so it is no more than a warning.
fn trouble(code: &'static str, error: HostError) -> Finding {
    let failure = Failure::from(error);
    let mut text = failure.message;
    for cause in &failure.causes {
        text.push_str(&format!("\n  {cause}"));
    }
    Finding {
        code,
        level: Level::Warning,
        text,
        next: failure.hints.into_iter().next(),
    }
}
