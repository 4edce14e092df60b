//! The comparison of two notebooks, which `read` with `diff` returns.

use std::ffi::OsString;

use cellwright_diagnostics::failure::Failure;
use cellwright_notebook::Scope;
use cellwright_operations::diff::{DiffRequest, diff as compare_notebooks};

use super::super::content::{Delimiter, Reply, truncate_middle};
use super::super::roots::ConfinedPath;
use super::super::server::Server;

/// Compares a notebook with an older one: another file, `REVISION:path` in git, or a revision of the same path.
pub(super) fn diff(
    server: &Server,
    old: &str,
    new: &ConfinedPath,
    shows_outputs: bool,
) -> Result<Reply, Failure> {
    let report = compare_notebooks(&DiffRequest {
        old: old_side(server, old, new)?,
        new: new.display_path().into(),
        git_dir: Some(server.roots().base()?),
        scope: Scope::All,
        output_text: shows_outputs,
    })?;
    let mut text = format!("{}\n", report.summary());
    if !report.same {
        let (diff, missing) = truncate_middle(&report.text, server.options().text_limit);
        text.push_str(&Delimiter::new()?.enclose("diff", &diff));
        if missing > 0 {
            text.push_str(&format!("{missing} characters of the diff omitted\n"));
        }
    }
    Ok(Reply::new(text, &report)?)
}

/// The old side of the comparison.
fn old_side(server: &Server, given: &str, new: &ConfinedPath) -> Result<OsString, Failure> {
    let roots = server.roots();
    let found = roots.resolve_file(given).ok();
    let found = found.filter(|place| place.path().symlink_metadata().is_ok());
    if let Some(place) = found {
        return Ok(place.display_path().into());
    }
    let place;
    let (revision, path) = match given.split_once(':') {
        Some((revision, path)) => {
            place = roots.resolve_file(path)?;
            (revision, place.display_path())
        }
        None => (given, new.display_path()),
    };
    let base = roots.base()?;
    let inside = path.strip_prefix(&base).unwrap_or(path);
    Ok(format!("{revision}:./{}", inside.display()).into())
}
