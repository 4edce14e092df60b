//! The layer between the libraries and the operations: settings, trust, and everything that decides which kernel runs
//! code and what it finds inside.
//!
//! * [`engine`]: an [`engine::Engine`] knows the user's directories and stores; every operation gets one.
//! * [`mod@env`]: every environment variable. This is the only module that reads them.
//! * [`environment`] decides which environment variables kernels receive.
//! * [`project`] finds the project of a directory, which its artifacts record.
//! * [`settings`] reads the settings of the user and of a project; [`trust`] records which project files the user has
//!   approved.
//! * [`project_interpreter`] decides which commands start an interpreter that was found in a project.
//! * [`kernels`] selects a kernel by flags, notebook and settings; [`ipykernel`] inspects Python installations.
//! * [`servers`] finds the Jupyter server that a command names, and its credentials.
//! * [`session_launcher`] starts the kernels of a session, and [`kernel_setup`] sets them up with the prelude, the modules of the
//!   user and the [`bridge`], through which code in a cell calls verbs.
//! * [`open_notebooks`] asks Jupyter servers which notebooks are open, before these are written.
//! * [`logging`] installs the subscriber that `CELLWRIGHT_LOG` selects.
//! * [`runtime_dir`] is the private directory of the host; [`loopback`] and [`secret`] are what servers on this machine
//!   share; [`program`] finds this program for supervisors and hosts; [`signals`] turns signals into stops.
//!
//! Settings need no files to be useful:
//!
//! ```
//! use cellwright_engine::settings::Settings;
//!
//! let settings = Settings::default();
//! assert!(settings.eval.enabled);
//! assert_eq!(settings.eval.owner, "user");
//! ```

#![expect(
    missing_docs,
    reason = "an internal crate: most names need no description"
)]

pub mod bridge;
pub mod engine;
pub mod env;
pub mod environment;
pub mod ipykernel;
pub mod kernel_setup;
pub mod kernels;
pub mod local_gateway;
pub mod logging;
pub mod loopback;
pub mod open_notebooks;
pub mod program;
pub mod project;
pub mod project_interpreter;
pub mod runtime;
pub mod runtime_dir;
pub mod secret;
pub mod servers;
pub mod session_launcher;
pub mod settings;
pub mod signals;
pub mod staging;
pub mod startup;
pub mod trust;
