//! Which environment variables of the caller a kernel receives. For code that a user runs, all except those that look like
//! secrets; for code that an agent sends, only those that programs need.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use cellwright_kernel::python::Interpreter;
use cellwright_kernel::variables::set_variable;
use cellwright_stdext::secret;

/// Variables that programs need.
const ALLOWED: &[&str] = &[
    // The user and the session.
    "HOME",
    "LANG",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TEMP",
    "TERM",
    "TERM_PROGRAM",
    "TERM_PROGRAM_VERSION",
    "COLORTERM",
    "TMP",
    "TMPDIR",
    "TZ",
    "TZDIR",
    "USER",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "DBUS_SESSION_BUS_ADDRESS",
    "SSH_AGENT_PID",
    "SSH_AUTH_SOCK",
    "EDITOR",
    "PAGER",
    "NO_COLOR",
    "HOSTNAME",
    // Libraries and interpreters.
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "DYLD_FALLBACK_LIBRARY_PATH",
    "CPATH",
    "LIBRARY_PATH",
    "PKG_CONFIG_PATH",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONWARNINGS",
    "PYTHONHASHSEED",
    "PYTHONUTF8",
    "PYTHONOPTIMIZE",
    "PYTHONIOENCODING",
    "PYTHONUNBUFFERED",
    "PYTHONDEVMODE",
    "PYTHONTRACEMALLOC",
    "PYTHONASYNCIODEBUG",
    "PYTHONBREAKPOINT",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONPYCACHEPREFIX",
    "PYTHONNOUSERSITE",
    "PYTHONUSERBASE",
    "PYTHONMALLOC",
    "PYTHONFAULTHANDLER",
    "VIRTUAL_ENV",
    "VIRTUAL_ENV_PROMPT",
    "JAVA_HOME",
    "R_HOME",
    "JULIA_DEPOT_PATH",
    "JULIA_PROJECT",
    // Proxies and private certificates.
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "FTP_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "ftp_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "PIP_CERT",
    // Data work.
    "MPLBACKEND",
    "MPLCONFIGDIR",
    "MPLSTYLE",
    "IPYTHONDIR",
    "HF_HOME",
    "HF_HUB_OFFLINE",
    "TRANSFORMERS_CACHE",
    "TRANSFORMERS_OFFLINE",
    "TORCH_HOME",
    "KERAS_HOME",
    "KERAS_BACKEND",
    "JAX_PLATFORMS",
    "JAX_PLATFORM_NAME",
    "XLA_FLAGS",
    "NLTK_DATA",
    "SPARK_HOME",
    "PYSPARK_PYTHON",
    "HADOOP_CONF_DIR",
    "GDAL_DATA",
    "PROJ_LIB",
    "PROJ_DATA",
    "MODULEPATH",
    "TQDM_DISABLE",
    "TOKENIZERS_PARALLELISM",
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "PIP_CONFIG_FILE",
    "PIP_NO_INDEX",
    "PIP_FIND_LINKS",
    "PIP_CACHE_DIR",
    "PIP_DISABLE_PIP_VERSION_CHECK",
];

/// Prefixes of variables that programs need, unless the name looks like a secret.
const ALLOWED_PREFIXES: &[&str] = &[
    "LC_",
    "XDG_",
    "CONDA_",
    "MAMBA_",
    "UV_",
    "CUDA_",
    "NVIDIA_",
    "ROCR_",
    "HIP_",
    "OMP_",
    "MKL_",
    "OPENBLAS_",
    "NUMEXPR_",
    "NUMBA_",
    "POLARS_",
    "JUPYTER_",
    "CELLWRIGHT_",
    "PI_",
    "PYENV_",
    "SLURM_",
];

/// Variables that describe the process of the caller. A kernel never receives them: with the process id of another
/// Jupyter server, ipykernel ends itself.
const CALLER_VARIABLES: &[&str] = &[
    "_",
    "SHLVL",
    "PWD",
    "OLDPWD",
    "JPY_PARENT_PID",
    "JPY_INTERRUPT_EVENT",
    "CELLWRIGHT_BRIDGE_URL",
    "PI_TOOL_BRIDGE_URL",
    // Credentials of the server, in any form.
    "JUPYTER_GATEWAY_HEADERS",
];

