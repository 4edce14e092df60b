//! [`Cookies`]: the cookies that a server has set.

use hyper::header::HeaderValue;

/// The most cookies that are kept. Jupyter sets two or three.
const COOKIES_MAX: usize = 32;

/// The cookies that a server has set. They are sent with all requests: each client talks to one server.
#[derive(Debug, Default)]
pub(crate) struct Cookies(Vec<(String, String)>);

impl Cookies {
    /// Stores the cookies of an answer.
    pub(crate) fn update<'h>(&mut self, headers: impl IntoIterator<Item = &'h HeaderValue>) {
        for header in headers {
            let Some((name, value)) = header.to_str().ok().and_then(parse) else {
                continue;
            };
            self.0.retain(|(other, _)| other != name);
            if !value.is_empty() && self.0.len() < COOKIES_MAX {
                self.0.push((name.to_owned(), value.to_owned()));
            }
        }
    }

    /// The value of a cookie.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The header of a request.
    pub(crate) fn header(&self) -> Option<HeaderValue> {
        let pairs = self.0.iter().map(|(name, value)| format!("{name}={value}"));
        let text = pairs.collect::<Vec<_>>().join("; ");
        let mut value = HeaderValue::from_str(&text).ok()?;
        value.set_sensitive(true);
        (!text.is_empty()).then_some(value)
    }
}

/// Name and value of a `Set-Cookie` header. Lifetime, path and other attributes do not matter to one command.
fn parse(header: &str) -> Option<(&str, &str)> {
    let pair = header.split(';').next()?;
    let (name, value) = pair.split_once('=')?;
    let value = value.trim().trim_matches('"');
    Some((name.trim(), value)).filter(|(name, _)| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_cookies_replace_earlier_ones() {
        let mut cookies = Cookies::default();
        let set = |text: &str| HeaderValue::from_str(text).unwrap();
        cookies.update(&[
            set("_xsrf=1|2; Path=/"),
            set("user=\"a=b\"; HttpOnly"),
            set("x"),
        ]);
        assert_eq!(cookies.get("user"), Some("a=b"));
        cookies.update(&[set("_xsrf=3"), set("user=; Max-Age=0")]);
        assert_eq!(cookies.header().unwrap(), "_xsrf=3");
    }
}
