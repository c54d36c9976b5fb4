//! The SQLite workload of the paper's Figure 12: 10,000 rows of four strings of 4 KiB, each
//! inserted in a transaction of its own without a journal of SQLite's, and 100 KiB appended
//! to another file after each; then all rows are selected.
//!
//! Which pages an insert writes was taken from SQLite 3.40.1 with pages of 4 KiB, a table
//! without a primary key (161 MiB; the paper says 162 MB), traced with strace over all
//! 10,000 inserts: each changed page once, in ascending order, 4 KiB a call, then one
//! fdatasync. A row is four overflow pages and a cell in a leaf, which holds eight. Left
//! out: 10 inserts of 10,000 rewrite up to two interior pages more.

use flashwise_hostfs::{Call, Fd};

use super::plan::{Files, Plan};
use super::read::Reader;

/// A page of SQLite \[bytes\].
const PAGE: u64 = 4096;
/// Overflow pages of a row.
const OVERFLOW: u64 = 4;
/// Rows of a leaf.
const ROWS_PER_LEAF: u64 = 8;
/// Row whose insert splits the root for the first time.
const FIRST_SPLIT: u64 = 9;
/// Row whose insert puts interior pages under the root.
const SECOND_LEVEL: u64 = 4105;
/// Appended to the other file after each insert \[bytes\].
const DUMMY: u64 = 100 << 10;

/// The reader: buffered, in file order, so the kernel reads windows of 128 KiB ahead while
/// SQLite works on the one before. Its time for a window was set on the contiguous case
/// alone.
pub(crate) const READER: Reader = Reader {
    read_bytes: 128 << 10,
    gap_ns: 143_600,
    one_at_a_time: false,
    ahead: true,
    n_threads: 1,
};

/// Pages that an insert writes.
struct Tree {
    n_pages: u64,
    leaf: u64,
    parent: u64,
}

impl Tree {
    /// Page 1 and the root, as `create table` leaves them.
    const EMPTY: Self = Self { n_pages: 2, leaf: 2, parent: 2 };

    /// Pages the insert of `row` (from 1) writes, in ascending order.
    fn insert(&mut self, row: u64) -> Vec<u64> {
        let is_split = row >= FIRST_SPLIT && (row - FIRST_SPLIT).is_multiple_of(ROWS_PER_LEAF);
        let mut pages = vec![1, if is_split { self.parent } else { self.leaf }];
        let mut n_new = OVERFLOW;
        if is_split {
            // The first one moves the root's rows into a leaf too.
            n_new += if row == FIRST_SPLIT { 2 } else { 1 };
            self.leaf = self.n_pages + n_new;
        }
        if row == SECOND_LEVEL {
            n_new += 2;
            self.parent = self.n_pages + n_new;
        }
        pages.extend(self.n_pages + 1..=self.n_pages + n_new);
        self.n_pages += n_new;
        pages
    }
}

fn write(fd: Fd, page: u64) -> Call {
    Call::Write { fd, offset: (page - 1) * PAGE, len: PAGE }
}

/// A database of `n_rows`, filled beside the other file.
pub(crate) fn inserted(n_rows: u64) -> (Plan, Files) {
    let mut files = Files::default();
    let (db, open_db) = files.create("/db", false);
    let (dummy, open_dummy) = files.create("/dummy", false);
    let mut calls = vec![open_db, open_dummy, write(db, 1), write(db, 2)];
    calls.push(Call::Fdatasync { fd: db });
    let mut tree = Tree::EMPTY;
    for row in 1..=n_rows {
        calls.extend(tree.insert(row).into_iter().map(|page| write(db, page)));
        calls.push(Call::Fdatasync { fd: db });
        calls.extend([Call::Append { fd: dummy, len: DUMMY }, Call::Fdatasync { fd: dummy }]);
    }
    (Plan::new(files.paths.clone(), vec![], vec![calls]), files)
}

/// The same database, copied.
pub(crate) fn copied(n_rows: u64) -> (Plan, Files) {
    let mut tree = Tree::EMPTY;
    (1..=n_rows).for_each(|row| drop(tree.insert(row)));
    let mut files = Files::default();
    let (db, open) = files.create("/db", false);
    let write = Call::Write { fd: db, offset: 0, len: tree.n_pages * PAGE };
    let calls = vec![open, write, Call::Fdatasync { fd: db }];
    (Plan::new(files.paths.clone(), vec![], vec![calls]), files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_those_that_were_traced() {
        let mut tree = Tree::EMPTY;
        let all: Vec<_> = (1..=10_000).map(|row| tree.insert(row)).collect();
        assert_eq!(all[0], [1, 2, 3, 4, 5, 6]);
        assert_eq!(all[8], [1, 2, 35, 36, 37, 38, 39, 40]);
        assert_eq!(all[9], [1, 40, 41, 42, 43, 44]);
        assert_eq!(all[4104], [1, 2, 16932, 16933, 16934, 16935, 16936, 16937, 16938]);
        // Traced: 41,255 pages; one interior page (row 8,193) is left out.
        assert_eq!(tree.n_pages, 41_254);
    }
}
