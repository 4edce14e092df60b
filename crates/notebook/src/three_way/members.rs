//! Two changes of one object, put together member by member.

use std::borrow::Cow;

use crate::json::alter::{Change, Changes, Object, strings};
use crate::json::text::{self, Escapes};
use crate::layout::Style;

/// Objects that mean something only as a whole.
const WHOLE: [&str; 2] = ["kernelspec", "language_info"];

/// Objects nested deeper are taken as a whole: no metadata is, and nesting may be an attack.
const DEEPEST: usize = 16;

/// The same object in three notebooks.
pub(super) struct Three<'n> {
    pub(super) base: Option<Object<'n>>,
    pub(super) ours: Object<'n>,
    pub(super) theirs: Object<'n>,
}

/// What to do with a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Ours,
    Theirs,
    /// Both changed it, and not to the same.
    Both,
}

impl Three<'_> {
    /// Who changed a member.
    pub(super) fn verdict(&self, name: &str) -> Verdict {
        let base = self.base.as_ref();
        if self.ours.agrees(Some(&self.theirs), name) || self.theirs.agrees(base, name) {
            Verdict::Ours
        } else if self.ours.agrees(base, name) {
            Verdict::Theirs
        } else {
            Verdict::Both
        }
    }

    /// The object that a member holds, if it is one on both sides.
    pub(super) fn inner(&self, name: &str) -> Option<Self> {
        Some(Self {
            base: self.base.as_ref().and_then(|base| base.object(name)),
            ours: self.ours.object(name)?,
            theirs: self.theirs.object(name)?,
        })
    }

    /// Our tags, with those that they added and without those that they took away.
    fn tags(&self) -> Option<String> {
        let (our, their) = (
            strings(self.ours.get("tags")?)?,
            strings(self.theirs.get("tags")?)?,
        );
        let old = self.base.as_ref().and_then(|base| base.get("tags"));
        let old = old.and_then(strings).unwrap_or_default();
        let kept = our
            .iter()
            .filter(|tag| their.contains(tag) || !old.contains(tag));
        let added = their
            .iter()
            .filter(|tag| !our.contains(tag) && !old.contains(tag));
        let tags: Vec<String> = kept
            .chain(added)
            .map(|tag| text::encode(tag, Escapes::Utf8))
            .collect();
        Some(format!("[{}]", tags.join(",")))
    }
}

/// Puts changes of objects together.
pub(super) struct Members<'s> {
    pub(super) spacing: &'s Style,
    /// What both changed, by the names that lead to it: ours is kept.
    pub(super) clashes: Vec<String>,
}

impl Members<'_> {
    /// What has to be done to our object, which `path` leads to and whose line is indented by `at`.
    /// The members in `skip` are left alone.
    pub(super) fn merge(
        &mut self,
        three: &Three<'_>,
        skip: &[&str],
        at: Option<&str>,
        path: &mut Vec<String>,
    ) -> Changes {
        let mut changes = Changes::new();
        let inside = three.ours.inside(at, self.spacing);
        let ours = three.ours.names().into_iter();
        let theirs = three.theirs.names().into_iter();
        let only_theirs = theirs.filter(|name| three.ours.get(name).is_none());
        for name in ours.chain(only_theirs).filter(|name| !skip.contains(name)) {
            path.push(name.to_owned());
            let change = self.member(three, inside.as_deref(), path);
            path.pop();
            if let Some(change) = change {
                changes.insert(name.to_owned(), change);
            }
        }
        changes
    }

    /// What has to be done to the member of ours that `path` leads to.
    pub(super) fn member(
        &mut self,
        three: &Three<'_>,
        inside: Option<&str>,
        path: &mut Vec<String>,
    ) -> Option<Change> {
        let name = path.last()?.clone();
        let verdict = three.verdict(&name);
        if verdict == Verdict::Ours {
            return None;
        }
        if verdict == Verdict::Both
            && name == "tags"
            && let Some(tags) = three.tags()
        {
            return Some(Change::Set(self.spacing.lay_out(&tags, inside)));
        }
        // Inside of it, so that what stays the same there keeps its bytes.
        let is_whole = verdict == Verdict::Both && WHOLE.contains(&name.as_str());
        let is_deep = path.len() > DEEPEST;
        if let Some(inner) = three.inner(&name).filter(|_| !is_whole && !is_deep) {
            let changes = self.merge(&inner, &[], inside, path);
            return self.changed(&inner, &changes, inside);
        }
        if verdict == Verdict::Theirs {
            return Some(self.theirs(three, &name, inside));
        }
        self.clashes.push(path.join("."));
        None
    }

    /// Our object with these changes, if there are any.
    pub(super) fn changed(
        &self,
        three: &Three<'_>,
        changes: &Changes,
        at: Option<&str>,
    ) -> Option<Change> {
        let like = three.theirs.names();
        (!changes.is_empty())
            .then(|| Change::Set(three.ours.with(changes, &like, at, self.spacing)))
    }

    /// Their member as it is, in our layout.
    pub(super) fn theirs(&self, three: &Three<'_>, name: &str, inside: Option<&str>) -> Change {
        match three.theirs.get(name) {
            Some(value) => Change::Set(self.spacing.lay_out(&text_of(value), inside)),
            None => Change::Remove,
        }
    }
}

/// Bytes that were checked to be UTF-8 when the file was read.
pub(super) fn text_of(value: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(value)
}
