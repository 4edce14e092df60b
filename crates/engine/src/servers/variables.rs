//! The variables of Jupyter that describe a gateway, and those that name proxies.

use std::path::PathBuf;
use std::time::Duration;

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_gateway::{ProxyOptions, Secret, Server};
use serde_json::{Map, Value};

use crate::env;

/// The proxies that the environment names.
pub(super) fn proxy() -> ProxyOptions {
    let first = |names: &[&str]| names.iter().find_map(|name| text(name));
    ProxyOptions {
        http: first(&[
            env::HTTP_PROXY_LOWER,
            env::HTTP_PROXY,
            env::ALL_PROXY_LOWER,
            env::ALL_PROXY,
        ]),
        https: first(&[
            env::HTTPS_PROXY_LOWER,
            env::HTTPS_PROXY,
            env::ALL_PROXY_LOWER,
            env::ALL_PROXY,
        ]),
        no_proxy: first(&[env::NO_PROXY_LOWER, env::NO_PROXY]),
    }
}

/// The word before the token in the header `Authorization`.
pub(super) fn auth_scheme() -> Option<String> {
    text(env::JUPYTER_GATEWAY_AUTH_SCHEME)
}

/// Applies the variables of Jupyter to the server that they are for; `env` receives the names of variables to pass.
pub(super) fn apply(server: &mut Server, env: &mut Vec<String>) -> Result<(), Failure> {
    let path = |name| env::value(name).map(PathBuf::from);
    if let Some(validate) = text(env::JUPYTER_GATEWAY_VALIDATE_CERT)
        && ["no", "false", "0"].contains(&validate.to_lowercase().as_str())
    {
        let failure = bad(
            env::JUPYTER_GATEWAY_VALIDATE_CERT,
            "certificates are always verified",
        );
        return Err(failure.hint(format!(
            "name the certificate authority of the server in {}, or as `ca` of a table `[server.NAME]`",
            env::JUPYTER_GATEWAY_CA_CERTS
        )));
    }
    server.tls.ca = path(env::JUPYTER_GATEWAY_CA_CERTS);
    server.tls.client_cert = path(env::JUPYTER_GATEWAY_CLIENT_CERT);
    server.tls.client_key = path(env::JUPYTER_GATEWAY_CLIENT_KEY);
    if let Some(json) = text(env::JUPYTER_GATEWAY_HEADERS) {
        let expected = || {
            bad(
                env::JUPYTER_GATEWAY_HEADERS,
                "expected a JSON object such as {\"X-Name\": \"value\"}",
            )
        };
        let headers: Map<String, Value> = serde_json::from_str(&json).map_err(|_| expected())?;
        for (name, value) in headers {
            let value = value.as_str().ok_or_else(expected)?;
            server.headers.push((name, Secret::new(value)));
        }
    }
    for name in [
        env::JUPYTER_GATEWAY_REQUEST_TIMEOUT,
        env::JUPYTER_GATEWAY_CONNECT_TIMEOUT,
    ] {
        if let Some(seconds) = text(name) {
            let time = seconds.trim().parse().ok();
            let time = time.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            let time = time.filter(|time| !time.is_zero());
            server.request_timeout =
                time.ok_or_else(|| bad(name, "expected a number of seconds"))?;
            break;
        }
    }
    let names = text(env::JUPYTER_GATEWAY_ALLOWED_ENVS)
        .or_else(|| text(env::JUPYTER_GATEWAY_ENV_WHITELIST))
        .unwrap_or_default();
    let names = names
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty());
    env.extend(names.map(str::to_owned));
    Ok(())
}

fn text(name: &str) -> Option<String> {
    env::value(name)?.into_string().ok()
}

fn bad(variable: &str, cause: &str) -> Failure {
    let message = format!("Bad value of the environment variable {variable}");
    let mut failure = Failure::new(Kind::BadSettings, message);
    failure.causes.push(cause.to_owned());
    failure.hint(format!("change it, or `unset {variable}`"))
}
