//! What somebody may have meant who wrote a name that does not exist.

/// The candidate nearest to a name, if one is near.
pub(crate) fn nearest<'a>(
    name: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let plain = |text: &str| text.to_lowercase().replace('-', "_");
    let name = plain(name);
    candidates
        .map(|candidate| (strsim::damerau_levenshtein(&name, candidate), candidate))
        // A third of the letters may be wrong.
        .filter(|(distance, candidate)| *distance <= candidate.len().max(3) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn slips_are_recognised_and_other_words_are_not() {
        let names = ["timeout", "max_timeout", "session", "owner"];
        let near = |name| nearest(name, names.into_iter());
        assert_eq!(near("timeuot"), Some("timeout"));
        assert_eq!(near("max-timeout"), Some("max_timeout"));
        assert_eq!(near("Sesion"), Some("session"));
        assert_eq!(near("colour"), None);
    }
}
