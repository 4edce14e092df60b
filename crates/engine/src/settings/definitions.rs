//! Every setting, defined once: its type, default, environment variables and meaning. Parsing, `config list`, the
//! table in the guide and the suggestions in errors use these definitions.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use cellwright_kernel::Backend;
use cellwright_kernel::backend::jupyter::Transport;

use super::value::{FromSetting, Value};
use super::value_kind::ValueKind::{
    self, Choice, Flag, Fraction, Number, Path, Seconds, Text, Texts, VariableNames, Variables,
};
use crate::env;

/// The definition of a setting.
#[derive(Debug)]
pub struct SettingDef {
    /// Table and key, such as `eval.timeout`.
    pub name: &'static str,
    pub kind: ValueKind,
    /// The default value, in the syntax of environment variables.
    default: &'static str,
    pub project_policy: ProjectPolicy,
    /// Environment variables that also set it, after the one of [`Self::env_name`]; the first that is set wins.
    pub env_aliases: &'static [&'static str],
    meaning: &'static str,
}

/// Whether a project's file may set a setting. The file may come from other people. A file that the user does not trust
/// must not open sockets, name programs, sessions or tools, widen the environment of kernels, loosen a limit or a check, or
/// change where data is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProjectPolicy {
    /// Any project: no value can do harm.
    Allowed,
    /// Any project, if the value is not higher than that of the user; false is lower than true.
    Lower,
    /// Any project, if the limit is not higher than that of the user; 0 means no limit.
    LowerLimit,
    /// Only a trusted file.
    Trusted,
    /// Only a trusted file; the value is never printed.
    TrustedSecret,
    /// Never.
    User,
    /// Never; the value is never printed.
    Secret,
}

impl ProjectPolicy {
    /// The value of the column `in a project`.
    pub fn label(self) -> &'static str {
        match self {
            Self::Allowed => "yes",
            Self::Lower | Self::LowerLimit => "lower",
            Self::Trusted | Self::TrustedSecret => "trusted",
            Self::User | Self::Secret => "never",
        }
    }

    /// Whether a file that is not trusted may replace `current` by `value`.
    pub(super) fn allows_untrusted(self, value: &Value, current: &Value) -> bool {
        match self {
            Self::Allowed => true,
            Self::Lower => value.amount() <= current.amount(),
            Self::LowerLimit => {
                let limit = |value: &Value| match value.amount() {
                    amount if amount <= 0.0 => f64::INFINITY,
                    amount => amount,
                };
                limit(value) <= limit(current)
            }
            Self::Trusted | Self::TrustedSecret | Self::User | Self::Secret => false,
        }
    }
}

use ProjectPolicy::{Allowed, Lower, LowerLimit, Secret, Trusted, TrustedSecret, User};

impl SettingDef {
    /// The name of its table.
    pub fn group(&self) -> &'static str {
        self.name.split_once('.').map_or("", |(group, _)| group)
    }

    /// The environment variable that is named after it.
    pub fn env_name(&self) -> String {
        let name = self.name.replace('.', "_").to_uppercase();
        format!("CELLWRIGHT_{name}")
    }

    /// Its name in the table.
    pub fn key(&self) -> &'static str {
        self.name.split_once('.').map_or("", |(_, key)| key)
    }

    /// What it does, as a sentence.
    pub fn meaning(&self) -> &'static str {
        self.meaning.trim()
    }

    /// The value if no source sets it.
    pub fn default(&self) -> Value {
        self.kind
            .parse_text(self.default.as_ref())
            .unwrap_or_default()
    }

    /// Whether its value is never printed.
    pub fn is_secret(&self) -> bool {
        matches!(self.project_policy, Secret | TrustedSecret)
    }
}

