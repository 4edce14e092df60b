//! Tests of servers in settings: what they define, and what a project may define.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::*;
use crate::settings::{SettingsError, SettingsSources};

const TOKEN: &str = "s3same-token";

struct Fixture {
    dir: tempfile::TempDir,
    trusted: bool,
}

impl Fixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("p/.cellwright")).unwrap();
        Self {
            dir,
            trusted: false,
        }
    }

    fn trusted() -> Self {
        Self {
            trusted: true,
            ..Self::new()
        }
    }

    fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    fn settings(&self, user: &str, project: &str) -> Result<Settings, SettingsError> {
        Settings::load(&SettingsSources {
            user_file: Some(self.file("config.toml", user)),
            project_file: Some(self.file("p/.cellwright/config.toml", project)),
            read_variable: &|_| None,
            is_trusted: &|_, _| self.trusted,
        })
    }

    fn resolve(&self, user: &str, choice: &str) -> Result<ResolvedServer, Failure> {
        let settings = self.settings(user, "").unwrap();
        resolve(&settings, &ServerChoice::new(choice))
    }
}

fn token(resolved: &ResolvedServer) -> Option<(&str, &str)> {
    match &resolved.server.credentials {
        Credentials::Token { token, scheme } => Some((token.text(), scheme)),
        Credentials::None | Credentials::Password(_) => None,
    }
}

#[test]
fn a_server_has_the_values_of_its_table() {
    let fixture = Fixture::new();
    fixture.file("token", &format!("  {TOKEN}\n"));
    fixture.file("header", "h1\n");
    let user = "[server.lab]\nurl = \"https://Lab.Example/user/me/lab\"\ntoken_file = \"token\"\nauth_scheme = \"Bearer\"\n\
                headers = { X-A = \"1\" }\nheader_files = { X-B = \"header\" }\nca = \"ca.pem\"\nproxy = \"none\"\n\
                kernel = \"ir\"\nrequest_timeout = 3\nfiles = \"local\"\nenv = [\"STAGE\"]";
    let resolved = fixture.resolve(user, "lab").unwrap();
    let server = &resolved.server;
    assert_eq!(server.label(), "`lab` (https://lab.example/user/me/)");
    assert_eq!(token(&resolved), Some((TOKEN, "Bearer")));
    let headers = server.headers.iter();
    let headers: Vec<_> = headers
        .map(|(name, value)| (name.as_str(), value.text()))
        .collect();
    assert_eq!(headers, [("X-A", "1"), ("X-B", "h1")]);
    // Relative to the file with the settings.
    assert_eq!(server.tls.ca, Some(fixture.dir.path().join("ca.pem")));
    assert_eq!(server.proxy, ProxyOptions::default());
    assert_eq!(server.request_timeout.as_secs(), 3);
    assert_eq!(resolved.kernel.as_deref(), Some("ir"));
    assert_eq!(resolved.files, FileAccess::ThisMachine);
    assert_eq!(resolved.env, ["STAGE"]);
    assert!(resolved.notices.is_empty(), "{:?}", resolved.notices);
    assert!(!format!("{resolved:?}").contains(TOKEN));
}

#[test]
fn a_token_comes_from_a_command_or_from_the_url() {
    let fixture = Fixture::new();
    let lines = [
        format!("token_command = [\"echo\", \"{TOKEN}\"]"),
        format!("token_command = \"echo nothing >&2; echo {TOKEN}\""),
        format!("token = \"{TOKEN}\""),
    ];
    for line in lines {
        let user = format!("[server.a]\nurl = \"http://h/\"\n{line}");
        let resolved = fixture.resolve(&user, "a").unwrap();
        assert_eq!(token(&resolved), Some((TOKEN, "token")), "{line}");
    }
    let user = format!("[server.a]\nurl = \"http://h/lab?token={TOKEN}\"");
    let resolved = fixture.resolve(&user, "a").unwrap();
    assert_eq!(token(&resolved), Some((TOKEN, "token")));
    // In an argument, other users can see it.
    let resolved = fixture
        .resolve("", &format!("http://h/?token={TOKEN}"))
        .unwrap();
    assert_eq!(token(&resolved), Some((TOKEN, "token")));
    assert_eq!(resolved.notices.len(), 1);
    assert!(!resolved.notices[0].text.contains(TOKEN));
}

#[test]
fn a_url_has_the_settings_of_the_server_with_that_url() {
    let fixture = Fixture::new();
    let user = "[server.a]\nurl = \"http://h:1/x/\"\ntoken = \"t\"\n[gateway]\ntoken = \"other\"\nurl = \"http://g/\"";
    let resolved = fixture.resolve(user, "http://H:1/x").unwrap();
    assert_eq!(resolved.server.name.as_deref(), Some("a"));
    assert_eq!(token(&resolved), Some(("t", "token")));
    // The token of another server is not sent.
    let resolved = fixture.resolve(user, "http://h:2/x").unwrap();
    assert_eq!(token(&resolved), None);
    let resolved = fixture.resolve(user, "http://g").unwrap();
    assert_eq!(token(&resolved), Some(("other", "token")));
}

