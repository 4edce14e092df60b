//! [`Value`]: what a parameter can be. JSON and what JSON lacks: integers of any size, NaN, infinity.

/// The most that lists and mappings may be nested. R allows about fifty brackets.
pub(super) const DEEPEST: usize = 48;

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing: `None`, `NULL`, `nothing`.
    Null,
    /// A truth value.
    Bool(bool),
    /// An integer of any size.
    Integer(Integer),
    /// A number that need not be an integer; also NaN and the infinities.
    Float(f64),
    /// Text.
    Text(String),
    /// Values in order.
    List(Vec<Value>),
    /// Values by name, in order.
    Map(Vec<(String, Value)>),
}

impl Value {
    /// How deeply it is nested: 0 for what holds nothing.
    pub fn height(&self) -> usize {
        // Without recursion, because this is what finds out that there is too much of it.
        let mut highest = 0;
        let mut left = vec![(self, 0)];
        while let Some((value, depth)) = left.pop() {
            match value {
                Self::List(items) => {
                    highest = highest.max(depth + 1);
                    left.extend(items.iter().map(|item| (item, depth + 1)));
                }
                Self::Map(entries) => {
                    highest = highest.max(depth + 1);
                    left.extend(entries.iter().map(|(_, value)| (value, depth + 1)));
                }
                _ => {}
            }
        }
        highest
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
    /// The most digits: Python reads no more of them.
    pub const MOST_DIGITS: usize = 4300;

    /// Reads decimal digits with an optional sign; `None` if it is something else, or has more than
    /// [`Integer::MOST_DIGITS`].
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
        if digits.len() > Self::MOST_DIGITS {
            return None;
        }
        Some(match (negative, digits) {
            (_, "") => Self("0".to_owned()),
            (false, digits) => Self(digits.to_owned()),
            (true, digits) => Self(format!("-{digits}")),
        })
    }

    /// The digits, with `-` before them if it is negative.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it lies between `-most` and `most`.
    pub(super) fn is_within(&self, most: i64) -> bool {
        let number = self.0.parse::<i64>();
        number.is_ok_and(|number| (-most..=most).contains(&number))
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
