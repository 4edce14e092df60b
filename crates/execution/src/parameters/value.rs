//! [`Value`]: the value of a parameter. JSON, and in addition integers of any size, NaN and infinities.

/// Maximum nesting of lists and mappings. R accepts about fifty brackets.
pub(super) const NESTING_LIMIT: usize = 48;

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// No value: `None`, `NULL`, `nothing`.
    Null,
    /// A Boolean.
    Bool(bool),
    /// An integer of any size.
    Integer(Integer),
    /// A floating point number, also NaN and the infinities.
    Float(f64),
    /// Text.
    Text(String),
    /// Values in order.
    List(Vec<Value>),
    /// Values by name, in order.
    Map(Vec<(String, Value)>),
}

impl Value {
    /// Nesting depth of lists and mappings; 0 for a scalar.
    pub fn depth(&self) -> usize {
        // Not recursive, because the value may be nested too deeply for recursion.
        let mut deepest = 0;
        let mut pending = vec![(self, 0)];
        while let Some((value, depth)) = pending.pop() {
            match value {
                Self::List(items) => {
                    deepest = deepest.max(depth + 1);
                    pending.extend(items.iter().map(|item| (item, depth + 1)));
                }
                Self::Map(entries) => {
                    deepest = deepest.max(depth + 1);
                    pending.extend(entries.iter().map(|(_, value)| (value, depth + 1)));
                }
                _ => {}
            }
        }
        deepest
    }
}

impl From<serde_json::Value> for Value {
    fn from(json: serde_json::Value) -> Self {
        use serde_json::Value as Json;
        match json {
            Json::Null => Self::Null,
            Json::Bool(truth) => Self::Bool(truth),
            Json::Number(number) => match Integer::parse(&number.to_string()) {
                Some(integer) => Self::Integer(integer),
                None => Self::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Self::Text(text),
            Json::Array(items) => Self::List(items.into_iter().map(Self::from).collect()),
            Json::Object(entries) => Self::Map(
                entries
                    .into_iter()
                    .map(|(name, value)| (name, Self::from(value)))
                    .collect(),
            ),
        }
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self::Bool(truth)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Integer(number.into())
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Float(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// An integer, as its decimal digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Integer(String);

impl Integer {
    /// Maximum number of digits: Python parses no more.
    pub const DIGIT_LIMIT: usize = 4300;

    /// Parses decimal digits with an optional sign. Returns `None` for other text, or for more than
    /// [`Integer::DIGIT_LIMIT`] digits.
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, digits) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let digits = digits.trim_start_matches('0');
        if digits.len() > Self::DIGIT_LIMIT {
            return None;
        }
        Some(match (negative, digits) {
            (_, "") => Self("0".to_owned()),
            (false, digits) => Self(digits.to_owned()),
            (true, digits) => Self(format!("-{digits}")),
        })
    }

    /// The digits, with a leading `-` if the integer is negative.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the integer is between `-limit` and `limit`.
    pub(super) fn fits_within(&self, limit: i64) -> bool {
        let number = self.0.parse::<i64>();
        number.is_ok_and(|number| (-limit..=limit).contains(&number))
    }
}

impl From<i64> for Integer {
    fn from(number: i64) -> Self {
        Self(number.to_string())
    }
}

impl From<u128> for Integer {
    fn from(number: u128) -> Self {
        Self(number.to_string())
    }
}
