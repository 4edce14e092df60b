//! Checks a Jupyter server: address, credentials, kernels, one round trip, and what the server restricts.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cellwright_diagnostics::failure::{Failure, Hint};
use cellwright_engine::engine::Engine;
use cellwright_engine::kernels;
use cellwright_engine::runtime;
use cellwright_engine::servers::{self, ResolvedServer, ServerChoice};
use cellwright_engine::settings::Settings;
use cellwright_gateway::{RemoteKernelspecs, ServerClient, ServerError};
use cellwright_kernel::backend::jupyter::gateway::{FileAccess, GatewaySpec, GatewayTarget};
use cellwright_kernel::{Kernel, KernelError, KernelSpec, Request, StopSignal};
use cellwright_output::{Capture, Limits};

use super::message_with_causes;
use crate::finding::{Finding, Severity};
use crate::table::count;

/// The variable that shows whether the server sets variables of clients.
const PROBE_VARIABLE: &str = "CELLWRIGHT_PROBE";

/// More than Jupyter's servers send in their window of three seconds if they limit the rate.
const PROBE_OUTPUT_SIZE: usize = 4 << 20;

/// How long the kernel of the check may take to end.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// Checks a server.
pub(super) fn check(
    choice: &ServerChoice,
    cwd: &Path,
    engine: &Engine,
    settings: &Settings,
    findings: &mut Vec<Finding>,
) -> Result<(), Failure> {
    let resolved = match servers::resolve(settings, choice) {
        Ok(resolved) => resolved,
        Err(failure) => {
            findings.push(problem("server-settings", &failure));
            return Ok(());
        }
    };
    for notice in &resolved.notices {
        let text = notice.text.clone();
        findings.push(Finding::new(Severity::Warning, "server-credentials", text));
    }
    let client = match ServerClient::new(Arc::new(resolved.server.clone())) {
        Ok(client) => client,
        Err(error) => {
            findings.push(problem("server-settings", &error.into()));
            return Ok(());
        }
    };
    let Some(installed) = runtime::block_on(check_server(&client, findings))? else {
        return Ok(());
    };
    check_kernel(&resolved, &installed, cwd, engine, settings, findings)
}

/// Checks what needs no kernel. Returns the installed kernels if the server can be used.
async fn check_server(
    client: &ServerClient,
    findings: &mut Vec<Finding>,
) -> Option<RemoteKernelspecs> {
    let label = client.server().label();
    let version = match client.version().await {
        Ok(version) => version,
        // The next request tells.
        Err(ServerError::Unauthorized { .. }) => None,
        Err(error) => {
            findings.push(problem("server", &error.into()));
            return None;
        }
    };
    let installed = match client.kernelspecs().await {
        Ok(installed) => installed,
        Err(error) => {
            if matches!(error, ServerError::Unauthorized { .. }) {
                findings.push(ok("server", format!("{label} answers")));
            }
            findings.push(problem("server-token", &error.into()));
            return None;
        }
    };
    // Gateways do not report their state.
    let program = match client.status().await {
        Ok(Some(_)) => "Jupyter Server",
        _ => "a gateway",
    };
    let version = version.map_or_else(String::new, |version| format!(" {version}"));
    findings.push(ok("server", format!("{label} is {program}{version}")));
    findings.push(ok(
        "server-token",
        "the credentials are accepted".to_owned(),
    ));
    let names = installed.kernelspecs.iter();
    let names: Vec<&str> = names.map(|kernelspec| kernelspec.name.as_str()).collect();
    findings.push(if names.is_empty() {
        Finding::new(
            Severity::Error,
            "server-kernels",
            "no kernel is installed on the server",
        )
        .next("install one there, such as ipykernel")
    } else {
        let default = installed.default.as_deref().unwrap_or("none");
        let text = format!(
            "{}: {}; default: {default}",
            count(names.len(), "kernel"),
            names.join(", ")
        );
        ok("server-kernels", text)
    });
    findings.push(check_list(client).await);
    (!names.is_empty()).then_some(installed)
}

/// Checks whether the server lists its kernels.
async fn check_list(client: &ServerClient) -> Finding {
    match client.kernels().await {
        Ok(kernels) => {
            let text = format!("{} are running there", count(kernels.len(), "kernel"));
            ok("server-list", text)
        }
        Err(ServerError::Unauthorized { .. }) => Finding::new(
            Severity::Note,
            "server-list",
            "the server does not list its kernels",
        )
        .next("`--existing` needs the whole id of a kernel; a Kernel Gateway has the option `list_kernels`"),
        Err(error) => {
            let finding = problem("server-list", &error.into());
            Finding {
                severity: Severity::Warning,
                ..finding
            }
        }
    }
}

