//! Tests of the rules for secrets.

use super::*;

/// Names of real variables with secrets.
const SECRETS: &[&str] = &[
    "ACTIONS_RUNTIME_TOKEN",
    "ADMIN_PW",
    "ANSIBLE_VAULT_PASSWORD",
    "ANTHROPIC_API_KEY",
    "API_KEY_2",
    "ARTIFACTORY_PW",
    "AUTH",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AZURE_CLIENT_SECRET",
    "AZURE_DEVOPS_EXT_PAT",
    "AZURE_OPENAI_KEY_1",
    "AZURE_STORAGE_CONNECTION_STRING",
    "AZURE_STORAGE_SAS",
    "BW_SESSION_KEY",
    "CARGO_REGISTRY_TOKEN",
    "CELLWRIGHT_GATEWAY_TOKEN",
    "CELLWRIGHT_PASS",
    "CI_JOB_JWT",
    "CI_JOB_JWT_V2",
    "CODE_SIGNING_CERT",
    "CONDA_PAT",
    "COSIGN_PASSWORD",
    "DB_PASS",
    "DBPASS",
    "DEPLOY_KEY_BASE64",
    "DJANGO_SECRET_KEY",
    "DOCKER_AUTH_CONFIG",
    "FERNET_KEY",
    "GH_TOKEN",
    "GITHUB_PAT",
    "GITLAB_PRIVATE_TOKEN",
    "GOOGLE_OAUTH",
    "GPG_PASSPHRASE",
    "HF_TOKEN",
    "HTTP_COOKIE",
    "JUPYTER_PASS",
    "KAGGLE_KEY",
    "LDAP_BIND_PW",
    "LITELLM_MASTER_KEY",
    "MLFLOW_TRACKING_PASSWORD",
    "MY_BEARER",
    "MYSQL_PWD",
    "NEW_RELIC_LICENSE_KEY",
    "NPM_AUTH",
    "NPM_CONFIG__AUTH",
    "OPENAIKEY",
    "OPENAI_API_KEY",
    "OP_SESSION_TOKEN",
    "PGPASSWORD",
    "PI_AUTH",
    "RABBITMQ_ERLANG_COOKIE",
    "REDIS_PASS",
    "SERVICE_CRED",
    "SERVICE_CREDENTIALS",
    "SERVICE_CREDS",
    "SIGNING_KEY",
    "SLACK_WEBHOOK_URL",
    "SLURM_JWT",
    "SMTP_PASSWD",
    "SSHPASS",
    "STRIPE_SIGNING_SECRET",
    "TWINE_PASSWORD",
    "WANDB_API_KEY",
    "openai_api_key",
    "someApiKey",
];

/// Names of real variables without secrets.
const ORDINARY: &[&str] = &[
    "ANSIBLE_ASK_PASS_PROMPTS",
    "AUTHOR",
    "AWS_PROFILE",
    "AWS_REGION",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "BYPASS",
    "CI",
    "COMPASS",
    "CONDA_PREFIX",
    "COOKIECUTTER_CONFIG",
    "DBUS_SESSION_BUS_ADDRESS",
    "GIT_ASKPASS",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_NAME",
    "GNOME_KEYRING_CONTROL",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOPATH",
    "GOPRIVATE",
    "GPG_AGENT_INFO",
    "GPG_KEY",
    "GTK_IM_MODULE",
    "KEYBOARD",
    "KEYMAP",
    "KMS_KEY_ID",
    "KRB5CCNAME",
    "LESSKEY",
    "LM_LICENSE_FILE",
    "MANPATH",
    "MONKEY",
    "OLDPWD",
    "OPENAI_MAX_TOKENS",
    "OS_AUTH_TYPE",
    "OS_AUTH_URL",
    "PASSENGER_APP_ENV",
    "PASSWORD_STORE_DIR",
    "PATH",
    "PATTERN",
    "PGPASSFILE",
    "PUBLIC_KEY",
    "PWD",
    "PYTHONPATH",
    "SESSION_MANAGER",
    "SLURM_JOB_ID",
    "SSH_ASKPASS",
    "SSH_AUTH_SOCK",
    "SSH_KEY_PATH",
    "STRIPE_PUBLISHABLE_KEY",
    "TOKENIZERS_PARALLELISM",
    "XAUTHORITY",
    "XDG_SESSION_ID",
];

#[test]
fn secrets_are_found_by_their_names() {
    for name in SECRETS {
        assert!(is_secret_variable(name, "x7"), "{name}");
    }
    for name in ORDINARY {
        assert!(!is_secret_variable(name, "x7"), "{name}");
    }
}

