//! Where a host's journal lies: `flashwise journal`, and `--journal-of` of a replay.
//!
//! The class of a write is decided on the addresses of the trace, before they are fitted
//! to the drive.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::anyhow;
use serde_json::{Value, json};

use flashwise_design::parse_size;
use flashwise_hint::{DataClass, SECTOR_BYTES};
use flashwise_report::{Figure, figures_table, json_text, list_table};
use flashwise_ssd::Ssd;
use flashwise_superblock::{
    ByteRange, Disk, FileSystem, Journal, Ring, SuperblockError, Table, Volume, find,
    metadata_ranges, scan,
};
use flashwise_workload::ClassMap;

use crate::Failure;
use crate::args::ReplayArgs;
use crate::output;
use crate::replay::Work;

/// Pieces of a journal that the table lists; the JSON lists all.
const PIECES_SHOWN: usize = 20;

/// Options of a replay that say which writes are journal writes.
#[derive(Debug, clap::Args)]
pub(crate) struct TagArgs {
    /// Call writes into the journals of this image of the traced device journal data (ext3, ext4,
    /// XFS; alone or in partitions)
    #[arg(long, value_name = "IMAGE")]
    journal_of: Option<PathBuf>,
    /// Call writes into this range of the traced device journal data, for example 4GiB+64MiB;
    /// repeatable
    #[arg(long, value_name = "FIRST+LENGTH")]
    journal_range: Vec<Span>,
}

impl TagArgs {
    /// A journal is named.
    pub(crate) fn is_asked(&self) -> bool {
        self.journal_of.is_some() || !self.journal_range.is_empty()
    }
}

/// A range of bytes as people write it: its first byte, a plus, its length.
#[derive(Clone, Copy, Debug)]
struct Span(ByteRange);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (first, length) =
            text.split_once('+').ok_or("expected first byte and length, for example 4GiB+64MiB")?;
        let start = match first.trim() {
            "0" => 0,
            other => parse_size(other).map_err(|e| e.to_string())?,
        };
        let bytes = parse_size(length).map_err(|e| e.to_string())?;
        if start % SECTOR_BYTES != 0 || bytes % SECTOR_BYTES != 0 {
            return Err("expected multiples of 512 bytes".to_owned());
        }
        Ok(Self(ByteRange { start, bytes }))
    }
}

