//! The entries of one directory: how many blocks they fill, and which block a name is in.
//!
//! A directory is one block until that is full, then a hash tree: block 0 becomes the
//! root and every leaf holds the names of a range of hashes; a full leaf gives half of its
//! range to a new block. Source: Linux documentation, ext4 "Hash Tree Directories". The
//! hash here is not ext4's, so which names share a block differs; how many blocks there
//! are and how many a change touches does not. Blocks of a directory are not given back
//! while it lives, as in ext4.
//!
//! Invariant: leaves are sorted by the first hash they hold and cover all hashes.

/// Bytes of a directory block that hold entries: 4 KiB without the checksum entry at its
/// end. Source: Linux documentation, ext4 "Directory Entries", `struct ext4_dir_entry_tail`
/// of 12 bytes.
const BLOCK_BYTES: u32 = 4096 - 12;

/// Bytes of `.` and `..` at the start of a directory.
const DOTS_BYTES: u32 = 24;

/// Entries of the root of a hash tree: 4 KiB less `.`, `..`, the root's header and the
/// checksum, in entries of 8 bytes. Source: as above, `struct dx_root`.
const ROOT_ENTRIES: usize = 507;

/// Entries of an inner node: 4 KiB less an empty entry and the checksum. Source: as
/// above, `struct dx_node`.
const NODE_ENTRIES: usize = 510;

/// Bytes of one entry: a header of 8 and the name, padded to 4. Source: as above.
fn entry_bytes(name_len: usize) -> u32 {
    (8 + name_len as u32).next_multiple_of(4)
}

/// A number that spreads names evenly over `u32` (the finaliser of splitmix64).
pub(crate) fn hash(component: u32) -> u32 {
    let mut z = u64::from(component).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)) as u32
}

#[derive(Clone, Copy, Debug)]
struct Leaf {
    /// First hash.
    from: u32,
    /// Bytes in use.
    used: u32,
    /// Block of the directory.
    block: u32,
}

/// The entries of one directory.
#[derive(Clone, Debug)]
pub(crate) struct Directory {
    leaves: Vec<Leaf>,
    n_blocks: u32,
    n_entries: u32,
}

/// What adding a name did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Added {
    /// Block that holds the name \[block of the directory\].
    pub(crate) block: u32,
    /// Blocks the directory got, from this number on; the one that was split and the
    /// root change too.
    pub(crate) grown: Option<Grown>,
}

/// How a directory grew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grown {
    /// First new block.
    pub(crate) first: u32,
    /// Number of new blocks.
    pub(crate) n: u32,
    /// Block whose entries were split.
    pub(crate) split: u32,
}

impl Directory {
    /// A directory of one block with `.` and `..`.
    pub(crate) fn new() -> Self {
        let leaf = Leaf { from: 0, used: DOTS_BYTES, block: 0 };
        Self { leaves: vec![leaf], n_blocks: 1, n_entries: 0 }
    }

    /// Blocks.
    pub(crate) fn n_blocks(&self) -> u32 {
        self.n_blocks
    }

    /// Names other than `.` and `..`.
    pub(crate) fn n_entries(&self) -> u32 {
        self.n_entries
    }

    fn leaf(&self, component: u32) -> usize {
        let hash = hash(component);
        self.leaves.partition_point(|leaf| leaf.from <= hash) - 1
    }

    /// The block that holds a name.
    pub(crate) fn block_of(&self, component: u32) -> u32 {
        self.leaves[self.leaf(component)].block
    }

    /// How the directory will grow when a name is added.
    pub(crate) fn growth(&self, component: u32, name_len: usize) -> Option<Grown> {
        let at = self.leaf(component);
        let is_full = self.leaves[at].used + entry_bytes(name_len) > BLOCK_BYTES;
        is_full.then(|| self.grown(at))
    }

    /// Adds a name that is not there.
    pub(crate) fn add(&mut self, component: u32, name_len: usize) -> Added {
        let bytes = entry_bytes(name_len);
        let mut at = self.leaf(component);
        let mut grown = None;
        if self.leaves[at].used + bytes > BLOCK_BYTES {
            grown = Some(self.split(at));
            at = self.leaf(component);
        }
        self.leaves[at].used += bytes;
        self.n_entries += 1;
        Added { block: self.leaves[at].block, grown }
    }

    /// What splitting a leaf will do.
    fn grown(&self, at: usize) -> Grown {
        // Entries leave block 0 of a small directory, which becomes the root of the tree.
        let is_small = self.n_blocks == 1;
        let n_leaves = self.leaves.len() + 1;
        // With more leaves than the root holds, nodes come between.
        let is_node_full = n_leaves > ROOT_ENTRIES && n_leaves % NODE_ENTRIES == 1;
        Grown {
            first: self.n_blocks,
            n: 1 + u32::from(is_small) + u32::from(is_node_full),
            split: if is_small { 1 } else { self.leaves[at].block },
        }
    }

    /// A full leaf gives the upper half of its hashes to a new block.
    fn split(&mut self, at: usize) -> Grown {
        let grown = self.grown(at);
        let leaf = &mut self.leaves[at];
        let mut new_block = grown.first;
        if self.n_blocks == 1 {
            (leaf.block, leaf.used) = (1, leaf.used - DOTS_BYTES);
            new_block = 2;
        }
        let leaf = *leaf;
        let end = self.leaves.get(at + 1).map_or(1 << 32, |next| u64::from(next.from));
        let middle = (u64::from(leaf.from) + end) / 2;
        self.leaves[at].used = leaf.used / 2;
        let used = leaf.used - leaf.used / 2;
        self.leaves.insert(at + 1, Leaf { from: middle as u32, used, block: new_block });
        self.n_blocks += grown.n;
        grown
    }

    /// Removes a name that is there; the block it was in.
    pub(crate) fn remove(&mut self, component: u32, name_len: usize) -> u32 {
        let at = self.leaf(component);
        let leaf = &mut self.leaves[at];
        leaf.used = leaf.used.saturating_sub(entry_bytes(name_len));
        self.n_entries -= 1;
        leaf.block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_grows_as_its_names_need() {
        let mut dir = Directory::new();
        // 8-byte names take 16 bytes: 253 fit beside the dots.
        for name in 0..253 {
            assert_eq!(dir.add(name, 8), Added { block: 0, grown: None });
        }
        let added = dir.add(253, 8);
        assert_eq!(added.grown, Some(Grown { first: 1, n: 2, split: 1 }));
        for name in 254..10_000 {
            dir.add(name, 8);
        }
        // Leaves of a hash tree are between half full and full, near ln 2 of it.
        let fill = 10_000.0 * 16.0 / (f64::from(dir.n_blocks() - 1) * 4084.0);
        assert!((0.6..0.8).contains(&fill), "{fill}");
        assert_eq!(dir.n_entries(), 10_000);
        for name in 0..10_000 {
            let block = dir.block_of(name);
            assert_eq!(dir.remove(name, 8), block);
            assert!(block > 0 && block < dir.n_blocks());
        }
        assert_eq!(dir.n_entries(), 0);
    }
}
