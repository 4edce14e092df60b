//! `git setup --check`: what is set up, and what is missing.

use serde::Serialize;

use super::attributes;
use super::settings::{self, Purpose};
use super::setup::Place;
use crate::console::{Console, Severity};
use crate::failure::Failure;

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Finding {
    code: &'static str,
    #[serde(rename = "status")]
    mark: &'static str,
    text: String,
    next: Option<String>,
    #[serde(skip)]
    shown: Severity,
}

/// Looks, tells, and says the exit code.
pub(super) fn check(place: &Place, screen: &Console) -> Result<u8, Failure> {
    let findings = findings(place)?;
    let is_well = findings
        .iter()
        .all(|finding| finding.shown != Severity::Error);
    if screen.json {
        screen.print_json(&serde_json::json!({ "ok": is_well, "findings": findings }))?;
    } else {
        for finding in &findings {
            let next = finding.next.as_deref();
            screen.print_finding(finding.shown, finding.code, &finding.text, next)?;
        }
    }
    Ok(u8::from(!is_well))
}

fn findings(place: &Place) -> Result<Vec<Finding>, Failure> {
    let in_use = attributes_in_use(place)?;
    let mut findings = Vec::new();
    for (purpose, code, attribute) in [
        (Purpose::Diff, "diff", "diff"),
        (Purpose::Merge, "merge", "merge"),
        (Purpose::Clean, "clean", "filter"),
    ] {
        findings.push(finding(place, purpose, code, attribute, &in_use)?);
    }
    Ok(findings)
}

/// Whether git sends notebooks here for one purpose, and knows what to call.
fn finding(
    place: &Place,
    purpose: Purpose,
    code: &'static str,
    attribute: &str,
    in_use: &[(String, String)],
) -> Result<Finding, Failure> {
    let value_of = |attribute: &str| {
        let found = in_use.iter().find(|(name, _)| name == attribute);
        found.map(|(_, value)| value.as_str())
    };
    let value = value_of(attribute);
    let is_sent = value == Some("cellwright");
    let flag = if purpose == Purpose::Clean {
        " --clean"
    } else {
        ""
    };
    let next = Some(format!("cellwright git setup{flag}"));
    if !is_sent {
        let value = value.unwrap_or("unspecified");
        let text = format!("for *.ipynb the attribute `{attribute}` is {value}");
        let is_optional = purpose == Purpose::Clean;
        return Ok(if is_optional {
            Finding::new(
                Severity::Note,
                code,
                format!("outputs are committed: {text}"),
                next,
            )
        } else {
            Finding::new(Severity::Error, code, text, next)
        });
    }
    let clean = value_of("filter") == Some("cellwright");
    for entry in settings::entries(&settings::own_name()?, clean) {
        if entry.purpose != purpose {
            continue;
        }
        // Whatever git would use, from whichever file.
        let found = place.git.answer(["config", "--get", entry.key])?.ok();
        let text = match found {
            Some(value) if value == entry.value => continue,
            Some(value) => format!("`{}` is `{value}`, not `{}`", entry.key, entry.value),
            None => format!("`{}` is not set", entry.key),
        };
        return Ok(Finding::new(Severity::Error, code, text, next));
    }
    let text = match purpose {
        Purpose::Diff => "git diff shows notebooks as text",
        Purpose::Merge => "git merge puts notebooks together by cell",
        Purpose::Clean => "outputs stay out of what is committed",
    };
    Ok(Finding::new(Severity::Ok, code, text.to_owned(), None))
}

impl Finding {
    fn new(shown: Severity, code: &'static str, text: String, next: Option<String>) -> Self {
        Self {
            code,
            mark: match shown {
                Severity::Ok => "ok",
                Severity::Note => "note",
                Severity::Warning => "warning",
                Severity::Error => "failed",
            },
            text,
            next,
            shown,
        }
    }
}

/// The attributes that git uses for notebooks here, whichever file they come from. Outside of a
/// repository, those of the file that counts for all.
pub(super) fn attributes_in_use(place: &Place) -> Result<Vec<(String, String)>, Failure> {
    let names = ["diff", "merge", "filter"];
    let arguments = ["check-attr"]
        .iter()
        .chain(&names)
        .chain(&["--", "x.ipynb"]);
    let answer = place.git.answer(arguments)?;
    if let Ok(answer) = answer {
        let found = answer.lines().filter_map(|line| {
            let (name, value) = line.strip_prefix("x.ipynb: ")?.split_once(": ")?;
            Some((name.to_owned(), value.to_owned()))
        });
        return Ok(found.collect());
    }
    let content = place.content()?.unwrap_or_default();
    let found = attributes::found(&content);
    let value = |name: &str| match found {
        Some(clean) if clean || name != "filter" => "cellwright",
        _ => "unspecified",
    };
    Ok(names
        .iter()
        .map(|name| ((*name).to_owned(), value(name).to_owned()))
        .collect())
}
