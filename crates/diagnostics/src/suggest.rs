//! Suggests an existing name for a misspelled one.

/// Returns the candidate that is most similar to `name`, if one is similar enough.
pub fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let normalize = |text: &str| text.to_lowercase().replace('-', "_");
    let name = normalize(name);
    candidates
        .map(|candidate| (strsim::damerau_levenshtein(&name, candidate), candidate))
        // At most a third of the letters may differ.
        .filter(|(distance, candidate)| *distance <= candidate.len().max(3) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn typos_are_recognised_and_other_words_are_not() {
        let names = ["timeout", "max_timeout", "session", "owner"];
        let suggestion = |name| nearest(name, names.into_iter());
        assert_eq!(suggestion("timeuot"), Some("timeout"));
        assert_eq!(suggestion("max-timeout"), Some("max_timeout"));
        assert_eq!(suggestion("Sesion"), Some("session"));
        assert_eq!(suggestion("colour"), None);
    }
}