#[test]
fn errors_name_the_problem_and_no_secret() {
    let fixture = Fixture::new();
    fixture.file("empty", " \n");
    let cases = [
        ("token_file = \"missing\"", "cannot be read from"),
        ("token_file = \"empty\"", "it is empty"),
        ("token_command = \"echo s3same; exit 3\"", "exit status: 3"),
        ("token_command = [\"true\"]", "it printed nothing"),
        ("token_command = [\"no-such-program\"]", "no-such-program"),
        (
            "token = \"s3same\"\ntoken_file = \"x\"",
            "both `token` and `token_file`",
        ),
    ];
    for (line, expected) in cases {
        let user = format!("[server.a]\nurl = \"http://h/\"\n{line}");
        let failure = fixture.resolve(&user, "a").unwrap_err();
        let text = format!("{failure:?}");
        assert!(text.contains(expected), "{line}: {text}");
        assert!(!text.contains("s3same"), "{text}");
    }
    for choice in [
        "ftp://h/?token=s3same",
        "http://",
        "http://a b?token=s3same",
    ] {
        let text = format!("{:?}", fixture.resolve("", choice).unwrap_err());
        assert!(!text.contains("s3same"), "{text}");
    }
    let user = "[server.work]\nurl = \"http://h/\"";
    let failure = fixture.resolve(user, "wrok").unwrap_err();
    assert_eq!(failure.hints[0].for_command_line(), "did you mean `work`?");
}

#[test]
fn a_file_that_others_can_read_gives_a_notice() {
    let fixture = Fixture::new();
    let path = fixture.file("token", TOKEN);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let user = "[server.a]\nurl = \"http://h/\"\ntoken_file = \"token\"";
    let resolved = fixture.resolve(user, "a").unwrap();
    assert_eq!(resolved.notices[0].kind, NoticeKind::ServerCredentials);
    assert!(resolved.notices[0].text.contains("chmod 600"));
}

#[test]
fn a_project_defines_servers_only_if_it_is_trusted() {
    let project =
        "[server.lab]\nurl = \"http://evil/\"\n[gateway]\nserver = \"lab\"\nurl = \"http://evil/\"";
    let fixture = Fixture::new();
    let settings = fixture.settings("", project).unwrap();
    assert!(settings.servers().is_empty());
    assert!(resolve_default(&settings).unwrap().is_none());
    let notice = crate::settings::describe_ignored(&settings).unwrap();
    assert!(notice.text.contains("`server.lab` (line 1)"), "{notice:?}");
    assert!(notice.text.contains("`gateway.url`"), "{notice:?}");
    let settings = Fixture::trusted().settings("", project).unwrap();
    let resolved = resolve_default(&settings).unwrap().unwrap();
    assert_eq!(resolved.server.url.to_string(), "http://evil/");
}

#[test]
fn a_project_redirects_no_server_and_receives_no_token_of_the_user() {
    let fixture = Fixture::trusted();
    let user = "[server.lab]\nurl = \"http://mine/\"\ntoken = \"t\"\n[gateway]\ntoken = \"mine\"";
    let project = "[server.lab]\nurl = \"http://evil/\"\n[gateway]\nurl = \"http://evil/\"";
    let settings = fixture.settings(user, project).unwrap();
    let resolved = resolve_named(&settings, "lab").unwrap();
    assert_eq!(resolved.server.url.to_string(), "http://mine/");
    let notice = crate::settings::describe_ignored(&settings).unwrap();
    assert!(notice.text.contains("your own settings"), "{notice:?}");
    let resolved = resolve_default(&settings).unwrap().unwrap();
    assert_eq!(resolved.server.url.to_string(), "http://evil/");
    assert_eq!(token(&resolved), None);
    assert_eq!(resolved.notices.len(), 1);
}

#[test]
fn credentials_and_commands_in_a_project_are_errors_even_if_it_is_trusted() {
    for line in [
        "token = \"x\"",
        "token_file = \"x\"",
        "token_command = \"x\"",
        "password_file = \"x\"",
        "headers = { A = \"x\" }",
        "header_files = { A = \"x\" }",
        "client_cert = \"x\"",
        "client_key = \"x\"",
        "proxy = \"http://x\"",
        "env = [\"*\"]",
    ] {
        let project = format!("[server.lab]\nurl = \"http://h/\"\n{line}");
        let key = line.split(' ').next().unwrap();
        let found = Fixture::trusted().settings("", &project);
        let Err(SettingsError::NotForProjects { key: found, .. }) = found else {
            panic!("{line} is accepted");
        };
        assert_eq!(found, format!("server.lab.{key}"));
    }
}

#[test]
fn tables_of_servers_are_checked() {
    let fixture = Fixture::new();
    let cases = [
        ("[server.a]\nurl = 1", "Bad value of `server.a.url`"),
        (
            "[server.a]\nulr = \"http://h/\"",
            "Unknown setting `server.a.ulr`",
        ),
        ("[server.a]\ntoken = \"x\"", "has no URL"),
        (
            "[server.\"a/b\"]\nurl = \"http://h/\"",
            "Bad name of a server",
        ),
        ("server = 1", "Bad value of `server.NAME`"),
        (
            "[server]\nurl = \"http://h/\"",
            "Bad value of `server.NAME`",
        ),
        (
            "[server.a]\nurl = \"http://h/\"\nfiles = \"x\"",
            "Bad value of `server.a.files`",
        ),
        (
            "[server.a]\nurl = \"http://h/\"\ntoken_command = []",
            "Bad value of `server.a.token_command`",
        ),
    ];
    for (user, expected) in cases {
        let failure = Failure::from(fixture.settings(user, "").unwrap_err());
        assert!(failure.message.contains(expected), "{user}: {failure:?}");
    }
}
