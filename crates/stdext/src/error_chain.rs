//! The causes of an error.

use std::error::Error;
use std::iter::successors;

/// Returns the causes of an error, the outermost first. The error itself is not among them.
pub fn causes(error: &dyn Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    successors(error.source(), |&cause| cause.source())
}

/// Formats an error and its causes in one line, separated by colons.
pub fn format(error: &dyn Error) -> String {
    let mut text = error.to_string();
    for cause in causes(error) {
        text.push_str(": ");
        text.push_str(&cause.to_string());
    }
    text
}

#[cfg(test)]
mod tests {
    use std::{fmt, io};

    use super::*;

    #[derive(Debug)]
    struct Outer(io::Error);

    impl fmt::Display for Outer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("outer")
        }
    }

    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn causes_follow_from_the_outermost_to_the_innermost() {
        let error = Outer(io::Error::other(Outer(io::Error::other("inner"))));
        let found: Vec<String> = causes(&error).map(ToString::to_string).collect();
        // `io::Error` formats the error that it wraps, and names the source of that error as its own.
        assert_eq!(found, ["outer", "inner"]);
        assert_eq!(format(&error), "outer: outer: inner");
        assert_eq!(format(&io::Error::other("alone")), "alone");
    }
}