macro_rules! define_settings {
    ($(
        $(#[$about:meta])+
        $group:ident: $Group:ident {
            $(
                $(#[doc = $meaning:literal])+
                $field:ident: $type:ty = $default:literal, $kind:expr, $policy:expr $(, $variable:expr)*;
            )+
        }
    )+) => {
        $(
            $(#[$about])+
            #[derive(Clone, Debug)]
            pub struct $Group {
                $( $(#[doc = $meaning])+ pub $field: $type, )+
            }
        )+

        /// The values of all settings, by table.
        #[derive(Clone, Debug)]
        pub struct SettingValues {
            $( $(#[$about])+ pub $group: $Group, )+
        }

        /// Every setting, in the order of `config list`.
        pub const SETTINGS: &[SettingDef] = &[$($(
            SettingDef {
                name: concat!(stringify!($group), ".", stringify!($field)),
                kind: $kind,
                default: $default,
                project_policy: $policy,
                env_aliases: &[$($variable),*],
                meaning: concat!($($meaning),+),
            },
        )+)+];

        impl SettingValues {
            /// Reads every value through `value_of`, which gets the setting's name.
            pub(super) fn collect(value_of: impl Fn(&str) -> Value) -> Self {
                Self {$(
                    $group: $Group {$(
                        $field: {
                            let name = concat!(stringify!($group), ".", stringify!($field));
                            <$type as FromSetting>::from_value(&value_of(name)).unwrap_or_default()
                        },
                    )+},
                )+}
            }
        }
    };
}

const PERCENT: ValueKind = Number { min: 1, max: 100 };
const COUNT: ValueKind = Number {
    min: 1,
    max: 100_000,
};
const COUNT_OR_NONE: ValueKind = Number {
    min: 0,
    max: 100_000,
};
/// Shorter replies are useless; MCP clients truncate longer ones.
const MCP_TEXT: ValueKind = Number {
    min: 500,
    max: 1_000_000,
};
const BOOL: ValueKind = Flag(&[]);
const BYTES: ValueKind = ValueKind::Bytes { max: u64::MAX };

/// Inline text is kept in memory.
const SHOWN_BYTES: ValueKind = ValueKind::Bytes { max: 16 << 20 };

/// `PI_PY` also takes the names of the tools that a model gets.
const TOOLS: ValueKind = Flag(&[("bash", false), ("py", true), ("mix", true), ("both", true)]);

define_settings! {
    /// The Python interpreter.
    python: Python {
        /// Interpreter: a path, the directory of an environment, or a command; if unset, Cellwright searches.
        interpreter: Option<PathBuf> = "", Path, Trusted, env::PYTHON;
        /// Skip the check of the interpreter: `doctor` does not start it.
        skip_check: bool = "false", BOOL, Trusted, env::PI_PYTHON_SKIP_CHECK;
    }
    /// Running code.
    eval: Eval {
        /// Whether code may run at all.
        enabled: bool = "true", TOOLS, Trusted, env::PI_PY;
        /// Default time limit of a cell, in seconds; 0 means no limit.
        timeout: Duration = "30", Seconds, LowerLimit, env::TIMEOUT;
        /// Largest time limit that a call can set, in seconds; it also caps `--timeout 0`; 0 means no cap.
        max_timeout: Duration = "0", Seconds, Trusted;
        /// Session that code runs in; if unset, each call gets a new kernel.
        session: Option<String> = "", Text, Trusted;
        /// Owner of the calls; owners share a session until one of them resets it.
        owner: String = "user", Text, Trusted, env::OWNER;
    }
    /// Running notebooks.
    run: Run {
        /// Default time limit of a notebook's cell, in seconds; 0 means no limit.
        timeout: Duration = "0", Seconds, LowerLimit;
        /// Whether the start and end time of each cell are written to the notebook, as Jupyter does.
        timing: bool = "false", BOOL, Allowed;
        /// Size in bytes above which the outputs of a cell go to an artifact; 0 keeps all outputs in the notebook.
        max_outputs: u64 = "0", BYTES, Trusted;
    }
    /// Checking notebooks.
    check: Check {
        /// Relative difference up to which two numbers count as equal; 0 compares them exactly.
        tolerance: f64 = "0", Fraction, Lower;
    }
    /// Kernels.
    kernel: Kernel {
        /// Backend: `runner` needs only Python, `jupyter` runs any Jupyter kernel, `gateway` runs kernels on a Jupyter server.
        backend: Backend = "runner", Choice(Backend::NAMES), Trusted;
        /// Kernelspec for the backend `jupyter`; if unset, the ipykernel of the interpreter.
        name: Option<String> = "", Text, Trusted;
        /// Transport of Jupyter kernels: `ipc` (Unix sockets for you alone), or `tcp` (loopback ports, which other users can read).
        transport: Transport = "ipc", Choice(&["ipc", "tcp"]), Trusted;
        /// Time that a kernel may take to become ready, in seconds; 0 means no limit.
        start_timeout: Duration = "60", Seconds, LowerLimit;
        /// Time that interrupted code has before its kernel is killed, in seconds; 0 kills it at once.
        interrupt_grace: Duration = "5", Seconds, Trusted;
        /// Memory in bytes above which a kernel is stopped; 0 means no limit.
        memory_limit: u64 = "0", BYTES, Trusted;
        /// Percentage of the memory limit at which a notice is printed.
        memory_warning: u8 = "80", PERCENT, Trusted;
        /// Whether the host keeps a started kernel ready for the next session.
        spare: bool = "true", BOOL, Trusted;
        /// Whether cells can use the helper functions of Cellwright.
        prelude: bool = "true", BOOL, Lower;
    }
    /// Sessions: kernels that outlive a call.
    sessions: Sessions {
        /// Maximum number of sessions.
        max: usize = "16", COUNT, Trusted;
        /// Idle time after which a session is stopped, in seconds; 0 means never.
        idle: Duration = "0", Seconds, Trusted;
        /// Maximum number of restarts in a row after the kernel of a session died.
        restarts: u32 = "2", COUNT_OR_NONE, Trusted;
        /// Maximum number of calls that wait for one session.
        queue: usize = "64", COUNT, Trusted;
    }
    /// Runs in the background.
    runs: Runs {
        /// Time for which the result of a run is kept, in seconds.
        keep: Duration = "86400", Seconds, Trusted;
        /// Maximum number of runs that are kept.
        max: usize = "256", COUNT, Trusted;
    }
    /// The background process that owns sessions.
    host: Host {
        /// Time without sessions, runs and clients after which the host exits, in seconds; 0 means never.
        idle_exit: Duration = "600", Seconds, Trusted;
    }
    /// Environment variables of kernels.
    env: Env {
        /// Environment variables to pass in addition; a final `*` matches any ending, except in names of secrets.
        pass: Vec<String> = "", VariableNames, Trusted;
        /// Environment variables to withhold; a final `*` matches any ending.
        deny: Vec<String> = "", VariableNames, Trusted;
        /// Environment variables to set.
        set: BTreeMap<String, String> = "", Variables, TrustedSecret;
    }
    /// The user's Python modules.
    modules: Modules {
        /// Whether the modules of the user and of trusted projects are loaded into kernels.
        enabled: bool = "true", BOOL, Trusted;
        /// Whether a failing module keeps the kernel from starting.
        strict: bool = "false", BOOL, Trusted;
    }
    /// Projects.
    projects: Projects {
        /// Directories beneath which projects and environments count although another user owns them or can write to them.
        directories: Vec<String> = "", Texts, User;
    }
    /// Artifacts: full outputs.
    artifacts: Artifacts {
        /// Total size of all artifacts, in bytes; the oldest are removed first.
        max_bytes: u64 = "2 GiB", BYTES, Trusted;
        /// Time for which an artifact is kept, in seconds.
        max_age: Duration = "604800", Seconds, Trusted;
    }
    /// Truncation of output.
    output: Output {
        /// Bytes shown from the beginning of a truncated output.
        head: usize = "20 KiB", SHOWN_BYTES, Lower;
        /// Bytes shown from the end of a truncated output.
        tail: usize = "30 KiB", SHOWN_BYTES, Lower;
        /// Bytes of one line in the output for a model; 0 means no limit.
        line: usize = "768", SHOWN_BYTES, LowerLimit;
    }
    /// The MCP server.
    mcp: Mcp {
        /// Characters of text in one MCP reply; the reply counts what it omits, and artifacts keep it.
        text: usize = "10000", MCP_TEXT, Lower;
        /// Time after which an MCP call returns and its code continues as a run, in seconds; 0 waits for the end.
        wait: Duration = "50", Seconds, LowerLimit;
        /// Whether MCP replies repeat their content as structured content, and tools have output schemas.
        structured: bool = "false", BOOL, Allowed;
        /// Text before the name of each MCP tool, for clients that show tools of all servers in one list.
        tool_prefix: Option<String> = "", Text, Trusted;
        /// Interpreters outside of the roots that MCP calls may name: paths, directories with environments, commands.
        allow_python: Vec<String> = "", Texts, Trusted;
        /// Maximum number of MCP sessions of an HTTP server; a new one ends the session that has not been used longest.
        http_sessions: usize = "64", COUNT, Trusted;
        /// Time without requests, open streams and running code after which an MCP session of an HTTP server ends, in seconds; 0 means never.
        http_idle: Duration = "43200", Seconds, Trusted;
    }
    /// Debugging.
    trace: Trace {
        /// Whether the messages to and from runners are written to `frames.log` in the state directory.
        frames: bool = "false", BOOL, Trusted, env::PI_PYTHON_IPC_TRACE;
        /// Whether `eval` prints the duration of each step before the first cell.
        startup: bool = "false", BOOL, Trusted, env::PI_DEBUG_STARTUP;
    }
    /// The Jupyter server of the backend `gateway`.
    gateway: Gateway {
        /// Name of the server, of a table `[server.NAME]`; if unset, `gateway.url`, else a server that Cellwright starts on this machine.
        server: Option<String> = "", Text, Trusted;
        /// URL of the server; a token in it is used and never shown.
        url: Option<String> = "", Text, Trusted, env::GATEWAY_URL, env::PI_PYTHON_GATEWAY_URL, env::JUPYTER_GATEWAY_URL;
        /// Token for `gateway.url`; never read from a project's file.
        token: Option<String> = "", Text, Secret, env::GATEWAY_TOKEN, env::PI_PYTHON_GATEWAY_TOKEN, env::JUPYTER_GATEWAY_AUTH_TOKEN;
        /// Time that the server which Cellwright starts on this machine may take to start, in seconds; 0 means no limit.
        start_timeout: Duration = "30", Seconds, Trusted;
        /// Time without kernels after which that server ends, in seconds; 0 means never.
        idle_timeout: Duration = "600", Seconds, Trusted;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn default_of(name: &str) -> Value {
        let definition = SETTINGS.iter().find(|definition| definition.name == name);
        definition.unwrap().default()
    }

    #[test]
    fn every_default_is_a_value_of_its_kind() {
        for definition in SETTINGS {
            let text = definition.default.as_ref();
            let value = definition.kind.parse_text(text);
            assert!(value.is_some(), "{}", definition.name);
            assert!(definition.meaning().ends_with('.'), "{}", definition.name);
        }
    }

    #[test]
    fn every_default_reaches_its_field() {
        let values = SettingValues::collect(default_of);
        assert!(values.eval.enabled && values.kernel.spare && values.modules.enabled);
        assert_eq!(values.eval.timeout, Duration::from_secs(30));
        assert_eq!(values.eval.owner, "user");
        assert_eq!(values.kernel.memory_warning, 80);
        assert_eq!(values.kernel.backend, Backend::Runner);
        assert_eq!(values.kernel.transport, Transport::Ipc);
        assert_eq!((values.sessions.max, values.sessions.restarts), (16, 2));
        assert_eq!(values.artifacts.max_bytes, 2 << 30);
        assert_eq!(values.output.line, 768);
    }

    #[test]
    fn defaults_match_the_library_defaults() {
        let values = SettingValues::collect(default_of);
        let retention = cellwright_output::Retention::default();
        assert_eq!(values.artifacts.max_bytes, retention.bytes);
        assert_eq!(values.artifacts.max_age, retention.age);
        let limits = cellwright_output::Limits::default();
        assert_eq!(values.output.head, limits.head_bytes);
        assert_eq!(values.output.head + values.output.tail, limits.inline_bytes);
        assert_eq!(values.output.line, limits.line_bytes);
        let grace = cellwright_kernel::backend::runner::INTERRUPT_GRACE;
        assert_eq!(values.kernel.interrupt_grace, grace);
    }
}