/// Starts a kernel, runs cells and ends it.
fn check_kernel(
    resolved: &ResolvedServer,
    installed: &RemoteKernelspecs,
    cwd: &Path,
    engine: &Engine,
    settings: &Settings,
    findings: &mut Vec<Finding>,
) -> Result<(), Failure> {
    let name = resolved.kernel.as_deref().or(installed.default.as_deref());
    let named = name.and_then(|name| installed.find(name));
    let is_python =
        named.is_none_or(|kernelspec| kernelspec.language.eq_ignore_ascii_case("python"));
    let timeout = settings.kernel.start_timeout;
    let spec = KernelSpec::Gateway(GatewaySpec {
        server: Box::new(resolved.server.clone()),
        target: GatewayTarget::Start {
            kernelspec: resolved.kernel.clone(),
            env: vec![(PROBE_VARIABLE.to_owned(), "1".to_owned())],
            prelude: false,
        },
        files: FileAccess::OtherMachine,
        local: None,
        start_timeout: timeout,
        interrupt_grace: settings.kernel.interrupt_grace,
    });
    let context = kernels::launch_context(engine, cwd.to_owned());
    let result = runtime::block_on(async {
        let start = Instant::now();
        let mut kernel = spec.start(&context, &StopSignal::never()).await?;
        let started = start.elapsed();
        let measured = if is_python {
            measure(kernel.as_mut()).await
        } else {
            Ok(None)
        };
        kernel
            .shutdown(StopSignal::never().with_timeout(END_TIMEOUT))
            .await;
        Ok::<_, KernelError>((started, measured?))
    })?;
    match result {
        Ok((started, measured)) => {
            let text = format!("a kernel was ready after {} ms", started.as_millis());
            findings.push(ok("server-kernel", text));
            findings.extend(measured.map(describe).unwrap_or_default());
        }
        Err(error) => findings.push(problem("server-kernel", &error.into())),
    }
    Ok(())
}

/// What cells on the server have shown.
struct Measurement {
    round_trip: Duration,
    /// The reply to 6 * 7.
    reply: String,
    sets_variables: bool,
    limits_rate: bool,
    cwd: String,
}

async fn measure(kernel: &mut dyn Kernel) -> Result<Option<Measurement>, KernelError> {
    let start = Instant::now();
    let reply = run(kernel, "6 * 7").await?;
    let round_trip = start.elapsed();
    let code = format!("import os; print(os.environ.get({PROBE_VARIABLE:?}), os.getcwd())");
    let place = run(kernel, &code).await?;
    let place = place.trim();
    let (variable, cwd) = place.split_once(' ').unwrap_or((place, ""));
    // A limit applies to what a cell sends within seconds.
    let code = format!(
        "import sys; sys.stdout.write(('x' * 79 + chr(10)) * {})",
        PROBE_OUTPUT_SIZE / 80
    );
    let output = run(kernel, &code).await?;
    Ok(Some(Measurement {
        round_trip,
        reply,
        sets_variables: variable == "1",
        limits_rate: output.contains("rate exceeded"),
        cwd: cwd.to_owned(),
    }))
}

async fn run(kernel: &mut dyn Kernel, code: &str) -> Result<String, KernelError> {
    let mut capture = Capture::new(Limits::default(), None);
    let request = Request::new(code);
    kernel
        .execute(&request, &mut capture, &StopSignal::never())
        .await?;
    Ok(capture.finish().text)
}

fn describe(measured: Measurement) -> Vec<Finding> {
    let Measurement {
        round_trip,
        reply,
        sets_variables,
        limits_rate,
        cwd,
    } = measured;
    let mut findings = Vec::new();
    findings.push(if reply.trim() == "42" {
        let milliseconds = round_trip.as_secs_f64() * 1000.0;
        ok(
            "server-round-trip",
            format!("a cell takes {milliseconds:.1} ms there and back"),
        )
    } else {
        let text = format!("the kernel prints `{}` for 6 * 7", reply.trim());
        Finding::new(Severity::Error, "server-round-trip", text)
            .next("look at the log of the server")
    });
    if !cwd.is_empty() {
        findings.push(ok(
            "server-directory",
            format!("kernels start in {cwd} on the server"),
        ));
    }
    findings.push(if sets_variables {
        ok(
            "server-variables",
            "the server sets the variables of `env` and `--env` for kernels".to_owned(),
        )
    } else {
        Finding::new(
            Severity::Note,
            "server-variables",
            "the server does not set variables that clients send",
        )
        .next("set them in the code; a Kernel Gateway has the option `allowed_envs`")
    });
    findings.push(if limits_rate {
        Finding::new(
            Severity::Warning,
            "server-rate",
            "the server drops output that a cell sends faster than its limit",
        )
        .next("raise `iopub_data_rate_limit` on the server, or set `ZMQChannelsWebsocketConnection.limit_rate=False` there")
    } else {
        ok("server-rate", "the server does not drop fast output".to_owned())
    });
    findings
}

fn ok(code: &'static str, text: String) -> Finding {
    Finding::new(Severity::Ok, code, text)
}

fn problem(code: &'static str, failure: &Failure) -> Finding {
    let mut hints = failure.hints.iter();
    let next = hints.find(|hint| !hint.names_command("doctor"));
    Finding {
        next: next.map(Hint::for_command_line),
        ..Finding::new(Severity::Error, code, message_with_causes(failure))
    }
}
