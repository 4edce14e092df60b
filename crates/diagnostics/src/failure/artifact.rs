//! Failures of artifacts.

use cellwright_output::{ArtifactError, ArtifactId};

use super::{Failure, Kind, command, hint};

impl From<ArtifactError> for Failure {
    fn from(error: ArtifactError) -> Self {
        let failure = Self::new(Kind::BadArguments, error.to_string());
        match error {
            ArtifactError::Missing { available, .. } if available.is_empty() => {
                failure.hint("this project has no artifacts")
            }
            ArtifactError::Missing { available, .. } => {
                let last = &available[available.len().saturating_sub(10)..];
                let names: Vec<String> = last.iter().map(ArtifactId::to_string).collect();
                failure.hint(format!("available: {}", names.join(", ")))
            }
            ArtifactError::OtherProject { .. } => failure.hint(hint![
                command("artifact list"),
                " lists the artifacts of this project"
            ]),
            _ => failure,
        }
    }
}
