//! The comparison of two notebooks, which `read` with `diff` returns.

use cellwright_diagnostics::failure::Failure;
use cellwright_notebook::Scope;
use cellwright_operations::diff::{DiffRequest, DiffSide, diff as compare_notebooks};
use cellwright_operations::git::{Confinement, program::Git};

use super::super::content::{Delimiter, Reply, truncate_middle};
use super::super::roots::ConfinedPath;
use super::super::server::Server;
use super::super::wording;

/// Compares a notebook with an older one: another file, `REVISION:path` in git, or a revision of the same path.
pub(super) fn diff(
    server: &Server,
    old: &str,
    new: &ConfinedPath,
    shows_outputs: bool,
) -> Result<Reply, Failure> {
    let report = compare_notebooks(&DiffRequest {
        old: old_side(server, old, new)?,
        new: DiffSide::File(new.file().clone()),
        git: Git::in_dir(server.roots().base_directory()?)
            .confined(Confinement::new(server.roots().paths())),
        scope: Scope::All,
        output_text: shows_outputs,
    })?;
    let mut text = format!("{}\n", report.summary());
    text.push_str(&wording::format_notices(&report.notices));
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
fn old_side(server: &Server, given: &str, new: &ConfinedPath) -> Result<DiffSide, Failure> {
    let roots = server.roots();
    let found = roots.resolve_file(given).ok();
    let found = found.filter(|place| place.path().symlink_metadata().is_ok());
    if let Some(place) = found {
        return Ok(DiffSide::File(place.file().clone()));
    }
    let Some((revision, path)) = given.split_once(':') else {
        return Ok(DiffSide::Revision {
            revision: given.to_owned(),
            path: new.file().clone(),
        });
    };
    let place = roots.resolve_file(path)?;
    let base = roots.base()?;
    let inside = place.display_path().strip_prefix(&base);
    let inside = inside.unwrap_or(place.display_path());
    Ok(DiffSide::Name(
        format!("{revision}:./{}", inside.display()).into(),
    ))
}
