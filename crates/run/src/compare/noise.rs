//! What a line says apart from what is different every time.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex_lite::Regex;

use super::rules::{Rule, Rules};

/// Longer lines are compared as they are: looking for patterns in them would take too long.
const LONGEST: usize = 256 * 1024;

/// Something to look for in a line.
struct Noise {
    rule: Rule,
    /// Without one of these in it, in small letters, a line need not be searched.
    hints: &'static [&'static str],
    pattern: &'static str,
    instead: &'static str,
}

const fn noise(
    rule: Rule,
    hints: &'static [&'static str],
    pattern: &'static str,
    instead: &'static str,
) -> Noise {
    Noise {
        rule,
        hints,
        pattern,
        instead,
    }
}

/// Lines that speak of time, where seconds are how long something took.
const SPEAKS_OF_TIME: &[&str] = &[
    "time",
    "took",
    "elapsed",
    "duration",
    "finished",
    "completed",
    "done in",
    "ran in",
    "loaded in",
    "trained in",
    "epoch",
    "step",
    "cpu",
    "seconds",
];

/// In this order: what is found first is not looked at again by others.
const ALL: [Noise; 25] = [
    noise(
        Rule::Cells,
        &["ipykernel_"],
        r#"[^\s"'(]*[/\\]ipykernel_\d+[/\\]\d+\.py"#,
        "<cell>",
    ),
    noise(
        Rule::Cells,
        &["<ipython-input-"],
        r"<ipython-input-\d+-[0-9a-f]+>",
        "<cell>",
    ),
    noise(Rule::Cells, &["in["], r"\bCell In\[\d+\]", "<cell>"),
    noise(
        Rule::Cells,
        &["in ["],
        r"\b(?:Cell |Input )?In \[\d+\]",
        "<cell>",
    ),
    noise(
        Rule::Paths,
        &["/var/folders/"],
        r#"(?:/private)?/var/folders/[^\s"'/]+/[^\s"'/]+/T/[^\s"'/,:;)>]+"#,
        "<temporary>",
    ),
    noise(
        Rule::Paths,
        &["/tmp/"],
        r#"(?:/private)?(?:/var)?/tmp/[^\s"'/,:;)>]+"#,
        "<temporary>",
    ),
    noise(
        Rule::Paths,
        &["\\temp\\"],
        r#"[A-Za-z]:\\[^\s"']*\\AppData\\Local\\Temp\\[^\s"'\\,:;)>]+"#,
        "<temporary>",
    ),
    noise(
        Rule::Paths,
        &["-packages"],
        r#"[^\s"'(<=,]*[/\\](?:site|dist)-packages[/\\]"#,
        "<packages>/",
    ),
    noise(
        Rule::Ids,
        &["-"],
        r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b",
        "<id>",
    ),
    noise(Rule::Ids, &["t_"], r"\bT_[0-9a-f]{5}(_|\b)", "T_<id>$1"),
    noise(
        Rule::Ids,
        &["sk-"],
        r"\bsk-(container|estimator)-id-\d+",
        "sk-$1-id",
    ),
    noise(
        Rule::Addresses,
        &[" at 0x"],
        r" at 0x[0-9a-fA-F]+\b",
        " at <address>",
    ),
    noise(
        Rule::Addresses,
        &["0x"],
        r"\b0x[0-9a-fA-F]{9,16}\b",
        "<address>",
    ),
    noise(
        Rule::Progress,
        &["<"],
        r"\[\d+:\d\d(?::\d\d)?<[^\]]*\]",
        "[<rate>]",
    ),
    noise(
        Rule::Progress,
        &["/s"],
        r"\b\d+(?:\.\d+)?\s?(?:its?|[kKMGT]?i?[Bb]|samples|examples|batches|steps|rows|files)/s(?:ec)?\b",
        "<rate>",
    ),
    noise(
        Rule::Progress,
        &["/it", "/step", "/epoch", "/batch", "/sample"],
        r"\b\d+(?:\.\d+)?\s?(?:[mµμu]?s|sec)/(?:it|step|epoch|batch|sample)\b",
        "<rate>",
    ),
    noise(
        Rule::Dates,
        &["-", "/"],
        r"\b\d{4}([-/])\d\d[-/]\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z\b|\s?[+-]\d\d:?\d\d\b|\sUTC\b)?|\b)",
        "<date>",
    ),
    noise(
        Rule::Dates,
        &[
            "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
        ],
        r"\b(?:(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?,?\s+)?(?:\d{1,2}\s+(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)|(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\s+\d{1,2}),?(?:\s+\d{1,2}:\d\d:\d\d)?(?:\s+[A-Z]{3,4})?\s+\d{4}\b(?:,?\s+\d{1,2}:\d\d(?::\d\d)?)?(?:\s+(?:GMT|UTC|[+-]\d{4}))?",
        "<date>",
    ),
    noise(
        Rule::Dates,
        &["datetime."],
        r"\bdatetime\.(?:datetime|date|time)\([^)]*\)",
        "<date>",
    ),
    noise(
        Rule::Dates,
        &[":"],
        r"\b\d{1,2}:\d\d:\d\d(?:[.,]\d+)?\b(?:\s?[AP]M\b)?",
        "<time of day>",
    ),
    noise(
        Rule::Times,
        &["loop"],
        r"\d[\d,]* loops?,? (?:each|best of \d+)",
        "<loops>",
    ),
    noise(
        Rule::Times,
        &["ns", "µs", "μs", "us", "ms", "second"],
        r"\b\d+(?:\.\d+)?(?:e[+-]?\d+)?\s?(?:ns|µs|μs|us|ms|(?:nano|micro|milli)seconds?)\b",
        "<time>",
    ),
    noise(
        Rule::Times,
        &["eta"],
        r"\bETA:?\s*\d+(?::\d\d)*(?:\.\d+)?\s?(?:s|min|h)?\b",
        "<time left>",
    ),
    noise(
        Rule::Times,
        SPEAKS_OF_TIME,
        r"\b(?:\d+\s?(?:h|hrs?|hours?)\s+)?(?:\d+\s?(?:m|mins?|minutes?)\s*)?\d+(?:\.\d+)?(?:e[+-]?\d+)?\s?(?:s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?)\b",
        "<time>",
    ),
    noise(
        Rule::Times,
        &["elapsed", "duration", "took", "time"],
        r"(?i)\b(elapsed|duration|took|run ?time|(?:wall|cpu|execution|running|run|training|fit|elapsed|total|computation|processing|inference)[ _]time|time[ _](?:taken|elapsed))(\s*(?:\((?:in )?(?:s|sec|seconds|ms)\))?\s*[:=]?\s*)\d+(?:\.\d+)?(?:e[+-]?\d+)?\b",
        "$1$2<time>",
    ),
];

