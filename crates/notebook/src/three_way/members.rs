//! Merges two changes of one object, member by member.

use std::borrow::Cow;

use crate::json::object_edit::{MemberChange, MemberChanges, Object, string_array};
use crate::json::style::Style;
use crate::json::text::{self, Escapes};

/// Objects that are merged as a whole.
const ATOMIC_OBJECTS: [&str; 2] = ["kernelspec", "language_info"];

/// Objects nested deeper are merged as a whole: real metadata is shallower, and deep nesting may
/// be an attack.
const DEPTH_LIMIT: usize = 16;

/// The same object in base, ours and theirs.
pub(super) struct ThreeObjects<'n> {
    pub(super) base: Option<Object<'n>>,
    pub(super) ours: Object<'n>,
    pub(super) theirs: Object<'n>,
}

/// How a member is merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MemberMerge {
    KeepOurs,
    TakeTheirs,
    /// Both sides changed it differently.
    Conflict,
}

impl ThreeObjects<'_> {
    /// Decides how a member is merged.
    pub(super) fn decide(&self, name: &str) -> MemberMerge {
        let base = self.base.as_ref();
        if self.ours.same_member(Some(&self.theirs), name) || self.theirs.same_member(base, name) {
            MemberMerge::KeepOurs
        } else if self.ours.same_member(base, name) {
            MemberMerge::TakeTheirs
        } else {
            MemberMerge::Conflict
        }
    }

    /// The nested objects of a member, if it is an object on both sides.
    pub(super) fn nested(&self, name: &str) -> Option<Self> {
        Some(Self {
            base: self.base.as_ref().and_then(|base| base.get_object(name)),
            ours: self.ours.get_object(name)?,
            theirs: self.theirs.get_object(name)?,
        })
    }

    /// Our tags, plus those that they added, minus those that they removed.
    fn merged_tags(&self) -> Option<String> {
        let (our, their) = (
            string_array(self.ours.get("tags")?)?,
            string_array(self.theirs.get("tags")?)?,
        );
        let old = self.base.as_ref().and_then(|base| base.get("tags"));
        let old = old.and_then(string_array).unwrap_or_default();
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

/// Merges objects.
pub(super) struct MemberMerger<'s> {
    pub(super) style: &'s Style,
    /// Paths of the members that both sides changed; ours is kept.
    pub(super) conflicts: Vec<String>,
}

impl MemberMerger<'_> {
    /// The changes to apply to our object at `path`, whose line is indented by `at`. The members
    /// in `skip` are left alone.
    pub(super) fn merge(
        &mut self,
        three: &ThreeObjects<'_>,
        skip: &[&str],
        indentation: Option<&str>,
        path: &mut Vec<String>,
    ) -> MemberChanges {
        let mut changes = MemberChanges::new();
        let member_indentation = three.ours.member_indentation(indentation, self.style);
        let ours = three.ours.names().into_iter();
        let theirs = three.theirs.names().into_iter();
        let only_theirs = theirs.filter(|name| three.ours.get(name).is_none());
        for name in ours.chain(only_theirs).filter(|name| !skip.contains(name)) {
            path.push(name.to_owned());
            let change = self.member(three, member_indentation.as_deref(), path);
            path.pop();
            if let Some(change) = change {
                changes.insert(name.to_owned(), change);
            }
        }
        changes
    }

    /// The change to apply to our member at `path`.
    pub(super) fn member(
        &mut self,
        three: &ThreeObjects<'_>,
        member_indentation: Option<&str>,
        path: &mut Vec<String>,
    ) -> Option<MemberChange> {
        let name = path.last()?.clone();
        let decision = three.decide(&name);
        if decision == MemberMerge::KeepOurs {
            return None;
        }
        if decision == MemberMerge::Conflict
            && name == "tags"
            && let Some(tags) = three.merged_tags()
        {
            return Some(MemberChange::Set(
                self.style.format(&tags, member_indentation),
            ));
        }
        // Recurse, so that unchanged members keep their bytes.
        let is_whole = decision == MemberMerge::Conflict && ATOMIC_OBJECTS.contains(&name.as_str());
        let is_deep = path.len() > DEPTH_LIMIT;
        if let Some(inner) = three.nested(&name).filter(|_| !is_whole && !is_deep) {
            let changes = self.merge(&inner, &[], member_indentation, path);
            return self.changed_object(&inner, &changes, member_indentation);
        }
        if decision == MemberMerge::TakeTheirs {
            return Some(self.take_theirs(three, &name, member_indentation));
        }
        self.conflicts.push(path.join("."));
        None
    }

    /// Sets our object with these changes, if there are any.
    pub(super) fn changed_object(
        &self,
        three: &ThreeObjects<'_>,
        changes: &MemberChanges,
        indentation: Option<&str>,
    ) -> Option<MemberChange> {
        let like = three.theirs.names();
        (!changes.is_empty()).then(|| {
            MemberChange::Set(
                three
                    .ours
                    .with_changes(changes, &like, indentation, self.style),
            )
        })
    }

    /// Their member, in our layout.
    pub(super) fn take_theirs(
        &self,
        three: &ThreeObjects<'_>,
        name: &str,
        member_indentation: Option<&str>,
    ) -> MemberChange {
        match three.theirs.get(name) {
            Some(value) => {
                MemberChange::Set(self.style.format(&as_text(value), member_indentation))
            }
            None => MemberChange::Remove,
        }
    }
}

/// The text of a value. The scan has checked that it is UTF-8.
pub(super) fn as_text(value: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(value)
}
