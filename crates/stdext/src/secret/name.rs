//! Names that mark their value as a secret. A name is split into words at everything but letters and digits.

/// Parts of a name, without separators, that mark its value as a secret wherever they are.
const PARTS: &[&str] = &[
    "APIKEY",
    "SECRET",
    "TOKEN",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "PASSCODE",
    "CREDENTIAL",
    "ACCESSKEY",
    "PRIVATEKEY",
    "COOKIE",
    "AUTHKEY",
    "CONNECTIONSTRING",
    "CONNSTR",
    "WEBHOOK",
    "BEARER",
    "MNEMONIC",
];

/// Words that contain one of [`PARTS`] and have nothing to do with secrets.
const HARMLESS_PARTS: &[&str] = &[
    "TOKENIZE",
    "MAXTOKENS",
    "MINTOKENS",
    "NUMTOKENS",
    "TOKENLIMIT",
    "COOKIECUTTER",
];

/// Separate words that mark a value as a secret wherever they are.
const WORDS: &[&str] = &["JWT", "PAT", "CRED", "CREDS", "SIGNING"];

/// Final words that mark a value as a secret.
const FINAL_WORDS: &[&str] = &[
    "AUTH",
    "BASICAUTH",
    "HTTPAUTH",
    "OAUTH",
    "OTP",
    "PRIVATE",
    "PW",
    "SAS",
    "TOTP",
];

/// Ends of the final word that mark a value as a secret: `DB_PASS`, `SSHPASS`, `MYSQL_PWD`, `OPENAIKEY`.
const FINAL_WORD_ENDS: &[&str] = &["KEY", "PASS", "PWD"];

/// Final words with one of [`FINAL_WORD_ENDS`] that have nothing to do with secrets. A variable `…_ASKPASS` names a program.
const HARMLESS_FINAL_WORDS: &[&str] = &[
    "ASKPASS", "BYPASS", "COMPASS", "DONKEY", "HOTKEY", "JOCKEY", "LESSKEY", "MONKEY", "OVERPASS",
    "TURKEY",
];

/// Final words that say how a value is encoded, not what it is.
const ENCODINGS: &[&str] = &["B64", "BASE64", "HEX", "PEM"];

/// Ends of names whose value is a path. The path of a file with a secret is not a secret, and neither is the socket of an
/// agent, which programs need to use keys that they cannot read.
const PATH_ENDS: &[&str] = &["_FILE", "_PATH", "_DIR", "_SOCK"];

/// Names that would match and are no secrets: directories, a path, and the public key of Python's releases.
const HARMLESS_NAMES: &[&str] = &["PWD", "OLDPWD", "GOOGLE_APPLICATION_CREDENTIALS", "GPG_KEY"];

/// Names of secrets that no rule finds.
const SECRET_NAMES: &[&str] = &["DOCKER_AUTH_CONFIG"];

/// Whether a name marks its value as a secret.
pub fn is_secret_name(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    if SECRET_NAMES.contains(&upper.as_str()) {
        return true;
    }
    let is_path = PATH_ENDS.iter().any(|end| upper.ends_with(end));
    if is_path || HARMLESS_NAMES.contains(&upper.as_str()) {
        return false;
    }
    let words = words(&upper);
    let mut joined = words.concat();
    for part in HARMLESS_PARTS {
        joined = joined.replace(part, "");
    }
    let Some(last) = words.last() else {
        return false;
    };
    let is_public = words.iter().any(|word| word.starts_with("PUBLI"));
    let has_end = FINAL_WORD_ENDS.iter().any(|end| last.ends_with(end));
    PARTS.iter().any(|part| joined.contains(part))
        || words.iter().any(|word| WORDS.contains(word))
        || FINAL_WORDS.contains(last)
        || has_end && !is_public && !HARMLESS_FINAL_WORDS.contains(last)
}

/// Whether a variable names a data source, whose value may contain a password.
pub(super) fn is_data_source(name: &str) -> bool {
    words(&name.to_ascii_uppercase()).contains(&"DSN")
}

/// The words of a name, without numbers at their ends and without encodings at the end of the name.
fn words(upper: &str) -> Vec<&str> {
    let split = upper.split(|c: char| !c.is_ascii_alphanumeric());
    let mut words: Vec<&str> = split.filter(|word| !word.is_empty()).collect();
    while words.len() > 1 && words.last().is_some_and(|last| ENCODINGS.contains(last)) {
        words.pop();
    }
    let plain = words
        .into_iter()
        .map(|word| word.trim_end_matches(|c: char| c.is_ascii_digit()));
    plain.filter(|word| !word.is_empty()).collect()
}
