//! Every setting, declared once: its type, default, variables, and meaning. Parsing, `config list`, the
//! guide and the suggestions in errors all come from here.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use cellwright_kernel::backend::jupyter::Transport;

use super::kind::Kind::{self, Flag, Names, Number, Path, Seconds, Text, Variables, Word};
use super::value::{Typed, Value};
use crate::env;
use crate::kernels::Backend;

/// A setting.
#[derive(Debug)]
pub(crate) struct Declared {
    /// Its name: table and key.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// The default, as it could stand in a variable.
    default: &'static str,
    pub(crate) guard: Guard,
    /// More variables that set it, besides the one named after it; the first that is set counts.
    pub(crate) variables: &'static [&'static str],
    meaning: &'static str,
}

/// Whether a project's file, which is other people's text, may set it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guard {
    /// Nothing can come of it.
    Open,
    /// It can make code run, or loosen a protection: only once the file is trusted.
    Trusted,
    /// The same, and its value is not shown.
    TrustedSecret,
    /// Never, and its value is not shown.
    Secret,
}

impl Guard {
    /// Whether a project may set it, in a word.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Open => "yes",
            Self::Trusted | Self::TrustedSecret => "trusted",
            Self::Secret => "never",
        }
    }
}

use Guard::{Open, Secret, Trusted, TrustedSecret};

impl Declared {
    /// The table it is in.
    pub(crate) fn group(&self) -> &'static str {
        self.name.split_once('.').map_or("", |(group, _)| group)
    }

    /// The variable that is named after it.
    pub(crate) fn own_variable(&self) -> String {
        let name = self.name.replace('.', "_").to_uppercase();
        format!("CELLWRIGHT_{name}")
    }

    /// Its name in that table.
    pub(crate) fn key(&self) -> &'static str {
        self.name.split_once('.').map_or("", |(_, key)| key)
    }

    /// What it means, in a sentence.
    pub(crate) fn meaning(&self) -> &'static str {
        self.meaning.trim()
    }

    /// What it is unless somebody says otherwise.
    pub(crate) fn default(&self) -> Value {
        self.kind
            .read_text(self.default.as_ref())
            .unwrap_or_default()
    }

    /// Whether its value is nobody's business.
    pub(crate) fn is_secret(&self) -> bool {
        matches!(self.guard, Secret | TrustedSecret)
    }
}

