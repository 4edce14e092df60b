//! [`KernelSpec`]: which kernel to start or to attach to. [`KernelId`] identifies it.
//!
//! A new backend is a variant of each enum here, and a file in `backend/`.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::backend::jupyter::gateway::{self, GatewaySpec, GatewayTarget};
use crate::backend::jupyter::{AttachedSpec, IdentifiedBy, Jupyter, JupyterSpec};
use crate::backend::runner::{Runner, RunnerSpec};
use crate::backend::{jupyter, runner};
use crate::error::KernelError;
use crate::kernel::Kernel;
use crate::launch_context::LaunchContext;
use crate::stop::StopSignal;

/// Which kernel to start or to attach to, and how. A process can send it to another one, which starts the kernel with
/// its own [`LaunchContext`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KernelSpec {
    /// The built-in runner.
    Runner(RunnerSpec),
    /// A Jupyter kernel to start.
    Jupyter(JupyterSpec),
    /// A running Jupyter kernel, which keeps running after the session.
    Attached(AttachedSpec),
    /// A kernel on a Jupyter server.
    Gateway(GatewaySpec),
}

impl KernelSpec {
    /// Identifies the kernel.
    pub fn id(&self) -> KernelId {
        match self {
            Self::Runner(spec) => KernelId::Runner {
                python: spec.python.clone(),
            },
            Self::Jupyter(spec) => {
                let by = spec.identified_by;
                let name = (by != IdentifiedBy::Python).then(|| spec.kernelspec.name.clone());
                let python = spec.python.clone();
                KernelId::Jupyter {
                    kernelspec: name,
                    python: python.filter(|_| by != IdentifiedBy::Kernelspec),
                }
            }
            Self::Attached(spec) => KernelId::Attached {
                connection_file: spec.connection_file.clone(),
            },
            Self::Gateway(spec) if let Some(local) = &spec.local => KernelId::Gateway {
                // Its address changes whenever it is started.
                server: gateway::LOCAL.to_owned(),
                kernelspec: Some(local.kernel.clone()),
                existing: None,
            },
            Self::Gateway(spec) => {
                let (kernelspec, existing) = match &spec.target {
                    GatewayTarget::Start { kernelspec, .. } => (kernelspec.clone(), None),
                    GatewayTarget::Existing { id } => (None, Some(id.clone())),
                };
                KernelId::Gateway {
                    server: spec.server.url.to_string(),
                    kernelspec,
                    existing,
                }
            }
        }
    }

    /// The backend that drives the kernel.
    pub fn backend(&self) -> Backend {
        match self {
            Self::Runner(_) => Backend::Runner,
            Self::Jupyter(_) | Self::Attached(_) => Backend::Jupyter,
            Self::Gateway(_) => Backend::Gateway,
        }
    }

    /// The environment variables that the kernel starts with. Empty for a kernel that another program started.
    pub fn env(&self) -> &[(OsString, OsString)] {
        match self {
            Self::Runner(spec) => &spec.env,
            Self::Jupyter(spec) => &spec.env,
            // The server decides which variables it sets.
            Self::Attached(_) => &[],
            Self::Gateway(spec) => spec.local.as_ref().map_or(&[], |local| &local.env),
        }
    }

    /// How long the kernel may take to start.
    pub fn start_timeout(&self) -> Duration {
        match self {
            Self::Runner(spec) => spec.start_timeout,
            Self::Jupyter(spec) => spec.start_timeout,
            Self::Attached(spec) => spec.start_timeout,
            Self::Gateway(spec) => spec.start_timeout,
        }
    }

    /// Starts the kernel or attaches to it, and waits until it is ready.
    pub async fn start(
        &self,
        context: &LaunchContext,
        stop: &StopSignal,
    ) -> Result<Box<dyn Kernel>, KernelError> {
        Ok(match self {
            Self::Runner(spec) => Box::new(Runner::start(spec, context, stop).await?),
            Self::Jupyter(spec) => Box::new(Jupyter::start(spec, context, stop).await?),
            Self::Attached(spec) => Box::new(Jupyter::attach(spec, context, stop).await?),
            Self::Gateway(spec) => Box::new(Jupyter::start_on_gateway(spec, context, stop).await?),
        })
    }
}

/// Identifies a kernel among all kernels that a user can select. The text form is for users.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KernelId {
    /// The built-in runner.
    Runner {
        /// The interpreter.
        python: PathBuf,
    },
    /// A Jupyter kernel that Cellwright starts.
    Jupyter {
        /// The name of the kernelspec. `None`: ipykernel.
        kernelspec: Option<String>,
        /// The interpreter, if it matters which one starts the kernel.
        python: Option<PathBuf>,
    },
    /// A Jupyter kernel that another program started.
    Attached {
        /// Its connection file.
        connection_file: PathBuf,
    },
    /// A kernel on a Jupyter server.
    Gateway {
        /// The URL of the server, or `local` for the shared gateway of this user.
        server: String,
        /// The name of the kernelspec. `None`: the server's default.
        kernelspec: Option<String>,
        /// The id of a kernel that another program started.
        existing: Option<String>,
    },
}

impl KernelId {
    /// Whether another program started the kernel. Cellwright cannot replace such a kernel.
    pub fn is_attached(&self) -> bool {
        match self {
            Self::Runner { .. } | Self::Jupyter { .. } => false,
            Self::Attached { .. } => true,
            Self::Gateway { existing, .. } => existing.is_some(),
        }
    }

    /// The interpreter, if it is part of the identity.
    pub fn python(&self) -> Option<&Path> {
        match self {
            Self::Runner { python } => Some(python),
            Self::Jupyter { python, .. } => python.as_deref(),
            Self::Attached { .. } | Self::Gateway { .. } => None,
        }
    }

