//! How a server is started.

use super::engine::Engine;
use crate::tls::Authority;

/// Options of a server beyond its defaults.
#[derive(Clone, Default)]
pub struct GatewayOptions {
    pub(super) base_path: Option<String>,
    pub(super) password: Option<String>,
    pub(super) tls: Option<Tls>,
    pub(super) arguments: Vec<String>,
    pub(super) environment: Vec<(String, String)>,
}

/// The certificates of a server.
#[derive(Clone)]
pub(super) struct Tls {
    pub(super) authority: std::sync::Arc<Authority>,
    pub(super) requires_client: bool,
}

impl GatewayOptions {
    /// The defaults: a token, no base path, no TLS.
    pub fn new() -> Self {
        Self::default()
    }

    /// The path below which the server has its interface, such as `/base/x/`. `JupyterHub` puts it before `/user/NAME`.
    #[must_use]
    pub fn base_path(mut self, path: &str) -> Self {
        self.base_path = Some(format!("/{}/", path.trim_matches('/')).replace("//", "/"));
        self
    }

    /// A password in place of the token. Only for [`Engine::JupyterServer`].
    #[must_use]
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self
    }

    /// The server itself uses TLS, with a certificate of `authority` for `localhost` and `127.0.0.1`. With
    /// `requires_client`, clients need a certificate of `authority` too. Not for [`Engine::JupyterHub`].
    #[must_use]
    pub fn tls(mut self, authority: &std::sync::Arc<Authority>, requires_client: bool) -> Self {
        self.tls = Some(Tls {
            authority: std::sync::Arc::clone(authority),
            requires_client,
        });
        self
    }

    /// Another argument of the command line. `JupyterHub` passes it to the server of the user.
    #[must_use]
    pub fn argument(mut self, argument: &str) -> Self {
        self.arguments.push(argument.to_owned());
        self
    }

    /// A variable in the environment of the server.
    #[must_use]
    pub fn environment(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Fails for options that the engine does not have.
    pub(super) fn check(&self, engine: Engine) {
        assert!(
            self.password.is_none() || engine == Engine::JupyterServer,
            "{engine:?} has no password"
        );
        assert!(
            self.tls.is_none() || engine != Engine::JupyterHub,
            "use TlsFront before JupyterHub"
        );
    }
}