/// Variables that Cellwright and its libraries read, and prefixes of such variables. Only these keep their values in the
/// environment of a process of Cellwright that runs code, and a host receives no others.
const OWN_VARIABLES: &[&str] = &[
    "HOME", "PATH", "LANG", "TZ", "TMPDIR", "USER", "LOGNAME", "SHELL",
];
const OWN_PREFIXES: &[&str] = &["LC_", "XDG_", "CELLWRIGHT_"];

/// Which variables a caller passes before exceptions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EnvironmentPolicy {
    /// Those that programs need: for code that an agent sends.
    #[default]
    Listed,
    /// All except secrets: for code that a user runs.
    NoSecrets,
    /// All.
    All,
}

/// The environment that a caller requests for its kernel.
#[derive(Clone, Debug, Default)]
pub struct EnvironmentRequest {
    pub policy: EnvironmentPolicy,
    /// Variables by name, in order. `None`: the value that the caller has.
    pub variables: Vec<(String, Option<String>)>,
}

/// The request and the user's exceptions to the built-in lists.
#[derive(Clone, Debug, Default)]
pub struct EnvironmentRules {
    pub policy: EnvironmentPolicy,
    /// Names to pass in addition. A full name also passes a secret, because naming it is intentional. A
    /// name with a trailing `*` matches a prefix and passes no secrets.
    pub pass: Vec<String>,
    /// Names not to pass; a trailing `*` matches a prefix. Overrides everything but `set` and `requested`.
    pub deny: Vec<String>,
    /// Variables to set.
    pub set: Vec<(String, String)>,
    /// [`EnvironmentRequest::variables`]; they override everything else.
    pub requested: Vec<(String, Option<String>)>,
}

/// The variables of a caller, divided by [`EnvironmentRules`].
#[derive(Clone, Debug, Default)]
pub struct FilteredEnvironment {
    /// The environment of a kernel, sorted by name.
    pub variables: Vec<(OsString, OsString)>,
    /// Names of the variables that the kernel does not receive, sorted. Those that only describe the caller's process are
    /// not among them.
    pub withheld: Vec<String>,
}

/// Divides the variables of a caller.
pub fn filter(
    all: impl IntoIterator<Item = (OsString, OsString)>,
    rules: &EnvironmentRules,
) -> FilteredEnvironment {
    let mut filtered = FilteredEnvironment::default();
    for (name, value) in all {
        let text = name.to_string_lossy();
        if is_passed(&text, &value, rules) {
            filtered.variables.push((name, value));
        } else if !CALLER_VARIABLES.contains(&&*text) {
            filtered.withheld.push(text.into_owned());
        }
    }
    let with_value = |(name, value): &(String, Option<String>)| {
        let value = value.clone()?;
        Some((name.clone(), value))
    };
    let requested = rules.requested.iter().filter_map(with_value);
    for (name, value) in rules.set.iter().cloned().chain(requested) {
        filtered.withheld.retain(|other| *other != name);
        set_variable(&mut filtered.variables, &name, value.into());
    }
    filtered.variables.sort();
    filtered.withheld.sort();
    filtered
}

/// Sets the variables that the interpreter's shim would set, and activates its virtual or conda environment: puts the
/// programs of the environment first on `PATH`.
pub fn activate(env: &mut Vec<(OsString, OsString)>, interpreter: &Interpreter) {
    for (name, value) in &interpreter.variables {
        env.retain(|(other, _)| other != name);
        env.push((name.clone(), value.clone()));
    }
    let Some(dir) = interpreter.environment.as_deref() else {
        return;
    };
    let variable = if dir.join("pyvenv.cfg").exists() {
        "VIRTUAL_ENV"
    } else {
        "CONDA_PREFIX"
    };
    set_variable(env, variable, dir.into());
    let programs = dir.join("bin");
    let old = env.iter().find(|(name, _)| name == "PATH");
    let old = old.map(|(_, value)| value.clone()).unwrap_or_default();
    let mut path = programs.clone().into_os_string();
    for dir in old.as_bytes().split(|&byte| byte == b':') {
        if !dir.is_empty() && dir != programs.as_os_str().as_bytes() {
            path.push(":");
            path.push(OsStr::from_bytes(dir));
        }
    }
    set_variable(env, "PATH", path);
}

