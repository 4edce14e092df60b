//! Checks which environment variables kernels receive.

use cellwright_engine::environment::{EnvironmentPolicy, EnvironmentRequest};
use cellwright_engine::kernels::filtered_env;
use cellwright_engine::settings::Settings;

use crate::finding::{Finding, Severity};

/// Reports the rules, and the names that they withhold. Values are never reported.
pub(super) fn check(settings: &Settings, findings: &mut Vec<Finding>) {
    let withheld = |policy| {
        let mut settings = settings.clone();
        settings.request_environment(EnvironmentRequest {
            policy,
            variables: Vec::new(),
        });
        filtered_env(&settings).withheld
    };
    let secrets = withheld(EnvironmentPolicy::NoSecrets);
    let text = if secrets.is_empty() {
        "`run`, `check` and `eval` pass all variables to kernels; none looks like a secret"
            .to_owned()
    } else {
        format!(
            "`run`, `check` and `eval` pass all variables to kernels except those that look like secrets or are in \
             `env.deny`, now: {}",
            secrets.join(", ")
        )
    };
    let finding = Finding::new(Severity::Ok, "environment", text);
    findings.push(if secrets.is_empty() {
        finding
    } else {
        finding
            .next("`--env NAME` passes one of them, `--env-all` all; `env.pass` passes it always")
    });
    let others = withheld(EnvironmentPolicy::Listed);
    let text = if others.is_empty() {
        "kernels of the MCP server receive all of these variables, too".to_owned()
    } else {
        format!(
            "kernels of the MCP server receive only variables that programs need; withheld now: {}",
            others.join(", ")
        )
    };
    findings.push(Finding::new(Severity::Ok, "environment-mcp", text));
}