macro_rules! declare {
    ($(
        $(#[$about:meta])+
        $group:ident: $Group:ident {
            $(
                $(#[doc = $meaning:literal])+
                $field:ident: $type:ty = $default:literal, $kind:expr, $guard:expr $(, $variable:expr)*;
            )+
        }
    )+) => {
        $(
            $(#[$about])+
            #[derive(Clone, Debug)]
            pub(crate) struct $Group {
                $( $(#[doc = $meaning])+ pub(crate) $field: $type, )+
            }
        )+

        /// The values of all settings, by topic.
        #[derive(Clone, Debug)]
        pub(crate) struct Topics {
            $( $(#[$about])+ pub(crate) $group: $Group, )+
        }

        /// Every setting, in the order in which they are listed.
        pub(crate) const DECLARED: &[Declared] = &[$($(
            Declared {
                name: concat!(stringify!($group), ".", stringify!($field)),
                kind: $kind,
                default: $default,
                guard: $guard,
                variables: &[$($variable),*],
                meaning: concat!($($meaning),+),
            },
        )+)+];

        impl Topics {
            /// Takes the values from where they were collected.
            pub(super) fn from(value_of: impl Fn(&str) -> Value) -> Self {
                Self {$(
                    $group: $Group {$(
                        $field: {
                            let name = concat!(stringify!($group), ".", stringify!($field));
                            <$type as Typed>::of(&value_of(name)).unwrap_or_default()
                        },
                    )+},
                )+}
            }
        }
    };
}

const PERCENT: Kind = Number {
    least: 1,
    most: 100,
};
const COUNT: Kind = Number {
    least: 1,
    most: 100_000,
};
const COUNT_OR_NONE: Kind = Number {
    least: 0,
    most: 100_000,
};
/// Less says nothing, and more is cut by those who call.
const TEXT: Kind = Number {
    least: 500,
    most: 1_000_000,
};
const YES_OR_NO: Kind = Flag(&[]);
const BYTES: Kind = Kind::Bytes { most: u64::MAX };

/// What is shown is held in memory, and any project may say how much that is.
const SHOWN: Kind = Kind::Bytes { most: 16 << 20 };

/// What `PI_PY` can be besides yes and no: the tools that a model gets.
const TOOLS: Kind = Flag(&[("bash", false), ("py", true), ("mix", true), ("both", true)]);

declare! {
    /// Which Python.
    python: Python {
        /// The interpreter: a path, an environment's folder, or a command; none looks around.
        interpreter: Option<PathBuf> = "", Path, Trusted, env::PYTHON;
        /// Take the interpreter as it is: `doctor` does not start it.
        skip_check: bool = "false", YES_OR_NO, Trusted, env::PI_PYTHON_SKIP_CHECK;
    }
    /// Running code.
    eval: Eval {
        /// Whether code may be run at all.
        enabled: bool = "true", TOOLS, Trusted, env::PI_PY;
        /// Seconds that a cell may take unless the call says otherwise; 0 for no limit.
        timeout: Duration = "30", Seconds, Open, env::TIMEOUT;
        /// Seconds that no call may exceed, not even with `--timeout 0`; 0 for no such limit.
        max_timeout: Duration = "0", Seconds, Trusted;
        /// The session that code runs in; none gives each call a kernel of its own.
        session: Option<String> = "", Text, Open;
        /// On whose behalf: owners share a session until one of them resets it.
        owner: String = "user", Text, Trusted, env::OWNER;
    }
    /// Running notebooks.
    run: Run {
        /// Seconds that a cell of a notebook may take unless the call says otherwise; 0 for no limit.
        timeout: Duration = "0", Seconds, Open;
        /// Whether a notebook is told when each of its cells ran, as Jupyter does it.
        timing: bool = "false", YES_OR_NO, Open;
        /// Bytes of outputs of a cell beyond which they go to an artifact; 0 puts all into the notebook.
        max_outputs: u64 = "0", BYTES, Open;
    }
    /// Which kernel, and how it lives.
    kernel: Kernel {
        /// What runs code: `runner` needs nothing but Python, `jupyter` is any kernel of Jupyter's.
        backend: Backend = "runner", Word(Backend::NAMES), Trusted;
        /// The kernelspec that is used with `jupyter`; none is ipykernel in the interpreter.
        name: Option<String> = "", Text, Trusted;
        /// How the sockets of Jupyter kernels are reached: `ipc` (files), `tcp` (loopback), or `auto`.
        transport: Transport = "auto", Word(&["auto", "ipc", "tcp"]), Open;
        /// Seconds that a kernel may take to be ready; 0 for no limit.
        start_timeout: Duration = "60", Seconds, Open;
        /// Seconds that interrupted code has to end before its kernel is killed; 0 for none.
        interrupt_grace: Duration = "5", Seconds, Open;
        /// Memory that a kernel may use before it is ended; 0 for no limit.
        memory_limit: u64 = "0", BYTES, Trusted;
        /// Percent of the memory limit from which on a notice is given.
        memory_warning: u8 = "80", PERCENT, Trusted;
        /// Whether a kernel that is ready waits for the next session.
        spare: bool = "true", YES_OR_NO, Trusted;
        /// Whether code finds the helper functions of Cellwright.
        prelude: bool = "true", YES_OR_NO, Open;
    }
    /// Kernels that are kept.
    sessions: Sessions {
        /// How many sessions there may be at once.
        max: usize = "16", COUNT, Trusted;
        /// Seconds after which a session that nobody uses is ended; 0 for never.
        idle: Duration = "0", Seconds, Trusted;
        /// How often in a row the kernel of a session is started again after it died.
        restarts: u32 = "2", COUNT_OR_NONE, Trusted;
        /// How many calls may wait for one session.
        queue: usize = "64", COUNT, Trusted;
    }
    /// Runs in the background.
    runs: Runs {
        /// Seconds for which the result of a run is kept.
        keep: Duration = "86400", Seconds, Trusted;
        /// How many runs are kept.
        max: usize = "256", COUNT, Trusted;
    }
    /// The background process that owns sessions.
    host: Host {
        /// Seconds without session, run and caller after which the host ends; 0 for never.
        idle_exit: Duration = "600", Seconds, Trusted;
    }
    /// The variables that a kernel gets.
    env: Env {
        /// Names of variables to pass as well; a `*` at the end stands for any ending but a secret's.
        pass: Vec<String> = "", Names, Trusted;
        /// Names of variables to keep back; a `*` at the end stands for any ending.
        deny: Vec<String> = "", Names, Trusted;
        /// Variables to set.
        set: BTreeMap<String, String> = "", Variables, TrustedSecret;
    }
    /// Python modules of one's own.
    modules: Modules {
        /// Whether modules of one's own are loaded into kernels.
        enabled: bool = "true", YES_OR_NO, Trusted;
        /// Whether a module that fails keeps the kernel from starting.
        strict: bool = "false", YES_OR_NO, Trusted;
    }
    /// Full outputs.
    artifacts: Artifacts {
        /// Bytes that all kept outputs may take together; the oldest go first.
        max_bytes: u64 = "2 GiB", BYTES, Trusted;
        /// Seconds for which a full output is kept.
        max_age: Duration = "604800", Seconds, Trusted;
    }
    /// What is shown where output is bounded.
    output: Output {
        /// Bytes that are shown of the beginning.
        head: usize = "20 KiB", SHOWN, Open;
        /// Bytes that are shown of the end.
        tail: usize = "30 KiB", SHOWN, Open;
        /// Bytes that a model sees of one line; 0 for all of it.
        line: usize = "768", SHOWN, Open;
    }
    /// The MCP server.
    mcp: Mcp {
        /// Characters of text in one answer of the MCP server; what is cut is counted, and kept.
        text: usize = "10000", TEXT, Open;
        /// Seconds after which code goes on as a run and the MCP call answers; 0 waits for its end.
        wait: Duration = "50", Seconds, Open;
    }
    /// For whoever looks for a mistake.
    trace: Trace {
        /// Whether what is said between us and a runner is written to `frames.log` in the state folder.
        frames: bool = "false", YES_OR_NO, Trusted, env::PI_PYTHON_IPC_TRACE;
        /// Whether `eval` says how long each step before the first cell took.
        startup: bool = "false", YES_OR_NO, Trusted, env::PI_DEBUG_STARTUP;
    }
    /// A server of kernels.
    #[allow(dead_code, reason = "gateways are yet to come")]
    gateway: Gateway {
        /// The address of a kernel gateway; gateways cannot be used yet.
        url: Option<String> = "", Text, Trusted, env::GATEWAY_URL, env::PI_PYTHON_GATEWAY_URL, env::JUPYTER_GATEWAY_URL;
        /// What lets us into the gateway; never read from a project's file.
        token: Option<String> = "", Text, Secret, env::GATEWAY_TOKEN, env::PI_PYTHON_GATEWAY_TOKEN, env::JUPYTER_GATEWAY_AUTH_TOKEN;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn default_of(name: &str) -> Value {
        let declared = DECLARED.iter().find(|declared| declared.name == name);
        declared.unwrap().default()
    }

    #[test]
    fn every_default_is_a_value_of_its_kind() {
        for declared in DECLARED {
            let text = declared.default.as_ref();
            let value = declared.kind.read_text(text);
            assert!(value.is_some(), "{}", declared.name);
            assert!(declared.meaning().ends_with('.'), "{}", declared.name);
        }
    }

    #[test]
    fn every_default_arrives_in_its_field() {
        let topics = Topics::from(default_of);
        assert!(topics.eval.enabled && topics.kernel.spare && topics.modules.enabled);
        assert_eq!(topics.eval.timeout, Duration::from_secs(30));
        assert_eq!(topics.eval.owner, "user");
        assert_eq!(topics.kernel.memory_warning, 80);
        assert_eq!(topics.kernel.backend, Backend::Runner);
        assert_eq!(topics.kernel.transport, Transport::Auto);
        assert_eq!((topics.sessions.max, topics.sessions.restarts), (16, 2));
        assert_eq!(topics.artifacts.max_bytes, 2 << 30);
        assert_eq!(topics.output.line, 768);
    }

    #[test]
    fn what_limits_and_libraries_have_is_the_default_here() {
        let topics = Topics::from(default_of);
        let retention = cellwright_output::Retention::default();
        assert_eq!(topics.artifacts.max_bytes, retention.bytes);
        assert_eq!(topics.artifacts.max_age, retention.age);
        let limits = cellwright_output::Limits::default();
        assert_eq!(topics.output.head, limits.head_bytes);
        assert_eq!(topics.output.head + topics.output.tail, limits.inline_bytes);
        assert_eq!(topics.output.line, limits.column_bytes);
        let grace = cellwright_kernel::backend::runner::INTERRUPT_GRACE;
        assert_eq!(topics.kernel.interrupt_grace, grace);
    }
}
