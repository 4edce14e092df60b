//! Notebook metadata about the kernel, and cell metadata about execution times.

use std::time::{Duration, SystemTime};

use cellwright_kernel::Description;
use cellwright_stdext::rfc3339;
use serde_json::{Value, json};

use crate::lenient_json;

/// The notebook metadata to set after a run: `kernelspec` if the notebook has none (or another one and the user
/// `named` this kernel), and `language_info` if it differs.
pub(crate) fn kernel_metadata(
    metadata: &[u8],
    description: &Description,
    named: bool,
) -> Vec<(&'static str, String)> {
    let current = lenient_json::parse(metadata);
    let mut set = Vec::new();
    let language = description.language.clone().unwrap_or_default();
    let spec = json!({
        "display_name": description.display_name.as_ref().unwrap_or(&description.name),
        "language": language,
        "name": description.name,
    });
    let old = &current["kernelspec"];
    let is_another = old["name"] != spec["name"];
    if !old.is_object() || (named && is_another) {
        set.push(("kernelspec", spec.to_string()));
    }
    if let Some(info) = &description.language_info {
        let mut info = Value::clone(info);
        info.sort_all_objects();
        if current["language_info"] != info {
            set.push(("language_info", info.to_string()));
        }
    }
    set
}

/// The `execution` metadata of a cell, with the timestamps that JupyterLab writes.
pub(crate) fn execution_metadata(started: SystemTime, finished: SystemTime) -> String {
    let (started, finished) = (
        rfc3339::format_micros(started),
        rfc3339::format_micros(finished),
    );
    json!({
        "iopub.execute_input": started,
        "iopub.status.busy": started,
        "iopub.status.idle": finished,
        "shell.execute_reply": finished,
    })
    .to_string()
}

/// Duration of a cell, from its `execution` metadata.
pub(crate) fn execution_duration(execution: &Value) -> Option<Duration> {
    let at = |name: &str| seconds_in_month(execution[name].as_str()?);
    let started = at("iopub.execute_input").or_else(|| at("iopub.status.busy"))?;
    let finished = at("shell.execute_reply").or_else(|| at("iopub.status.idle"))?;
    Duration::try_from_secs_f64(finished - started).ok()
}

/// Seconds of a timestamp since the start of its month, which is enough for durations.
fn seconds_in_month(timestamp: &str) -> Option<f64> {
    let (date, time) = timestamp.split_once('T')?;
    let time = time.trim_end_matches('Z');
    let time = time.split_once('+').map_or(time, |(time, _)| time);
    let mut parts = time.split(':');
    let mut part = || parts.next()?.parse::<f64>().ok();
    let (hours, minutes, seconds) = (part()?, part()?, part()?);
    let day: f64 = date.rsplit('-').next()?.parse().ok()?;
    Some(((day * 24.0 + hours) * 60.0 + minutes) * 60.0 + seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_is_computed_from_cell_timestamps() {
        let started = SystemTime::UNIX_EPOCH + Duration::from_secs(1_798_761_590);
        let finished = started + Duration::from_millis(12_500);
        let execution: Value =
            serde_json::from_str(&execution_metadata(started, finished)).unwrap();
        // Across the end of a month the duration is unknown.
        assert_eq!(execution_duration(&execution), None);
        let execution: Value = serde_json::from_str(&execution_metadata(
            finished,
            finished + Duration::from_millis(12_500),
        ))
        .unwrap();
        assert_eq!(
            execution_duration(&execution),
            Some(Duration::from_millis(12_500))
        );
        assert_eq!(execution_duration(&Value::Null), None);
        let from_jupyterlab = json!({"iopub.execute_input": "2024-05-01T10:00:59.5+00:00", "shell.execute_reply": "2024-05-01T10:01:00Z"});
        assert_eq!(
            execution_duration(&from_jupyterlab),
            Some(Duration::from_millis(500))
        );
    }
}
