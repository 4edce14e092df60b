//! Notices about settings.

use std::time::Duration;

use cellwright_diagnostics::notice::{NoticeKind, UserNotice};
use cellwright_stdext::private::ForeignPath;

use super::{FileLine, Origin, SettingEntry, Settings};

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

/// Describes files and directories that do not count, because another user owns them or can write to them.
pub(super) fn describe_foreign_paths(foreign: &[ForeignPath]) -> Option<UserNotice> {
    let reasons: Vec<String> = foreign.iter().map(ForeignPath::to_string).collect();
    (!reasons.is_empty()).then(|| {
        UserNotice::new(
            NoticeKind::ForeignFiles,
            format!(
                "ignored files that another user can change: {}; the setting `projects.directories` accepts projects of other users",
                reasons.join(", ")
            ),
        )
    })
}

/// Describes the settings and the servers of an untrusted project that are ignored.
pub fn describe_ignored(settings: &Settings) -> Option<UserNotice> {
    let mut ignored = ignored_settings(settings.entries());
    let servers = settings.ignored_servers.iter();
    ignored.extend(servers.map(|(name, at)| (format!("server.{name}"), at.clone())));
    describe(&ignored).or_else(|| {
        let (name, at) = settings.replaced_servers.first()?;
        let text = format!("ignored `server.{name}` in {at}: your own settings define this server");
        Some(UserNotice::new(NoticeKind::SettingsIgnored, text))
    })
}

/// Describes that a setting of an untrusted project is ignored.
pub fn describe_ignored_setting(entry: &SettingEntry) -> Option<UserNotice> {
    describe(&ignored_settings(std::slice::from_ref(entry)))
}

fn ignored_settings(entries: &[SettingEntry]) -> Vec<(String, FileLine)> {
    let ignored =
        |entry: &SettingEntry| Some((entry.definition.name.to_owned(), entry.ignored_at.clone()?));
    entries.iter().filter_map(ignored).collect()
}

fn describe(ignored: &[(String, FileLine)]) -> Option<UserNotice> {
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
