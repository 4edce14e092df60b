//! Notices about settings.

use std::time::Duration;

use cellwright_diagnostics::notice::{NoticeKind, UserNotice};

use super::{FileLine, Origin, SettingEntry};

/// Describes that a call requested a longer time limit than the settings allow.
pub fn describe_capped_timeout(max: Duration, origin: &Origin) -> UserNotice {
    UserNotice::new(
        NoticeKind::TimeoutCapped,
        format!(
            "the time limit is {} s, the maximum of `eval.max_timeout` ({origin})",
            max.as_secs_f64()
        ),
    )
}

/// Describes the settings of an untrusted project that are ignored.
pub fn describe_ignored_settings(entries: &[SettingEntry]) -> Option<UserNotice> {
    let ignored = |entry: &SettingEntry| Some((entry.definition.name, entry.ignored_at.clone()?));
    let ignored: Vec<(&str, FileLine)> = entries.iter().filter_map(ignored).collect();
    let (_, first) = ignored.first()?;
    let names: Vec<String> = ignored
        .iter()
        .map(|(name, at)| format!("`{name}` (line {})", at.line))
        .collect();
    Some(UserNotice::new(
        NoticeKind::SettingsIgnored,
        format!(
            "ignored {} in {}: the project is not trusted; review the file, then run `cellwright trust`",
            names.join(", "),
            first.file.display()
        ),
    ))
}
