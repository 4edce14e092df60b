//! [`Finding`]: a result of a check, with a severity and a next step.

use cellwright_stdext::secret::redact;
use schemars::JsonSchema;
use serde::Serialize;

/// A result of a check.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Finding {
    /// Stable name, such as `no-python`.
    pub code: &'static str,
    /// Severity of the finding.
    #[serde(rename = "level")]
    pub severity: Severity,
    /// What was found.
    pub text: String,
    /// What to do about it.
    pub next: Option<String>,
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Nothing to do.
    Ok,
    /// Information only.
    Note,
    /// Something does not work as intended.
    Warning,
    /// Code cannot run, or the setup is incomplete.
    Error,
}

impl Severity {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl Finding {
    /// A finding without a next step. Credentials are removed from the text.
    pub fn new(severity: Severity, code: &'static str, text: impl Into<String>) -> Self {
        Self {
            code,
            severity,
            text: redact(&text.into()).into_owned(),
            next: None,
        }
    }

    /// Adds the next step.
    #[must_use]
    pub fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(redact(&next.into()).into_owned());
        self
    }
}