#[test]
fn flags_and_numbers_of_tokens_are_no_secrets() {
    for value in ["", " ", "1", "0", "true", "No"] {
        assert!(!is_secret_variable("REQUIRE_AUTH", value), "{value}");
    }
    assert!(!is_secret_variable("LLM_TOKENS_PER_MINUTE", "90000"));
    assert!(is_secret_variable("API_TOKENS", "a,b"));
    assert!(is_secret_variable("DB_PASS", "90000"));
}

#[test]
fn values_with_credentials_are_secrets_whatever_their_name() {
    let secrets = [
        ("DATABASE_URL", "postgres://me:pw@db/x"),
        ("REDIS_URL", "redis://:pw@cache:6379/0"),
        ("HTTPS_PROXY", "http://me:pw@proxy:3128"),
        (
            "PIP_EXTRA_INDEX_URL",
            "https://a.test/simple https://x:y@b.test/simple",
        ),
        ("PIP_INDEX_URL", "https://0123456789@pypi.test/simple"),
        ("SENTRY_DSN", "https://0123456789@sentry.test/4"),
        ("CALLBACK", "https://a.test/x?user=1&access_token=abc"),
        ("ODD", "mysql://me:p/w@db/x"),
        ("DSN", "me:pw@tcp(db:3306)/x"),
        ("DB", "Server=db;User=me;Password=pw;"),
        ("PGCONN", "host=db password=pw"),
        (
            "CERT",
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
        ),
        ("ANY", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.sgnTR3"),
        ("OTHER", "ghp_0123456789abcdefghij"),
        ("MAPS", "AIzaSyA0123456789abcdefghijklmnopqrstuv"),
        ("HDR", "Authorization: Bearer abc"),
        ("HDR", "Authorization: token abc"),
        ("HDR", "X-Api-Key: abc"),
        ("NETRC", "machine a.test login me password pw"),
        ("NETRC", "machine a.test\n  login me\n  password pw\n"),
    ];
    for (name, value) in secrets {
        assert!(is_secret_variable(name, value), "{name}={value}");
        assert!(redact(value) != value || name == "DSN", "{value}");
    }
    let ordinary = [
        ("DATABASE_URL", "postgres://me@db:5432/x"),
        ("PIP_INDEX_URL", "https://pypi.test/simple"),
        ("HTTPS_PROXY", "http://proxy:3128"),
        ("REMOTE", "ssh://git@a.test/b.git"),
        ("REMOTE", "git@a.test:b.git"),
        ("MAIL", "https://a.test/@user/x"),
        ("LS_COLORS", "rs=0:di=01;34:ln=01;36"),
        ("DSN", "warehouse"),
        ("DOCS", "https://a.test/?page=2&keyboard=us"),
        ("NOTE", "the password of this machine; token: none"),
        ("VOLUME", "host:/data/a@b:/mnt"),
        ("BACKUP", "me@host:/data"),
    ];
    for (name, value) in ordinary {
        assert!(!is_secret_variable(name, value), "{name}={value}");
        assert_eq!(redact(value), value);
    }
}

#[test]
fn only_credentials_are_replaced() {
    let cases = [
        (
            "could not reach https://me:pw@a.test:8888/x?b=1",
            "could not reach https://***@a.test:8888/x?b=1",
        ),
        (
            "GET /api?token=abc&x=1 HTTP/1.1",
            "GET /api?token=***&x=1 HTTP/1.1",
        ),
        (
            "`http://u:p@h` and `ws://t@h/x`",
            "`http://***@h` and `ws://***@h/x`",
        ),
        (
            "Authorization: Bearer 0123456789abcdef",
            "Authorization: Bearer ***",
        ),
        (
            r#"{"API_TOKEN": "ab", "PATH": "/bin"}"#,
            r#"{"API_TOKEN": "***", "PATH": "/bin"}"#,
        ),
        (
            r#"{"code": "{\"API_TOKEN\": \"ab\"}"}"#,
            r#"{"code": "{\"API_TOKEN\": \"***\"}"}"#,
        ),
        (
            r#"{"CELLWRIGHT_BRIDGE_TOKEN":"abcd"#,
            r#"{"CELLWRIGHT_BRIDGE_TOKEN":"***"#,
        ),
        ("ä://ö:ü@ß é", "ä://***@ß é"),
        (
            "/tmp/https:/me:pw@a.test: there is no such file",
            "/tmp/https:/***@a.test: there is no such file",
        ),
        (
            "\u{1b}[33mhttps://t@h\u{1b}[0m",
            "\u{1b}[33mhttps://***@h\u{1b}[0m",
        ),
        (
            "'Proxy-Authorization: Basic abc'",
            "'Proxy-Authorization: Basic ***'",
        ),
        (
            "machine h login u password p",
            "machine h login u password ***",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(redact(text), expected);
    }
}
