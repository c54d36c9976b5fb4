//! Where a real file lies: the output of `filefrag -v` (e2fsprogs) for one file.
//!
//! Extents that hold no data (`unwritten`) are kept, for nobody else can have written there.
//! What lies on no block of the device of its own (`inline`, `delalloc`, `encoded`) is
//! refused, and so is an output that was cut.

/// A run of blocks of a file \[blocks\].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileExtent {
    /// First block in the file.
    pub logical: u64,
    /// First block on the device.
    pub physical: u64,
    /// Blocks.
    pub len: u64,
    /// Whether it holds data; if not it was only allocated.
    pub is_written: bool,
}

/// Where a file lies. No two extents share a block, and some hold data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Size of a block \[bytes\].
    pub block_bytes: u64,
    /// Extents in the order of the file.
    pub extents: Vec<FileExtent>,
}

/// Why a text is not where a file lies.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: found «{found}», expected {expected}")]
pub struct LayoutError {
    /// Line, from 1.
    pub line: usize,
    /// What stands there, shortened.
    pub found: String,
    /// What was expected.
    pub expected: &'static str,
}

const HEADER: &str = "«File size of NAME is N (N blocks of N bytes)», with blocks of 512 to \
    65536 bytes, before the extents: make the file with filefrag -v";
const ONE_FILE: &str = "one file only: run filefrag -v for each";
const EXTENT: &str = "an extent as filefrag -v prints it without -b and -X, for example \
    «0: 0.. 1: 33792.. 33793: 2:», whose first and last blocks fit its length and, with the \
    flag eof, the size of the file";
const IN_ORDER: &str = "an extent that begins after the one before it has ended, in the file";
const APART: &str = "an extent that shares no block of the device with another one of the file";
const ON_DEVICE: &str = "data in blocks of the device: run sync before filefrag -v if it is \
    delalloc; what is inline, compressed or packed cannot be used";
const DATA: &str = "at least one extent that holds data";
const END: &str = "«NAME: N extents found», which ends the output of filefrag -v";

/// Flags of extents whose blocks are not the data.
const ELSEWHERE: [&str; 6] =
    ["unknown_loc", "delalloc", "encoded", "not_aligned", "inline", "tail_packed"];
/// Blocks of a file or a device; far above what there is, and safe to multiply.
const BLOCKS_MAX: u64 = 1 << 48;

impl Layout {
    /// Reads the output of `filefrag -v`.
    pub fn parse(text: &str) -> Result<Self, LayoutError> {
        let mut reading = Reading::default();
        for (i, line) in text.lines().enumerate() {
            let line = line.trim();
            reading.line(i + 1, line).map_err(|expected| error(i + 1, line, expected))?;
        }
        reading.end().map_err(|(line, expected)| {
            let line = line.unwrap_or_else(|| text.lines().count().max(1));
            error(line, text.lines().nth(line - 1).unwrap_or(""), expected)
        })
    }
}

fn error(line: usize, found: &str, expected: &'static str) -> LayoutError {
    let words: Vec<_> = found.split_whitespace().collect();
    let shown = |c: char| if c.is_control() { '?' } else { c };
    let found = words.join(" ").chars().take(80).map(shown).collect();
    LayoutError { line, found, expected }
}

/// What the header says of the file.
#[derive(Clone, Copy)]
struct Size {
    blocks: u64,
    block_bytes: u64,
}

/// What has been read so far.
#[derive(Default)]
struct Reading {
    size: Option<Size>,
    extents: Vec<FileExtent>,
    /// The line of each.
    lines: Vec<usize>,
    is_over: bool,
}

impl Reading {
    fn line(&mut self, number: usize, line: &str) -> Result<(), &'static str> {
        if line.starts_with("File size of ") {
            if self.size.is_some() {
                return Err(ONE_FILE);
            }
            self.size = Some(size(line).ok_or(HEADER)?);
        } else if line.ends_with(" extents found") || line.ends_with(" extent found") {
            self.size.ok_or(HEADER)?;
            self.is_over = true;
        } else if line.starts_with(|c: char| c.is_ascii_digit()) {
            let size = self.size.ok_or(HEADER)?;
            if has_flag(line, &ELSEWHERE) {
                return Err(ON_DEVICE);
            }
            let extent = extent(line).ok_or(EXTENT)?;
            if has_flag(line, &["eof"]) && extent.logical + extent.len < size.blocks {
                return Err(EXTENT);
            }
            if self.extents.last().is_some_and(|e| extent.logical < e.logical + e.len) {
                return Err(IN_ORDER);
            }
            self.extents.push(extent);
            self.lines.push(number);
        }
        Ok(())
    }

    /// All of it; or what is wrong, and in which line unless it is the last.
    fn end(self) -> Result<Layout, (Option<usize>, &'static str)> {
        let Size { block_bytes, .. } = self.size.ok_or((None, HEADER))?;
        if !self.is_over {
            return Err((None, END));
        }
        if !self.extents.iter().any(|e| e.is_written) {
            return Err((None, DATA));
        }
        let mut order: Vec<_> = self.extents.iter().zip(&self.lines).collect();
        order.sort_by_key(|(e, _)| e.physical);
        for pair in order.windows(2) {
            let (before, (extent, &line)) = (pair[0].0, pair[1]);
            if extent.physical < before.physical + before.len {
                return Err((Some(line), APART));
            }
        }
        Ok(Layout { block_bytes, extents: self.extents })
    }
}

