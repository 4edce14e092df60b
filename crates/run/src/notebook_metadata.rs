//! Notebook metadata about the kernel, and cell metadata about execution times.

use std::time::{Duration, SystemTime};

use cellwright_kernel::Description;
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
    let (started, finished) = (format_timestamp(started), format_timestamp(finished));
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

/// Formats a timestamp as `2026-01-31T12:34:56.789012Z`.
pub(crate) fn format_timestamp(time: SystemTime) -> String {
    let since = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    let seconds = since.as_secs();
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil_date(days);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:06}Z",
        rest / 3600,
        rest / 60 % 60,
        rest % 60,
        since.subsec_micros()
    )
}

/// Year, month and day from the days since 1970. It computes in years that begin in March, so that the leap day is
/// last.
fn civil_date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
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

    #[test]
    fn timestamps_are_written_as_jupyter_does() {
        let at = |seconds, micros: u32| {
            format_timestamp(SystemTime::UNIX_EPOCH + Duration::new(seconds, micros * 1000))
        };
        assert_eq!(at(0, 0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(at(951_827_696, 7), "2000-02-29T12:34:56.000007Z");
        assert_eq!(at(1_798_761_599, 999_999), "2026-12-31T23:59:59.999999Z");
        assert_eq!(at(4_107_542_400, 0), "2100-03-01T00:00:00.000000Z");
    }
}
