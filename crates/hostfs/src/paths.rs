//! Paths, interned: calls name files by number, and what a placement policy asks about a
//! path (its directory, its extension) is worked out once.
//!
//! Invariant: a path has one number for as long as the table lives, and its parent has a
//! smaller one. Cost: one hash lookup per interned path, none per call.

use std::collections::HashMap;

/// A path of a [`Paths`] table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub u32);

/// All paths an application names.
#[derive(Clone, Debug)]
pub struct Paths {
    all: Vec<Entry>,
    by_name: HashMap<Box<str>, PathId>,
    components: HashMap<Box<str>, u32>,
}

#[derive(Clone, Debug)]
struct Entry {
    name: Box<str>,
    parent: PathId,
    component: u32,
}

impl Default for Paths {
    fn default() -> Self {
        Self::new()
    }
}

impl Paths {
    /// The root directory, which every table has.
    pub const ROOT: PathId = PathId(0);

    /// A table that knows the root only.
    pub fn new() -> Self {
        let root = Entry { name: "/".into(), parent: Self::ROOT, component: 0 };
        Self {
            all: vec![root],
            by_name: HashMap::from([("/".into(), Self::ROOT)]),
            components: HashMap::from([("".into(), 0)]),
        }
    }

    /// The number of an absolute path such as `/data/a.db`, new or known. Directories on
    /// the way get numbers too. Empty components and a trailing slash do not count.
    pub fn intern(&mut self, path: &str) -> PathId {
        if let Some(id) = self.by_name.get(path) {
            return *id;
        }
        let clean: String =
            path.split('/').filter(|c| !c.is_empty()).flat_map(|c| ["/", c]).collect();
        if clean.is_empty() {
            return Self::ROOT;
        }
        if let Some(id) = self.by_name.get(clean.as_str()) {
            return *id;
        }
        let end = clean.rfind('/').unwrap_or(0);
        let parent = self.intern(&clean[..end]);
        let id = PathId(u32::try_from(self.all.len()).expect("fewer than 2^32 paths"));
        let last = &clean[end + 1..];
        let component = match self.components.get(last) {
            Some(component) => *component,
            None => {
                let new = self.components.len() as u32;
                self.components.insert(last.into(), new);
                new
            }
        };
        self.by_name.insert(clean.as_str().into(), id);
        self.all.push(Entry { name: clean.into(), parent, component });
        id
    }

    /// A number for the last component, the same for equal names in different
    /// directories.
    pub(crate) fn component(&self, id: PathId) -> u32 {
        self.all[id.0 as usize].component
    }

    /// The whole path.
    pub fn path(&self, id: PathId) -> &str {
        &self.all[id.0 as usize].name
    }

    /// The directory a path is in; the root is in itself.
    pub fn parent(&self, id: PathId) -> PathId {
        self.all[id.0 as usize].parent
    }

    /// The last component.
    pub fn name(&self, id: PathId) -> &str {
        let path = self.path(id);
        &path[path.rfind('/').map_or(0, |at| at + 1)..]
    }

    /// What follows the last dot of the last component, if that is not its first
    /// character.
    pub fn extension(&self, id: PathId) -> Option<&str> {
        let name = self.name(id);
        name.rfind('.').filter(|at| *at > 0).map(|at| &name[at + 1..])
    }

    /// How many paths there are, the root included.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Never: the root is always there.
    pub fn is_empty(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_one_number_and_a_parent() {
        let mut paths = Paths::new();
        let file = paths.intern("/var/mail/0001.mbox");
        assert_eq!(paths.intern("/var//mail/0001.mbox/"), file);
        assert_eq!((paths.name(file), paths.extension(file)), ("0001.mbox", Some("mbox")));
        let dir = paths.parent(file);
        assert_eq!(paths.path(dir), "/var/mail");
        assert_eq!(paths.parent(paths.parent(dir)), Paths::ROOT);
        assert_eq!(
            (paths.intern("/"), paths.intern(""), paths.len()),
            (Paths::ROOT, Paths::ROOT, 4)
        );
    }

    #[test]
    fn a_leading_dot_starts_no_extension() {
        let mut paths = Paths::new();
        let hidden = paths.intern("/.profile");
        let plain = paths.intern("/a.b/c");
        assert_eq!((paths.extension(hidden), paths.extension(plain)), (None, None));
    }
}
