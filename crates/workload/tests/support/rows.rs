//! Rows written down in every trace format, as the documents of the formats say and
//! not by the code under test.

use std::fmt::Write as _;

use flashwise_workload::Format;

/// A row as every format can hold it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) at_us: u64,
    pub(crate) device: u64,
    pub(crate) writes: bool,
    pub(crate) lba: u64,
    pub(crate) sectors: u32,
}

/// The rows as a trace. Custom columns are `device,op,size:bytes,lba:512,time:us`.
pub(crate) fn render(format: Format, rows: &[Row]) -> Vec<u8> {
    let mut out = match format {
        Format::CloudPhysicsCsv => "version,time,op,size,lbn\n".to_owned(),
        Format::FioIolog => "fio version 3 iolog\n".to_owned(),
        _ => String::new(),
    };
    let mut binary = Vec::new();
    for r in rows {
        let Row { at_us, device, lba, sectors, .. } = *r;
        let (offset, bytes) = (lba * 512, u64::from(sectors) * 512);
        let seconds = format!("{}.{:06}", at_us / 1_000_000, at_us % 1_000_000);
        let letter = if r.writes { "W" } else { "R" };
        let word = if r.writes { "Write" } else { "Read" };
        let code = if r.writes { "2a" } else { "28" };
        let (n, w) = (at_us * 10, u8::from(r.writes));
        match format {
            Format::Mqsim => writeln!(out, "{at_us}000 {device} {lba} {sectors} {}", 1 - w),
            Format::CloudPhysicsCsv => writeln!(out, "1,{seconds},{code},{bytes},{lba}"),
            Format::Msr => writeln!(out, "{n},host,{device},{word},{offset},{bytes},7"),
            Format::Alibaba => writeln!(out, "{device},{letter},{offset},{bytes},{at_us}"),
            Format::Tencent => writeln!(out, "{seconds},{lba},{sectors},{w},{device}"),
            Format::Systor17 => writeln!(out, "{seconds},0.1,{letter},{device},{offset},{bytes}"),
            Format::Fiu => {
                writeln!(out, "{at_us}000 1 nfsd {lba} {sectors} {letter} 6 {device} 0f1e")
            }
            Format::Spc => writeln!(out, "{device},{lba},{bytes},{letter},{seconds}"),
            Format::FioIolog => {
                let word = word.to_lowercase();
                writeln!(out, "{at_us} /dev/vd{device} {word} {offset} {bytes}")
            }
            Format::Blkparse => {
                writeln!(out, "  8,{device} 0 1 {seconds} 7  Q  {letter}S {lba} + {sectors} [x]")
            }
            Format::Custom => writeln!(out, "{device} {word} {bytes} {lba} {at_us}"),
            Format::Vscsi1 | Format::Vscsi2 => {
                binary.extend(record(format, r, bytes as u32));
                Ok(())
            }
            other => panic!("{other}"),
        }
        .unwrap();
    }
    if binary.is_empty() { out.into_bytes() } else { binary }
}

fn record(format: Format, r: &Row, bytes: u32) -> Vec<u8> {
    let command: u16 = if r.writes { 0x2a } else { 0x28 };
    let mut out = Vec::new();
    if format == Format::Vscsi1 {
        for word in [1, bytes, 1] {
            out.extend(word.to_le_bytes());
        }
    }
    out.extend(command.to_le_bytes());
    out.extend((if format == Format::Vscsi1 { 0x100_u16 } else { 0x200 }).to_le_bytes());
    if format == Format::Vscsi2 {
        for word in [1, bytes, 1] {
            out.extend(word.to_le_bytes());
        }
    }
    out.extend(r.lba.to_le_bytes());
    out.extend(r.at_us.to_le_bytes());
    if format == Format::Vscsi2 {
        out.extend(5_u64.to_le_bytes());
    }
    out
}