    /// The URL of its server, if it is on one.
    pub fn server(&self) -> Option<&str> {
        match self {
            Self::Runner { .. } | Self::Jupyter { .. } | Self::Attached { .. } => None,
            Self::Gateway { server, .. } => Some(server),
        }
    }

    /// Whether it is a Jupyter kernel that Cellwright starts.
    pub fn is_jupyter(&self) -> bool {
        matches!(self, Self::Jupyter { .. })
    }
}

impl fmt::Display for KernelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Runner { python } => write!(f, "{}", python.display()),
            Self::Jupyter { kernelspec, python } => {
                f.write_str("jupyter")?;
                if let Some(name) = kernelspec {
                    write!(f, ":{name}")?;
                }
                if let Some(python) = python {
                    write!(f, ":{}", python.display())?;
                }
                Ok(())
            }
            Self::Attached { connection_file } => {
                write!(f, "existing:{}", connection_file.display())
            }
            Self::Gateway {
                server,
                kernelspec,
                existing,
            } => {
                write!(f, "gateway:{server}")?;
                match (existing, kernelspec) {
                    (Some(id), _) => write!(f, ":existing:{id}"),
                    (None, Some(name)) => write!(f, ":{name}"),
                    (None, None) => Ok(()),
                }
            }
        }
    }
}

/// The program that drives kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// The built-in runner, which needs only Python.
    #[default]
    Runner,
    /// Jupyter's messaging protocol.
    Jupyter,
    /// A Jupyter server.
    Gateway,
}

impl Backend {
    const ALL: [Self; 3] = [Self::Runner, Self::Jupyter, Self::Gateway];

    /// The names of all backends, as users type them.
    pub const NAMES: &[&str] = &{
        let mut names = [""; Self::ALL.len()];
        let mut index = 0;
        while index < names.len() {
            names[index] = Self::ALL[index].name();
            index += 1;
        }
        names
    };

    /// The name, as users type it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Runner => runner::NAME,
            Self::Jupyter => jupyter::NAME,
            Self::Gateway => gateway::NAME,
        }
    }

    /// The backend of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|backend| backend.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;
    use std::time::Duration;

    use cellwright_jupyter::kernelspec::Kernelspec;

    use super::*;
    use crate::backend::jupyter::Transport;

    fn jupyter_spec(identified_by: IdentifiedBy) -> KernelSpec {
        let mut kernelspec = Kernelspec::ipykernel("/opt/bin/python".as_ref());
        kernelspec.name = "conda-env".to_owned();
        KernelSpec::Jupyter(JupyterSpec {
            kernelspec: Box::new(kernelspec),
            python: Some("/opt/bin/python".into()),
            identified_by,
            env: vec![("HOME".into(), OsString::from_vec(vec![b'/', 0xff]))],
            runtime: "/run".into(),
            transport: Transport::Tcp,
            start_timeout: Duration::from_millis(1500),
            interrupt_grace: Duration::from_secs(2),
        })
    }

    fn specs() -> [(KernelSpec, &'static str); 5] {
        let runner = RunnerSpec {
            python: "/usr/bin/python3".into(),
            env: vec![("PATH".into(), "/bin".into())],
            start_timeout: Duration::from_secs(1),
            interrupt_grace: Duration::from_secs(2),
            trace: None,
        };
        let attached = AttachedSpec {
            connection_file: "/run/kernel-1.json".into(),
            start_timeout: Duration::from_secs(1),
            interrupt_grace: Duration::from_secs(2),
        };
        [
            (KernelSpec::Runner(runner), "/usr/bin/python3"),
            (jupyter_spec(IdentifiedBy::Kernelspec), "jupyter:conda-env"),
            (
                jupyter_spec(IdentifiedBy::Python),
                "jupyter:/opt/bin/python",
            ),
            (
                jupyter_spec(IdentifiedBy::KernelspecAndPython),
                "jupyter:conda-env:/opt/bin/python",
            ),
            (
                KernelSpec::Attached(attached),
                "existing:/run/kernel-1.json",
            ),
        ]
    }

    #[test]
    fn spec_and_id_survive_json() {
        for (spec, text) in specs() {
            assert_eq!(spec.id().to_string(), text);
            let json = serde_json::to_string(&spec).unwrap();
            let read: KernelSpec = serde_json::from_str(&json).unwrap();
            assert_eq!(format!("{read:?}"), format!("{spec:?}"));
            let json = serde_json::to_string(&spec.id()).unwrap();
            assert_eq!(serde_json::from_str::<KernelId>(&json).unwrap(), spec.id());
        }
    }

    #[test]
    fn ids_of_different_kernels_differ_even_if_their_texts_are_equal() {
        let runner = KernelId::Runner {
            python: "jupyter:r".into(),
        };
        let jupyter = KernelId::Jupyter {
            kernelspec: Some("r".to_owned()),
            python: None,
        };
        assert_eq!(runner.to_string(), jupyter.to_string());
        assert_ne!(runner, jupyter);
        assert!(jupyter.is_jupyter() && !runner.is_jupyter());
    }

    #[test]
    fn backends_have_names() {
        assert_eq!(Backend::NAMES, ["runner", "jupyter", "gateway"]);
        for &name in Backend::NAMES {
            assert_eq!(Backend::from_name(name).map(Backend::name), Some(name));
        }
        assert_eq!(Backend::from_name("zeromq"), None);
        let [(runner, _), (jupyter, _), .., (attached, _)] = specs();
        let backends = [runner, jupyter, attached].map(|spec| spec.backend().name());
        assert_eq!(backends, ["runner", "jupyter", "jupyter"]);
    }
}