/// `flashwise journal`.
#[derive(Debug, clap::Args)]
pub(crate) struct JournalArgs {
    /// Image or block device: a file system, its external journal, or a disk with partitions
    image: PathBuf,
    /// Where the file system begins, for example 1MiB [default: found by the partition table]
    #[arg(long, value_name = "BYTES", value_parser = parse_offset)]
    offset: Option<u64>,
    /// List the places of other fixed metadata too (ext2, ext3, ext4)
    #[arg(long)]
    metadata: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn parse_offset(text: &str) -> Result<u64, String> {
    if text == "0" { Ok(0) } else { parse_size(text).map_err(|e| e.to_string()) }
}

/// Which writes of the trace carry which class.
pub(crate) fn classes(args: &ReplayArgs, ssd: &Ssd, work: &Work) -> Result<ClassMap, Failure> {
    if !args.journal.is_asked() {
        return Ok(ClassMap::default());
    }
    let input = args.input().display();
    let Work::Trace { summary, n_devices_apart, .. } = work else {
        let e = anyhow!(
            "{input}: --journal-of and --journal-range expect a block trace, found a fio job, \
             which has no file system"
        );
        return Err(Failure::Input(e));
    };
    if *n_devices_apart > 1 {
        let e = anyhow!(
            "{input}: a journal lies on one device, and this trace has {n_devices_apart}; choose \
             one with --select"
        );
        return Err(Failure::Input(e));
    }
    let end = summary.max_lba_end.max(ssd.capacity_sectors()).saturating_mul(SECTOR_BYTES);
    let mut ranges = vec![];
    for Span(range) in &args.journal.journal_range {
        if range.end() > end {
            return Err(beyond(&format!("--journal-range {range}"), range, end));
        }
        ranges.push(*range);
    }
    if let Some(image) = &args.journal.journal_of {
        let found = journals_of(image)?;
        let first = found.first().copied().unwrap_or_default();
        if found.iter().all(|range| range.start >= end) {
            return Err(beyond(&image.display().to_string(), &first, end));
        }
        ranges.extend(found);
    }
    let sectors = |r: ByteRange| r.start.div_ceil(SECTOR_BYTES)..r.end() / SECTOR_BYTES;
    Ok(ClassMap::new(DataClass::Journal, ranges.into_iter().map(sectors)))
}

fn beyond(what: &str, range: &ByteRange, end: u64) -> Failure {
    Failure::Input(anyhow!(
        "{what}: the journal (bytes {} to {}) lies beyond byte {end}, where both the drive and the \
         addresses of the trace end; give a range or an image of the traced device",
        range.start,
        range.end()
    ))
}

/// The journals inside an image; notes are told.
fn journals_of(path: &Path) -> Result<Vec<ByteRange>, Failure> {
    let name = path.display();
    let disk = scan(&open(path)?).map_err(|e| refused(path, &e))?;
    let mut ranges = vec![];
    let mut others = vec![];
    for volume in &disk.volumes {
        let fs = match &volume.found {
            Ok(fs) => fs,
            Err(e) if volume.partition.is_none() => return Err(refused(path, e)),
            Err(e) => {
                others.push(format!("{}: {e}", place(volume)));
                continue;
            }
        };
        fs.notes.iter().for_each(|note| output::message(&format!("note: {name}: {note}")));
        match &fs.journal {
            Journal::Internal(ring) => ranges.extend(&ring.ranges),
            other => others.push(format!("{}: {}", place(volume), describe(fs, other))),
        }
    }
    if ranges.is_empty() {
        let why = if others.is_empty() { "no partitions".to_owned() } else { others.join("; ") };
        return Err(Failure::Input(anyhow!(
            "{name}: expected a file system with its journal inside; {why}"
        )));
    }
    others.iter().for_each(|other| output::message(&format!("note: {name}: {other}")));
    Ok(ranges)
}

fn open(path: &Path) -> Result<File, Failure> {
    let name = path.display();
    let file = File::open(path)
        .map_err(|e| anyhow!("{name}: {e}; expected the image of a device"))
        .map_err(Failure::Input)?;
    if file.metadata().is_ok_and(|m| m.is_dir()) {
        let e = anyhow!("{name}: is a directory; expected the image of a device, or the device");
        return Err(Failure::Input(e));
    }
    Ok(file)
}

fn refused(path: &Path, e: &SuperblockError) -> Failure {
    Failure::Input(anyhow!("{}: {e}", path.display()))
}

fn place(volume: &Volume) -> String {
    volume.partition.map_or("image".to_owned(), |p| format!("partition {}", p.number))
}

/// What there is instead of a journal inside.
fn describe(fs: &FileSystem, journal: &Journal) -> String {
    match journal {
        Journal::External { uuid, .. } => {
            let which = uuid.map_or(String::new(), |uuid| format!(" (UUID {uuid})"));
            format!(
                "the journal of this {} is on another device{which}; trace that one, and give its \
                 image or --journal-range",
                fs.kind
            )
        }
        _ => format!("this {} has no journal", fs.kind),
    }
}

pub(crate) fn run(args: &JournalArgs) -> Result<(), Failure> {
    let image = open(&args.image)?;
    let disk = match args.offset {
        None => scan(&image).map_err(|e| refused(&args.image, &e))?,
        Some(offset) => {
            let found = Ok(find(&image, offset).map_err(|e| refused(&args.image, &e))?);
            let whole = Volume { partition: None, found };
            Disk { table: Table::None, volumes: vec![whole] }
        }
    };
    if let [Volume { partition: None, found: Err(e) }] = &disk.volumes[..] {
        return Err(refused(&args.image, e));
    }
    let volumes: Result<Vec<Value>, Failure> =
        disk.volumes.iter().map(|volume| object(args, &image, volume)).collect();
    let object = json!({
        "journal": args.image.display().to_string(),
        "partition_table": disk.table.name(),
        "volumes": volumes?,
    });
    let text = if args.json { json_text(&object) } else { tables(&object) };
    output::results(&text)
}

fn list(ranges: &[ByteRange]) -> Vec<Value> {
    ranges.iter().map(|r| json!({ "start_bytes": r.start, "length_bytes": r.bytes })).collect()
}

fn object(args: &JournalArgs, image: &File, volume: &Volume) -> Result<Value, Failure> {
    let number = volume.partition.map(|p| p.number);
    let fs = match &volume.found {
        Ok(fs) => fs,
        Err(e) => return Ok(json!({ "partition": number, "error": e.to_string() })),
    };
    let nothing = Ring::default();
    let (how, ring) = match &fs.journal {
        Journal::Internal(ring) => ("inside", ring),
        Journal::External { .. } => ("on another device", &nothing),
        _ => ("none", &nothing),
    };
    let (device, length) = match &fs.journal {
        Journal::External { uuid, bytes } => (uuid.map(|u| u.to_string()), *bytes),
        Journal::Internal(ring) => (None, Some(ring.bytes())),
        _ => (None, None),
    };
    let mut notes: Vec<String> = fs.notes.iter().map(ToString::to_string).collect();
    let asked = args.metadata.then(|| metadata_ranges(image, fs.offset));
    let metadata = match asked.transpose() {
        Ok(metadata) => metadata,
        Err(e @ SuperblockError::Unsupported { .. }) => {
            notes.push(e.to_string());
            None
        }
        Err(e) => return Err(refused(&args.image, &e)),
    };
    Ok(json!({
        "partition": number,
        "kind": fs.kind.name(),
        "offset_bytes": fs.offset,
        "size_bytes": fs.size_bytes,
        "block_bytes": fs.block_bytes,
        "label": fs.label,
        "uuid": fs.uuid.to_string(),
        "journal": how,
        "journal_device": device,
        "journal_bytes": length,
        "ranges": list(&ring.ranges),
        "superblock_of_journal": ring.superblock.map(|r| list(&[r]).remove(0)),
        "fast_commit": list(&ring.fast_commit),
        "metadata": metadata.map(|ranges| list(&ranges)),
        "notes": notes,
    }))
}

const MIB: f64 = (1 << 20) as f64;

const FIGURES: &[Figure] = &[
    Figure::plain("error", "not understood", 0),
    Figure::plain("kind", "file system", 0),
    Figure::plain("offset_bytes", "begins at byte", 0),
    Figure { per: MIB, ..Figure::plain("size_bytes", "size [MiB]", 1) },
    Figure::plain("block_bytes", "block size [bytes]", 0),
    Figure::plain("label", "label", 0),
    Figure::plain("uuid", "UUID", 0),
    Figure::plain("journal", "journal", 0),
    Figure::plain("journal_device", "  UUID of its device", 0),
    Figure { per: MIB, ..Figure::plain("journal_bytes", "  length [MiB]", 1) },
];

fn tables(object: &Value) -> String {
    let image = object["journal"].as_str().unwrap_or_default();
    let mut out = String::new();
    for volume in object["volumes"].as_array().map_or(&[][..], Vec::as_slice) {
        let place = volume["partition"].as_u64().map(|n| format!(", partition {n}"));
        out.push_str(&format!("{image}{}\n", place.unwrap_or_default()));
        out.push_str(&figures_table(std::slice::from_ref(volume), "none", FIGURES));
        out.push_str(&pieces(volume));
        for note in volume["notes"].as_array().map_or(&[][..], Vec::as_slice) {
            out.push_str(&format!("note: {}\n", note.as_str().unwrap_or_default()));
        }
        out.push('\n');
    }
    if out.is_empty() { format!("{image}: no partitions\n") } else { out }
}

/// The ranges of a volume, for a person to read.
fn pieces(volume: &Value) -> String {
    let mut lines = vec![];
    let keys = [("ranges", "journal"), ("fast_commit", "of it fast commits")];
    let superblock = volume["superblock_of_journal"].clone();
    let superblock = if superblock.is_null() { vec![] } else { vec![superblock] };
    let lists = keys.map(|(key, what)| (what, volume[key].as_array().cloned().unwrap_or_default()));
    let metadata = volume["metadata"].as_array().cloned().unwrap_or_default();
    let hot = ("of it superblock", superblock);
    for (what, list) in lists.into_iter().chain([hot, ("metadata", metadata)]) {
        for range in list.iter().take(PIECES_SHOWN) {
            let n = |key: &str| range[key].as_u64().unwrap_or(0);
            let numbers = ["start_bytes", "length_bytes"].map(|key| format!("{:>16}", n(key)));
            lines.push([&[what.to_owned()][..], &numbers].concat());
        }
        if list.len() > PIECES_SHOWN {
            let more = format!("and {} more", list.len() - PIECES_SHOWN);
            lines.push(vec![more, String::new(), String::new()]);
        }
    }
    if lines.is_empty() {
        return String::new();
    }
    list_table(&["range", "      first byte", "  length [bytes]"], &lines)
}
