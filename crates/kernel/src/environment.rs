//! The environment variables of a kernel: those that programs need, never those that look like
//! secrets.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use crate::python::Interpreter;

/// Variables that are passed by name.
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

/// Prefixes of variables that are passed, unless the name looks like a secret.
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

/// Variables that are passed only if `EnvironmentRules::pass` lists their full name.
const DENIED: &[&str] = &[
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GOOGLE_API_KEY",
    "GEMINI_API_KEY",
    "OPENROUTER_API_KEY",
    "PERPLEXITY_API_KEY",
    "PERPLEXITY_COOKIES",
    "EXA_API_KEY",
    "AZURE_OPENAI_API_KEY",
    "MISTRAL_API_KEY",
];

/// Parts of a name that mark its value as a secret.
const SECRET_WORDS: &[&str] = &[
    "APIKEY",
    "SECRET",
    "TOKEN",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "ACCESSKEY",
    "PRIVATEKEY",
    "COOKIE",
    "AUTHKEY",
];

/// The user's exceptions to the built-in lists.
#[derive(Clone, Debug, Default)]
pub struct EnvironmentRules {
    /// Names to pass in addition. A full name also passes a secret, because naming it is intentional. A
    /// name with a trailing `*` matches a prefix and passes no secrets.
    pub pass: Vec<String>,
    /// Names not to pass; a trailing `*` matches a prefix. Overrides everything but `set`.
    pub deny: Vec<String>,
    /// Variables to set.
    pub set: Vec<(String, String)>,
}

/// The environment of a kernel, sorted by name.
pub fn filter(
    all: impl IntoIterator<Item = (OsString, OsString)>,
    rules: &EnvironmentRules,
) -> Vec<(OsString, OsString)> {
    let mut variables: Vec<(OsString, OsString)> = all
        .into_iter()
        // Names that are not UTF-8 are on no list.
        .filter(|(name, _)| name.to_str().is_some_and(|name| is_allowed(name, rules)))
        .collect();
    for (name, value) in &rules.set {
        set_variable(&mut variables, name, value.into());
    }
    variables.sort();
    variables
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

/// Sets one variable.
pub fn set_variable(env: &mut Vec<(OsString, OsString)>, name: &str, value: OsString) {
    env.retain(|(other, _)| other != name);
    env.push((name.into(), value));
}

fn is_allowed(name: &str, rules: &EnvironmentRules) -> bool {
    let listed = |list: &[String]| list.iter().any(|entry| entry == name);
    let matches_prefix = |list: &[String]| {
        list.iter()
            .filter_map(|entry| entry.strip_suffix('*'))
            .any(|prefix| name.starts_with(prefix))
    };
    if listed(&rules.deny) || matches_prefix(&rules.deny) {
        return false;
    }
    if listed(&rules.pass) {
        return true;
    }
    if DENIED.contains(&name) || looks_secret(name) {
        return false;
    }
    ALLOWED.contains(&name)
        || ALLOWED_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix))
        || matches_prefix(&rules.pass)
}

/// Whether a name marks its value as a secret. `PIP_INDEX_URL` and similar names do not, although their
/// values may contain passwords: `pip` does not work without them.
pub fn looks_secret(name: &str) -> bool {
    let plain: String = name
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|letter| letter.to_ascii_uppercase())
        .collect();
    // `TOKENIZERS_PARALLELISM` is not a secret.
    let plain = plain.replace("TOKENIZERS", "");
    SECRET_WORDS.iter().any(|word| plain.contains(word)) || plain.ends_with("KEY")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed_names(names: &[&str], rules: &EnvironmentRules) -> Vec<String> {
        let all = names.iter().map(|name| (name.into(), "x".into()));
        filter(all, rules)
            .into_iter()
            .map(|(name, _)| name.into_string().unwrap())
            .collect()
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
            origin: crate::python::Origin::Explicit,
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