fn is_passed(name: &str, value: &OsStr, rules: &EnvironmentRules) -> bool {
    let listed = |list: &[String]| list.iter().any(|entry| entry == name);
    let matches_prefix = |list: &[String]| {
        list.iter()
            .filter_map(|entry| entry.strip_suffix('*'))
            .any(|prefix| name.starts_with(prefix))
    };
    if rules.requested.iter().any(|(other, _)| other == name) {
        return true;
    }
    if listed(&rules.deny) || matches_prefix(&rules.deny) {
        return false;
    }
    if listed(&rules.pass) {
        return true;
    }
    if CALLER_VARIABLES.contains(&name) {
        return false;
    }
    match rules.policy {
        EnvironmentPolicy::All => true,
        _ if is_secret(name, value) => false,
        EnvironmentPolicy::NoSecrets => true,
        EnvironmentPolicy::Listed => {
            ALLOWED.contains(&name)
                || ALLOWED_PREFIXES
                    .iter()
                    .any(|prefix| name.starts_with(prefix))
                || matches_prefix(&rules.pass)
        }
    }
}

/// Whether a variable describes the terminal or the desktop of the caller, which have no influence on most code.
pub fn describes_terminal(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "COLORTERM",
        "COLUMNS",
        "DISPLAY",
        "INVOCATION_ID",
        "LINES",
        "LS_COLORS",
        "MAKEFLAGS",
        "MAKELEVEL",
        "MFLAGS",
        "PS1",
        "STY",
        "WAYLAND_DISPLAY",
        "WINDOWID",
    ];
    const PREFIXES: &[&str] = &[
        "DBUS_",
        "GNOME_",
        "GPG_",
        "ITERM_",
        "JOURNAL_",
        "KITTY_",
        "KONSOLE_",
        "SSH_",
        "TERM",
        "TMUX",
        "VSCODE_",
        "VTE_",
        "WEZTERM_",
        "XDG_SESSION_",
    ];
    NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Whether the value of a variable is a secret: by its name, or because it contains credentials, such as a URL with a
/// password.
pub(crate) fn is_secret(name: &str, value: &OsStr) -> bool {
    secret::is_secret_variable(name, &value.to_string_lossy())
}

