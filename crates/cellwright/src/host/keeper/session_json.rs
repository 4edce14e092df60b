//! Sessions as JSON for clients.

use std::time::SystemTime;

use cellwright_kernel::session::{Activity, SessionReport};
use serde_json::{Value, json};

pub(super) fn is_busy(report: &SessionReport) -> bool {
    matches!(report.activity, Activity::Busy { .. })
}

/// What it is busy with, in words.
pub(super) fn describe_busy(report: &SessionReport) -> Option<String> {
    match &report.activity {
        Activity::Busy {
            owner,
            label,
            since,
        } => Some(format!(
            "it has been busy for {} s with `{label}` (owner {owner})",
            elapsed_seconds(*since)
        )),
        Activity::Starting => Some("it is just starting".to_owned()),
        _ => None,
    }
}

pub(super) fn sessions_json(reports: &[SessionReport]) -> Vec<Value> {
    reports.iter().map(session_json).collect()
}

pub(super) fn session_json(report: &SessionReport) -> Value {
    let (state, busy) = match &report.activity {
        Activity::Empty => ("empty", None),
        Activity::Starting => ("starting", None),
        Activity::Idle => ("idle", None),
        Activity::Busy {
            owner,
            label,
            since,
        } => (
            "busy",
            Some(
                json!({"owner": owner, "label": label, "since": unix_seconds(*since), "seconds": elapsed_seconds(*since)}),
            ),
        ),
    };
    let kernel = report.kernel.as_ref();
    let path = |path: &std::path::Path| path.display().to_string();
    json!({
        "id": report.id.0,
        "session": report.key.name,
        "name": kernel.map(|kernel| kernel.name.clone()),
        "backend": kernel.map(|kernel| kernel.backend),
        "interpreter": kernel.and_then(|kernel| kernel.interpreter.as_deref()).map(path),
        "language": kernel.and_then(|kernel| kernel.language.clone()),
        "version": kernel.and_then(|kernel| kernel.version.clone()),
        "pid": kernel.and_then(|kernel| kernel.pid),
        "cwd": path(&report.key.cwd),
        "state": state,
        "busy": busy,
        "waiting": report.waiting,
        "owners": report.owners,
        "private_to": report.private_to,
        "generation": report.generation,
        "executions": report.executions,
        "memory_bytes": report.memory,
        "age_s": report.age.as_secs(),
        "idle_s": report.idle.as_secs(),
    })
}

fn unix_seconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

fn elapsed_seconds(since: SystemTime) -> u64 {
    let time = SystemTime::now().duration_since(since);
    time.unwrap_or_default().as_secs()
}
