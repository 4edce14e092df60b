//! Checks the setup of git: what is set up, and what is missing.

use cellwright_diagnostics::failure::Failure;
use schemars::JsonSchema;
use serde::Serialize;

use super::attributes;
use super::settings::{self, Purpose};
use super::setup::SetupTarget;
use crate::finding::{Finding, Severity};

/// The result of a check.
#[derive(Debug)]
pub struct SetupCheck {
    /// One finding for each of diff, merge and clean.
    pub findings: Vec<Finding>,
}

impl SetupCheck {
    /// Whether nothing is missing.
    pub fn is_complete(&self) -> bool {
        let is_error = |finding: &Finding| finding.severity == Severity::Error;
        !self.findings.iter().any(is_error)
    }
}

/// The result of a check in `--json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SetupCheckReport {
    /// Whether nothing is missing.
    ok: bool,
    /// One finding for each of diff, merge and clean.
    findings: Vec<Finding>,
}

impl From<SetupCheck> for SetupCheckReport {
    fn from(check: SetupCheck) -> Self {
        Self {
            ok: check.is_complete(),
            findings: check.findings,
        }
    }
}

pub(super) fn check(target: &SetupTarget) -> Result<SetupCheck, Failure> {
    let in_use = attributes_in_use(target)?;
    let mut findings = Vec::new();
    for (purpose, code, attribute) in [
        (Purpose::Diff, "diff", "diff"),
        (Purpose::Merge, "merge", "merge"),
        (Purpose::Clean, "clean", "filter"),
    ] {
        findings.push(check_purpose(target, purpose, code, attribute, &in_use)?);
    }
    Ok(SetupCheck { findings })
}

/// Whether git runs this program on notebooks for one purpose: by its attributes, and by its configuration.
fn check_purpose(
    target: &SetupTarget,
    purpose: Purpose,
    code: &'static str,
    attribute: &str,
    in_use: &[(String, String)],
) -> Result<Finding, Failure> {
    let value_of = |attribute: &str| {
        let found = in_use.iter().find(|(name, _)| name == attribute);
        found.map(|(_, value)| value.as_str())
    };
    let next = match purpose {
        Purpose::Diff | Purpose::Merge => "cellwright git setup",
        Purpose::Clean => "cellwright git setup --clean",
    };
    let value = value_of(attribute).unwrap_or("unspecified");
    if value != "cellwright" {
        let text = format!("for *.ipynb the attribute `{attribute}` is {value}");
        // The filter is optional.
        let finding = match purpose {
            Purpose::Diff | Purpose::Merge => Finding::new(Severity::Error, code, text),
            Purpose::Clean => {
                let text = format!("outputs are committed: {text}");
                Finding::new(Severity::Note, code, text)
            }
        };
        return Ok(finding.next(next));
    }
    let clean = value_of("filter") == Some("cellwright");
    for entry in settings::entries(&settings::program_name()?, clean) {
        if entry.purpose != purpose {
            continue;
        }
        // The value that git uses, from any of its files.
        let found = target.git.try_run(["config", "--get", entry.key])?.ok();
        let text = match found {
            Some(value) if value == entry.value => continue,
            Some(value) => format!("`{}` is `{value}`, not `{}`", entry.key, entry.value),
            None => format!("`{}` is not set", entry.key),
        };
        return Ok(Finding::new(Severity::Error, code, text).next(next));
    }
    let text = match purpose {
        Purpose::Diff => "git diff shows notebooks as text",
        Purpose::Merge => "git merge merges notebooks by cell",
        Purpose::Clean => "outputs are not committed",
    };
    Ok(Finding::new(Severity::Ok, code, text))
}

/// The attributes that git uses for notebooks, from any of its files. Outside of a repository, those of the file for all
/// repositories.
pub(super) fn attributes_in_use(target: &SetupTarget) -> Result<Vec<(String, String)>, Failure> {
    let names = ["diff", "merge", "filter"];
    if let Ok(output) = target.git.check_attr(&names, "x.ipynb")? {
        let found = output.lines().filter_map(|line| {
            let (name, value) = line.strip_prefix("x.ipynb: ")?.split_once(": ")?;
            Some((name.to_owned(), value.to_owned()))
        });
        return Ok(found.collect());
    }
    let content = target.read_attributes()?.unwrap_or_default();
    let has_filter = attributes::find_line(&content);
    let value = |name: &str| match has_filter {
        Some(clean) if clean || name != "filter" => "cellwright",
        _ => "unspecified",
    };
    Ok(names
        .iter()
        .map(|name| ((*name).to_owned(), value(name).to_owned()))
        .collect())
}