/// Whether Cellwright itself reads a variable, and its value is no secret.
pub fn is_own_variable(name: &str, value: &OsStr) -> bool {
    let is_own =
        OWN_VARIABLES.contains(&name) || OWN_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    is_own && !is_secret(name, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed_names(names: &[&str], rules: &EnvironmentRules) -> Vec<String> {
        let all = names.iter().map(|name| (name.into(), "x".into()));
        filter(all, rules)
            .variables
            .into_iter()
            .map(|(name, _)| name.into_string().unwrap())
            .collect()
    }

    fn with_policy(policy: EnvironmentPolicy) -> EnvironmentRules {
        EnvironmentRules {
            policy,
            ..EnvironmentRules::default()
        }
    }

    #[test]
    fn a_user_passes_everything_except_secrets() {
        let passed = [
            "AWS_PROFILE",
            "AWS_SHARED_CREDENTIALS_FILE",
            "CI",
            "DATABASE_URL",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "KEYBOARD",
            "MONKEY_PATH",
            "OPENAI_MAX_TOKENS",
            "SSH_AUTH_SOCK",
            "STAGE",
            "TOKENIZERS_PARALLELISM",
        ];
        let secrets = [
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "AZURE_STORAGE_CONNECTION_STRING",
            "DB_PASS",
            "GITHUB_PAT",
            "MYSQL_PWD",
            "NPM_AUTH",
            "OPENAI_API_KEY",
            "PGPASSWORD",
            "SLACK_WEBHOOK_URL",
            "openai_api_key",
        ];
        let caller = ["_", "JPY_PARENT_PID", "OLDPWD", "PWD", "SHLVL"];
        let all: Vec<&str> = passed
            .iter()
            .chain(&secrets)
            .chain(&caller)
            .copied()
            .collect();
        let rules = with_policy(EnvironmentPolicy::NoSecrets);
        assert_eq!(passed_names(&all, &rules), passed);
        let pairs = all.iter().map(|name| (name.into(), "x".into()));
        assert_eq!(filter(pairs, &rules).withheld, secrets);
        let everything = passed_names(&all, &with_policy(EnvironmentPolicy::All));
        assert_eq!(everything.len(), passed.len() + secrets.len());
    }

    #[test]
    fn a_url_with_a_password_is_withheld_like_a_secret() {
        let all = [
            ("DATABASE_URL", "postgres://me:pw@db/x"),
            ("HTTPS_PROXY", "http://me:pw@proxy:3128"),
            ("PIP_INDEX_URL", "https://pypi.test/simple"),
        ];
        let all = all.map(|(name, value)| (name.into(), value.into()));
        for policy in [EnvironmentPolicy::NoSecrets, EnvironmentPolicy::Listed] {
            let filtered = filter(all.clone(), &with_policy(policy));
            assert_eq!(filtered.withheld, ["DATABASE_URL", "HTTPS_PROXY"]);
            assert_eq!(filtered.variables.len(), 1);
        }
    }

    #[test]
    fn a_request_overrides_all_other_rules() {
        let rules = EnvironmentRules {
            deny: vec!["MY_TOKEN".into(), "STAGE".into()],
            set: vec![("STAGE".into(), "test".into())],
            requested: vec![
                ("MY_TOKEN".into(), None),
                ("STAGE".into(), Some("prod".into())),
                ("NOT_SET".into(), None),
            ],
            ..with_policy(EnvironmentPolicy::All)
        };
        let all = [("MY_TOKEN", "t"), ("STAGE", "dev")];
        let filtered = filter(all.map(|(name, value)| (name.into(), value.into())), &rules);
        let expected = [("MY_TOKEN", "t"), ("STAGE", "prod")];
        assert_eq!(
            filtered.variables,
            expected.map(|(name, value)| (name.into(), value.into()))
        );
        assert!(filtered.withheld.is_empty());
    }

    #[test]
    fn default_rules_pass_needed_variables_and_no_secrets() {
        let names = [
            "PATH",
            "HOME",
            "LC_ALL",
            "XDG_CACHE_HOME",
            "HTTPS_PROXY",
            "SSL_CERT_FILE",
            "CUDA_VISIBLE_DEVICES",
            "CONDA_PREFIX",
            "UV_CACHE_DIR",
            "TOKENIZERS_PARALLELISM",
            "OPENAI_API_KEY",
            "AWS_SECRET_ACCESS_KEY",
            "GITHUB_TOKEN",
            "MY_VARIABLE",
            "CONDA_TOKEN",
            "UV_PUBLISH_PASSWORD",
            "JUPYTER_TOKEN",
            "PI_PRIVATE_KEY",
            "XDG_api_key",
        ];
        let expected = [
            "CONDA_PREFIX",
            "CUDA_VISIBLE_DEVICES",
            "HOME",
            "HTTPS_PROXY",
            "LC_ALL",
            "PATH",
            "SSL_CERT_FILE",
            "TOKENIZERS_PARALLELISM",
            "UV_CACHE_DIR",
            "XDG_CACHE_HOME",
        ];
        assert_eq!(passed_names(&names, &EnvironmentRules::default()), expected);
    }

    #[test]
    fn rules_add_remove_and_set_variables() {
        let rules = EnvironmentRules {
            pass: vec!["MY_TOKEN".into(), "AWS_*".into()],
            deny: vec!["HOME".into(), "LC_*".into()],
            set: vec![("PATH".into(), "/here".into()), ("NEW".into(), "1".into())],
            ..EnvironmentRules::default()
        };
        let names = [
            "PATH",
            "HOME",
            "LC_ALL",
            "MY_TOKEN",
            "AWS_REGION",
            "AWS_SECRET_ACCESS_KEY",
        ];
        assert_eq!(
            passed_names(&names, &rules),
            ["AWS_REGION", "MY_TOKEN", "NEW", "PATH"]
        );
    }

    #[test]
    fn activation_puts_the_environment_first_on_path_once() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("pyvenv.cfg"), "").unwrap();
        let interpreter = Interpreter {
            program: dir.path().join("bin/python3"),
            origin: cellwright_kernel::python::Origin::Explicit,
            environment: Some(dir.path().to_owned()),
            rejected: Vec::new(),
            variables: Vec::new(),
        };
        let bin = dir.path().join("bin").display().to_string();
        let mut env = vec![("PATH".into(), format!("/usr/bin:{bin}:/bin").into())];
        activate(&mut env, &interpreter);
        activate(&mut env, &interpreter);
        let path = env.iter().find(|(name, _)| name == "PATH").unwrap();
        assert_eq!(path.1, OsString::from(format!("{bin}:/usr/bin:/bin")));
        assert!(
            env.iter()
                .any(|(name, value)| name == "VIRTUAL_ENV" && value == dir.path())
        );
    }
}
