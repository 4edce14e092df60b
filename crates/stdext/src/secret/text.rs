//! Credentials in a text: in URLs, in `key=value` pairs, in members of JSON, and tokens with a known form.

use std::borrow::Cow;
use std::ops::Range;

use super::name::is_secret_name;

/// The text that replaces a secret.
const REPLACEMENT: &str = "***";

/// Names of query parameters that are secrets although [`is_secret_name`] does not match them.
const PARAMETERS: &[&str] = &[
    "auth",
    "code",
    "key",
    "pass",
    "pw",
    "sig",
    "x-amz-signature",
];

/// Names in connection strings, in lower case, whose value is a secret.
const CONNECTION_KEYS: &[&str] = &[
    "accountkey",
    "passwd",
    "password",
    "pwd",
    "sharedaccesskey",
    "sharedaccesssignature",
];

/// Starts of tokens of well-known services. The rest of a token is at least [`TOKEN_LENGTH_MIN`] long.
const TOKEN_STARTS: &[&str] = &[
    "AIza",
    "eyJ",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "hf_",
    "npm_",
    "pypi-",
    "sk-",
    "sk_live_",
    "xapp-",
    "xoxb-",
    "xoxp-",
];

/// Length of the shortest text that counts as a token because of its start.
const TOKEN_LENGTH_MIN: usize = 20;

/// Whether a text contains credentials: a URL with a password, a token of a known form, a private key.
pub fn contains_credentials(text: &str) -> bool {
    !find(text).is_empty()
}

/// Replaces all credentials in a text, and the values of JSON members with the name of a secret.
pub fn redact(text: &str) -> Cow<'_, str> {
    let mut ranges = find(text);
    ranges.extend(json_members(text));
    if ranges.is_empty() {
        return Cow::Borrowed(text);
    }
    ranges.sort_by_key(|range| (range.start, range.end));
    let mut redacted = String::with_capacity(text.len());
    let mut end = 0;
    for range in ranges {
        if range.start >= end {
            redacted.push_str(&text[end..range.start]);
            redacted.push_str(REPLACEMENT);
        }
        end = end.max(range.end);
    }
    redacted.push_str(&text[end..]);
    Cow::Owned(redacted)
}

/// The places of credentials, in no order; they may overlap.
fn find(text: &str) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    if text.contains(":/") {
        ranges.extend(
            text.match_indices(":/")
                .filter_map(|(at, _)| login(text, at)),
        );
    }
    if text.contains('=') {
        ranges.extend(
            text.match_indices('=')
                .filter_map(|(at, _)| assigned(text, at)),
        );
    }
    ranges.extend(tokens(text));
    ranges.extend(headers(text));
    ranges.extend(netrc(text));
    ranges.extend(private_key(text));
    ranges
}

/// The user name and the password of the URL whose `:/` is at `at`. A path with a URL as its end has one slash in place of two.
/// A user name alone is a secret only where web services accept tokens in its place.
fn login(text: &str, at: usize) -> Option<Range<usize>> {
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+.-".contains(c);
    let scheme = text[..at]
        .rsplit(|c| !is_scheme(c))
        .next()
        .unwrap_or_default();
    let rest = text[at + 1..].trim_start_matches('/');
    let start = text.len() - rest.len();
    let is_url = match start - at {
        2 => !scheme.is_empty(),
        3 => true,
        _ => false,
    };
    if !is_url {
        return None;
    }
    let rest = &rest[..end_of_word(rest)];
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    let end = authority.rfind('@').or_else(|| {
        // A password with a slash is invalid in a URL, but programs accept it.
        let (_, port) = authority.split_once(':')?;
        let is_port = port.bytes().all(|byte| byte.is_ascii_digit());
        rest.rfind('@').filter(|_| !is_port)
    })?;
    let has_password = rest[..end]
        .split_once(':')
        .is_some_and(|(_, password)| !password.is_empty());
    let is_web = ["http", "https", "ws", "wss"]
        .iter()
        // In front of it may be a part of a control sequence, such as a colour.
        .any(|web| scheme.to_ascii_lowercase().ends_with(web));
    (has_password || is_web && end > 0).then(|| start..start + end)
}

/// The value after the `=` at `at`, if it is a secret parameter of a URL or a secret part of a connection string.
fn assigned(text: &str, at: usize) -> Option<Range<usize>> {
    let is_key = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let before = text[..at].trim_end();
    let key = before.rsplit(|c| !is_key(c)).next().unwrap_or_default();
    let lower = key.to_ascii_lowercase();
    let separator = before[..before.len() - key.len()].chars().next_back();
    let is_secret = match separator {
        Some('?' | '&' | '#') => is_secret_name(key) || PARAMETERS.contains(&lower.as_str()),
        None | Some(' ' | ';' | ',' | '"' | '\'') => CONNECTION_KEYS.contains(&lower.as_str()),
        Some(_) => false,
    };
    let start = at + 1;
    let value = &text[start..];
    let end = value
        .find(['&', ';', '#', ','])
        .unwrap_or(value.len())
        .min(end_of_word(value));
    (is_secret && end > 0).then(|| start..start + end)
}

