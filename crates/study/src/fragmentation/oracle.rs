//! What must hold for any input whatever: the check that the fuzz target runs, as a plain
//! function, so that the test suite runs the same code. It panics when an invariant is
//! broken.

use std::fmt::Write as _;

use super::extents::steps;
use super::layout::{FileExtent, Layout};

/// Any bytes as the output of `filefrag -v`. If they are one: extents follow one another in
/// the file and share no block, written out again they read the same, and what goes onto the
/// drive is what holds data, none of it twice. If not: the error names a line that exists.
pub fn layout(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match Layout::parse(&text) {
        Ok(layout) => {
            check_extents(&layout.extents);
            assert_eq!(Layout::parse(&written_out(&layout)).as_ref(), Ok(&layout));
            check_steps(&layout);
        }
        Err(e) => {
            assert!((1..=text.lines().count().max(1)).contains(&e.line), "{e}");
            assert!(!e.expected.is_empty() && !e.found.chars().any(char::is_control), "{e}");
        }
    }
}

fn check_extents(extents: &[FileExtent]) {
    assert!(extents.iter().any(|e| e.is_written));
    for (i, a) in extents.iter().enumerate() {
        assert!(a.len > 0);
        for b in &extents[..i] {
            assert!(b.logical + b.len <= a.logical, "{a:?} {b:?}");
            let apart = b.physical + b.len <= a.physical || a.physical + a.len <= b.physical;
            assert!(apart, "{a:?} {b:?}");
        }
    }
}

fn written_out(layout: &Layout) -> String {
    let mut text = format!("File size of x is 0 (0 blocks of {} bytes)\n", layout.block_bytes);
    for (i, e) in layout.extents.iter().enumerate() {
        let FileExtent { logical, physical, len, is_written } = *e;
        let (end, last) = (logical + len - 1, physical + len - 1);
        let flags = if is_written { "" } else { "unwritten" };
        let row = writeln!(text, "{i}: {logical}..{end}: {physical}..{last}: {len}: {flags}");
        row.expect("writing to a string");
    }
    text + "x: 0 extents found\n"
}

fn check_steps(layout: &Layout) {
    let steps = steps(layout);
    let written: u64 = layout.extents.iter().filter(|e| e.is_written).map(|e| e.len).sum();
    let sectors: u64 = steps.iter().map(|s| s.piece.sectors).sum();
    assert_eq!(sectors, written * layout.block_bytes / 512);
    let mut places: Vec<_> = steps.iter().map(|s| (s.piece.lba, s.piece.sectors)).collect();
    places.sort_unstable();
    assert!(places.windows(2).all(|w| w[0].0 + w[0].1 <= w[1].0), "{places:?}");
}

#[cfg(test)]
mod tests {
    const REAL: &str = "Filesystem type is: ef53\n\
        File size of db is 73728 (18 blocks of 4096 bytes)\n \
        ext:     logical_offset:        physical_offset: length:   expected: flags:\n   \
        0:        0..       1:      33792..     33793:      2:            \n   \
        1:        2..      13:      34304..     34315:     12:      33794: unwritten\n   \
        2:       14..      17:      34341..     34344:      4:      34316: last,eof\n\
        db: 3 extents found\n";

    #[test]
    fn real_output_with_any_byte_changed_or_cut_anywhere_keeps_the_rules() {
        super::layout(REAL.as_bytes());
        for at in 0..REAL.len() {
            super::layout(&REAL.as_bytes()[..at]);
            for byte in [b'0', b'9', b':', b'.', b'\n', b' ', 0xff, 0] {
                let mut changed = REAL.as_bytes().to_vec();
                changed[at] = byte;
                super::layout(&changed);
            }
        }
    }
}