fn size(header: &str) -> Option<Size> {
    let words: Vec<_> = header.strip_suffix(')')?.rsplit(' ').take(5).collect();
    let ["bytes", n, "of", "blocks" | "block", blocks] = words[..] else { return None };
    let block_bytes: u64 = n.parse().ok()?;
    let is_possible = (512..=65_536).contains(&block_bytes) && block_bytes.is_power_of_two();
    let blocks = blocks.strip_prefix('(')?.parse().ok()?;
    is_possible.then_some(Size { blocks, block_bytes })
}

fn has_flag(line: &str, flags: &[&str]) -> bool {
    let of_line = line.rsplit(':').next().unwrap_or("").trim();
    of_line.split(',').any(|flag| flags.contains(&flag))
}

fn extent(line: &str) -> Option<FileExtent> {
    let mut fields = line.split(':').skip(1);
    let range = |text: &str| -> Option<(u64, u64)> {
        let (from, to) = text.split_once("..")?;
        Some((from.trim().parse().ok()?, to.trim().parse().ok()?))
    };
    let (logical, logical_end) = range(fields.next()?)?;
    let (physical, physical_end) = range(fields.next()?)?;
    let len: u64 = fields.next()?.trim().parse().ok()?;
    let fits = (1..=BLOCKS_MAX).contains(&len)
        && logical_end.max(physical_end) < BLOCKS_MAX
        && physical_end.checked_sub(physical)? + 1 == len
        && logical_end.checked_sub(logical)? + 1 == len;
    let is_written = !has_flag(line, &["unwritten"]);
    fits.then_some(FileExtent { logical, physical, len, is_written })
}

#[cfg(test)]
mod tests {
    use super::*;

    const REAL: &str = "Filesystem type is: ef53\n\
        File size of db is 73728 (18 blocks of 4096 bytes)\n \
        ext:     logical_offset:        physical_offset: length:   expected: flags:\n   \
        0:        0..       1:      33792..     33793:      2:            \n   \
        1:        2..      13:      34304..     34315:     12:      33794:\n   \
        2:       14..      17:      34341..     34344:      4:      34316: last,eof\n\
        db: 3 extents found\n";

    #[test]
    fn what_filefrag_prints_is_read() {
        let layout = Layout::parse(REAL).unwrap();
        assert_eq!(layout.block_bytes, 4096);
        let last = FileExtent { logical: 14, physical: 34341, len: 4, is_written: true };
        assert_eq!(layout.extents.len(), 3);
        assert_eq!(layout.extents[2], last);
        // Without «expected», as for a file in one piece; with `unwritten`; a name like a row.
        let one = "File size of 0: 1 is 2 (1 block of 1024 bytes)\n\
            0:  0..  15:  8513..  8528:  16:             unwritten\n\
            1: 16..  23:  8529..  8536:   8:             last,eof\n\
            0: 1: 1 extent found\n";
        let layout = Layout::parse(one).unwrap();
        assert_eq!(layout.block_bytes, 1024);
        assert_eq!([false, true], [0, 1].map(|i: usize| layout.extents[i].is_written));
    }

    #[test]
    fn what_is_no_layout_is_refused_with_its_line() {
        let refused = |text: &str, line: usize, expected: &str| {
            let error = Layout::parse(text).unwrap_err();
            assert_eq!((error.line, error.expected), (line, expected), "{error}");
        };
        let changed = |from: &str, to: &str| {
            assert!(REAL.contains(from));
            REAL.replace(from, to)
        };
        refused("", 1, HEADER);
        refused("db: 3 extents found\n", 1, HEADER);
        refused("File size of a is 0 (0 blocks of 4096 bytes)\na: 0 extents found\n", 2, DATA);
        refused(&changed("File size", "Size"), 4, HEADER);
        refused(&changed("4096 bytes", "17 bytes"), 2, HEADER);
        refused(&changed("4096 bytes", "1 bytes"), 2, HEADER);
        refused(&changed("34315", "34314"), 5, EXTENT);
        refused(&changed("34315", "8603"), 5, EXTENT);
        refused(&changed("34341..     34344", "18446744073709551615..     34344"), 6, EXTENT);
        refused(&changed("18 blocks", "24 blocks"), 6, EXTENT);
        refused(&changed("2..      13", "1..      12"), 5, IN_ORDER);
        refused(&changed("34341..     34344", "34315..     34318"), 6, APART);
        refused(&changed("34304..     34315", "33793..     33804"), 5, APART);
        refused(&changed("last,eof", "last,inline,eof"), 6, ON_DEVICE);
        refused(&changed("last,eof", "last,encoded,eof"), 6, ON_DEVICE);
        let waits = "34341..     34344:      4:      34316: last,eof";
        refused(&changed(waits, "0..  0:  0: last,unknown_loc,delalloc,eof"), 6, ON_DEVICE);
        refused(&REAL.repeat(2), 9, ONE_FILE);
        refused(&REAL[..REAL.len() / 2], 4, EXTENT);
        refused(REAL.strip_suffix("db: 3 extents found\n").unwrap(), 6, END);
    }
}