/// Tokens with a known form, and those after `Bearer` and `Basic`.
fn tokens(text: &str) -> Vec<Range<usize>> {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "_-.+/=~".contains(c);
    let mut ranges = Vec::new();
    let mut previous = "";
    let mut start = 0;
    for word in text.split(|c| !is_token(c)) {
        let has_start = TOKEN_STARTS.iter().any(|known| word.starts_with(known));
        // A JSON Web Token has three parts; other text may start with the same three letters.
        let is_known = has_start && (!word.starts_with("eyJ") || word.matches('.').count() == 2);
        let is_announced = ["bearer", "basic"]
            .iter()
            .any(|scheme| previous.eq_ignore_ascii_case(scheme));
        let length_min = if is_announced {
            TOKEN_LENGTH_MIN / 2
        } else {
            TOKEN_LENGTH_MIN
        };
        if (is_known || is_announced) && word.len() >= length_min {
            ranges.push(start..start + word.len());
        }
        if !word.is_empty() {
            previous = word;
        }
        start += word.len();
        start += text[start..].chars().next().map_or(0, char::len_utf8);
    }
    ranges
}

/// The values of HTTP headers with credentials, such as `Authorization: …` and `X-Api-Key: …`.
fn headers(text: &str) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    for (at, _) in text.match_indices(": ") {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let name = text[..at]
            .rsplit(|c| !is_name(c))
            .next()
            .unwrap_or_default();
        let lower = name.to_ascii_lowercase();
        // Single words are also ordinary text: `token: 3`.
        let is_secret = matches!(lower.as_str(), "authorization" | "cookie")
            || lower == "proxy-authorization"
            || name.contains('-') && is_secret_name(name);
        let value = text[at + 1..].trim_start_matches(' ');
        let start = text.len() - value.len();
        let end = value.find(['\n', '\r', '"', '\'']).unwrap_or(value.len());
        let value = &value[..end];
        // The first of two words is the scheme: `Bearer`.
        let scheme = match value.trim_end().split_once(' ') {
            Some((scheme, _)) if lower.ends_with("authorization") => scheme.len() + 1,
            _ => 0,
        };
        if is_secret && end > scheme {
            ranges.push(start + scheme..start + end);
        }
    }
    ranges
}

/// The passwords of lines in the form of `.netrc`: `machine example.org login user password …`.
fn netrc(text: &str) -> Vec<Range<usize>> {
    let words: Vec<&str> = text.split_whitespace().collect();
    if !words.contains(&"password") || !["machine", "login"].iter().all(|key| words.contains(key)) {
        return Vec::new();
    }
    let pairs = words.windows(2).filter(|pair| pair[0] == "password");
    let range = |password: &str| {
        let start = password.as_ptr().addr() - text.as_ptr().addr();
        start..start + password.len()
    };
    pairs.map(|pair| range(pair[1])).collect()
}

/// A private key in the PEM format.
fn private_key(text: &str) -> Option<Range<usize>> {
    let begin = text.find("-----BEGIN ")?;
    let label = text[begin..].find("PRIVATE KEY-----")?;
    let end = text[begin + label..].find("-----END ");
    Some(begin..end.map_or(text.len(), |end| begin + label + end))
}

/// The values of JSON members whose name is that of a secret, also in JSON that is text in JSON.
fn json_members(text: &str) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    for (at, _) in text.match_indices(':') {
        let before = text[..at].trim_end();
        let Some(before) = before.strip_suffix('"') else {
            continue;
        };
        let (before, quote) = match before.strip_suffix('\\') {
            Some(before) => (before, "\\\""),
            None => (before, "\""),
        };
        let name = before.rsplit(['"', '\\']).next().unwrap_or_default();
        let value = text[at + 1..].trim_start();
        let Some(value) = value.strip_prefix(quote).filter(|_| is_secret_name(name)) else {
            continue;
        };
        let start = text.len() - value.len();
        // A value that was cut has no end.
        let length = value.find('"').unwrap_or(value.len());
        let length = length - usize::from(value[..length].ends_with('\\') && quote.len() > 1);
        if length > 0 {
            ranges.push(start..start + length);
        }
    }
    ranges
}

/// Where the word ends with which a text starts: at white space or a quotation mark.
fn end_of_word(text: &str) -> usize {
    let is_end = |c: char| c.is_whitespace() || c.is_control() || "\"'`<>|\\".contains(c);
    text.find(is_end).unwrap_or(text.len())
}
