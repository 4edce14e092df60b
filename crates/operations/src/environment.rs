//! The environment of the kernel of a request.

use cellwright_diagnostics::notice::{NoticeKind, UserNotice};
use cellwright_engine::env;
use cellwright_engine::environment::{EnvironmentPolicy, EnvironmentRequest};
use cellwright_engine::ipykernel::has_uv;
use cellwright_engine::kernels::filtered_env;
use cellwright_engine::settings::Settings;
use cellwright_execution::{ExecutionRequest, HintContext};

/// Requests the environment in the settings, which the selection of the kernel reads, and states it in the execution.
/// Adds notices about variables that do not exist.
pub(super) fn prepare(
    request: &EnvironmentRequest,
    settings: &mut Settings,
    execution: &mut ExecutionRequest,
    notices: &mut Vec<UserNotice>,
) {
    settings.request_environment(request.clone());
    let all = env::all();
    for (name, value) in &request.variables {
        let value = if value.is_some() {
            value.clone()
        } else {
            let own = all.iter().find(|(other, _)| other.to_str() == Some(name));
            if own.is_none() {
                let text = format!("the environment variable `{name}` is not set");
                notices.push(UserNotice::new(NoticeKind::VariablesNotSet, text));
            }
            own.and_then(|(_, value)| value.to_str().map(str::to_owned))
        };
        execution
            .env
            .extend(value.map(|value| (name.clone(), value)));
    }
    execution.hint_context = HintContext {
        withheld: filtered_env(settings).withheld,
        has_env_flag: request.policy != EnvironmentPolicy::Listed,
        has_uv: has_uv(),
    };
}
