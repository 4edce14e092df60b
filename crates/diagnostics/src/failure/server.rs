//! Failures of Jupyter servers: not reachable, credentials rejected, kernel gone, server restarted, and others.

use cellwright_gateway::ServerError;

use super::{Failure, Hint, Kind, capitalize, command, flag, flag_value, hint};

impl From<ServerError> for Failure {
    fn from(error: ServerError) -> Self {
        let mut failure = Self::new(kind(&error), message(&error));
        match &error {
            ServerError::Certificate { .. } => failure
                .hint("the keys `ca`, `client_cert` and `client_key` of a server name PEM files"),
            ServerError::BadHeader { .. } => failure.hint(
                "look for line ends and characters outside of ASCII in the file or the setting",
            ),
            ServerError::Unreachable {
                problem,
                certificate,
                ..
            } => {
                if *certificate {
                    failure.causes.push(problem.clone());
                    return failure
                        .hint(
                            "if a private authority has signed it, name the PEM file of that authority as `ca` of the table \
                             `[server.NAME]`, or in JUPYTER_GATEWAY_CA_CERTS",
                        )
                        .hint("the host in the URL must be one that the certificate names");
                }
                failure.hint(doctor_hint())
            }
            ServerError::Timeout { request, after, .. } => {
                failure.causes.push(format!(
                    "no answer to `{request}` within {} s",
                    after.as_secs_f64()
                ));
                failure
                    .hint("`request_timeout` of the table `[server.NAME]` sets the time limit of a request")
                    .hint(doctor_hint())
            }
            ServerError::Unauthorized {
                name,
                has_credentials,
                message,
                status,
                ..
            } => {
                let message = Some(message).filter(|message| !message.is_empty());
                let status = format!("status {status}");
                failure.causes.push(match message {
                    Some(message) => format!("{status}: {message}"),
                    None => status,
                });
                if *has_credentials {
                    failure
                        .causes
                        .push("the token or password is wrong, or lacks the permission".to_owned());
                }
                failure.hint(token_hint(name.as_deref()))
            }
            ServerError::KernelGone { .. } => failure.hint(hint![
                "another client, or the server, has ended it: its variables are lost; ",
                command("kernels list --gateway NAME"),
                " lists the kernels of a server",
            ]),
            ServerError::ServerRestarted { .. } => {
                failure.hint("its variables are lost; the next call starts a kernel")
            }
            ServerError::Status {
                status,
                request,
                message,
                ..
            } => {
                let message = Some(message).filter(|message| !message.is_empty());
                failure.causes.push(match message {
                    Some(message) => format!("`{request}`: {message}"),
                    None => format!("the request was `{request}`"),
                });
                match status {
                    404 => failure.hint(base_path_hint()),
                    300..=399 => failure.hint(
                        "the URL of the server may be another one: see where it redirects to",
                    ),
                    429 => failure.hint("the server limits requests or kernels; try again later"),
                    _ => failure
                        .hint("the log of the server has the reason")
                        .hint(doctor_hint()),
                }
            }
            ServerError::NotJupyter { .. } => failure.hint(base_path_hint()),
            _ => failure,
        }
    }
}

fn kind(error: &ServerError) -> Kind {
    match error {
        ServerError::Certificate { .. } | ServerError::BadHeader { .. } => Kind::BadSettings,
        ServerError::Unreachable { .. } | ServerError::Timeout { .. } => Kind::ServerUnreachable,
        ServerError::Unauthorized { .. } => Kind::ServerUnauthorized,
        ServerError::KernelGone { .. } => Kind::KernelGone,
        ServerError::ServerRestarted { .. } => Kind::ServerRestarted,
        _ => Kind::ServerRefused,
    }
}

/// The sentences of other tools keep their form.
fn message(error: &ServerError) -> String {
    match error {
        ServerError::Unreachable {
            server,
            certificate: true,
            ..
        } => format!(
            "External gateway at {server} is not reachable: its certificate is not accepted"
        ),
        ServerError::Unreachable {
            server, problem, ..
        } => format!("External gateway at {server} is not reachable: {problem}"),
        ServerError::Timeout { server, .. } => {
            format!("External gateway at {server} is not reachable (timeout)")
        }
        ServerError::Unauthorized { server, .. } => {
            format!("External gateway at {server} requires authentication")
        }
        ServerError::Status {
            server,
            request,
            status,
            ..
        } if request.starts_with("POST") && request.ends_with("api/kernels") => {
            format!(
                "Failed to create kernel on external gateway: {server} returned status {status}"
            )
        }
        ServerError::Status { server, status, .. } => {
            format!("External gateway at {server} returned status {status}")
        }
        error => capitalize(&error.to_string()),
    }
}

fn token_hint(name: Option<&str>) -> Hint {
    match name {
        Some(name) => format!(
            "name a file with its token as `token_file` of the table `[server.{name}]` in your settings"
        )
        .into(),
        None => hint![
            "set CELLWRIGHT_GATEWAY_TOKEN, or name a file with the token as `token_file` of a table `[server.NAME]` in your \
             settings and use ",
            flag_value("gateway", "NAME"),
        ],
    }
}

fn base_path_hint() -> Hint {
    "the URL must be that of the server with its base path, such as `https://hub.example/user/NAME/`; `/api` below it must answer".into()
}

fn doctor_hint() -> Hint {
    hint![
        command("doctor"),
        " with ",
        flag("gateway"),
        " checks the server"
    ]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn failures() -> Vec<Failure> {
        let server = || "http://127.0.0.1:1/".to_owned();
        let kernel = || "abc".to_owned();
        [
            ServerError::Unreachable {
                server: server(),
                problem: "Connection refused".to_owned(),
                certificate: false,
            },
            ServerError::Unauthorized {
                server: server(),
                name: None,
                status: 403,
                has_credentials: false,
                message: "Forbidden".to_owned(),
            },
            ServerError::KernelGone {
                server: server(),
                kernel: kernel(),
            },
            ServerError::ServerRestarted {
                server: server(),
                kernel: kernel(),
            },
            ServerError::Timeout {
                server: server(),
                request: "POST api/kernels".to_owned(),
                after: Duration::from_secs(20),
            },
        ]
        .map(Failure::from)
        .into()
    }

    #[test]
    fn each_loss_of_a_kernel_has_a_kind_of_its_own() {
        let kinds: Vec<Kind> = failures().iter().map(|failure| failure.kind).collect();
        assert_eq!(
            kinds,
            [
                Kind::ServerUnreachable,
                Kind::ServerUnauthorized,
                Kind::KernelGone,
                Kind::ServerRestarted,
                Kind::ServerUnreachable,
            ]
        );
        for failure in failures() {
            assert_eq!(failure.exit_code(), 2);
            assert!(!failure.hints.is_empty(), "{}", failure.message);
        }
    }

    #[test]
    fn a_missing_token_is_explained() {
        let failure = &failures()[1];
        assert_eq!(
            failure.message,
            "External gateway at http://127.0.0.1:1/ requires authentication"
        );
        assert_eq!(failure.causes, ["status 403: Forbidden"]);
        let hint = failure.hints[0].for_command_line();
        assert!(hint.contains("CELLWRIGHT_GATEWAY_TOKEN"), "{hint}");
    }

    #[test]
    fn a_time_limit_names_the_phase() {
        let failure = &failures()[4];
        assert_eq!(
            failure.causes,
            ["no answer to `POST api/kernels` within 20 s"]
        );
    }
}