static COMPILED: LazyLock<Vec<(&'static Noise, Regex)>> = LazyLock::new(|| {
    // That all of them are patterns is tested.
    let compile = |noise: &'static Noise| Some((noise, Regex::new(noise.pattern).ok()?));
    ALL.iter().filter_map(compile).collect()
});

/// Sequences that set colours and styles.
static COLOURS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?:\x1b\[|\x{9b})[0-9;:]*m").ok());

/// The text without the sequences that set colours.
pub(super) fn without_colours(text: &str) -> String {
    match &*COLOURS {
        Some(pattern) => pattern.replace_all(text, "").into_owned(),
        None => text.to_owned(),
    }
}

/// Whether a line is there only now and then.
pub(super) fn is_dropped(line: &str, rules: Rules) -> bool {
    rules.has(Rule::Times)
        && (line.starts_with("The slowest run took ") || line.starts_with("Compiler time: "))
}

/// The line with words in place of what is different every time.
pub(super) fn without(line: &str, rules: Rules) -> Cow<'_, str> {
    if line.len() > LONGEST {
        return Cow::Borrowed(line);
    }
    // What `%time` tells has another number of parts each time.
    if rules.has(Rule::Times) {
        for start in ["CPU times: ", "Wall time: "] {
            if line.starts_with(start) {
                return Cow::Borrowed(start);
            }
        }
        if line.contains(" per loop (mean ± std. dev. of ") {
            return Cow::Borrowed("<timeit>");
        }
    }
    let small = line.to_lowercase();
    let mut found = Cow::Borrowed(line);
    for (noise, pattern) in &*COMPILED {
        let may_be_there = || noise.hints.iter().any(|hint| small.contains(hint));
        if rules.has(noise.rule)
            && may_be_there()
            && let Cow::Owned(changed) = pattern.replace_all(&found, noise.instead)
        {
            found = Cow::Owned(changed);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_is_one() {
        assert_eq!(COMPILED.len(), ALL.len());
        assert!(COLOURS.is_some());
    }
}
