//! Lines of the `fio-iolog` format: what fio records with `write_iolog` and replays
//! with `read_iolog`. Source: fio's HOWTO, "Trace file format v2" and "v3", and its
//! `iolog.c`.
//!
//! Version 2 has no times; `wait` lines say how long to wait, relative to the wait
//! before, and fio drops waits below 100 us: so does this reader, and it counts them.
//! Version 3 begins each line with the time since the start, in microseconds. Lines
//! that add, open or close a file are no requests. Offsets and lengths are bytes.
//! Each file is a device of its own.

use flashwise_hint::Lba;

use super::TimeUnit;
use super::fields::{self, Flaw, Separator};
use super::parser::{Device, Line, Row};
use crate::{OpKind, Request, names};

/// Waits below this are dropped \[ns\]. Source: fio's HOWTO, "Trace file format v2".
const WAIT_MIN_NS: u64 = 100_000;

/// What a line may ask for, for messages.
const ACTIONS: &str = "read, write, trim, sync, datasync, add, open or close (version 2: or wait)";

/// The state between lines.
#[derive(Debug)]
pub(crate) struct Iolog {
    version: u8,
    /// Sum of the waits so far \[ns\]; version 2 only.
    clock_ns: u64,
}

/// The version that a first line names.
pub(crate) fn version(first: &[u8]) -> Option<&[u8]> {
    let ([fio, word, version, iolog], n) = fields::split::<4>(first, Separator::Blanks);
    (n == 4 && fio == b"fio" && word == b"version" && iolog == b"iolog").then_some(version)
}

impl Iolog {
    /// From the first line of the file.
    pub(crate) fn new(first: &[u8]) -> Result<Self, Flaw> {
        let version = match version(first) {
            Some(b"2") => 2,
            Some(b"3") => 3,
            _ => {
                let expected = "«fio version 2 iolog» or «fio version 3 iolog»";
                return Err(Flaw::new(expected, format!("«{}»", names::excerpt(first))).advise(
                    "record it with a fio that writes one of them, or name another format",
                ));
            }
        };
        Ok(Self { version, clock_ns: 0 })
    }

    /// What one line means.
    pub(crate) fn parse<'a>(&mut self, line: &'a [u8], unit: TimeUnit) -> Result<Line<'a>, Flaw> {
        let (all, n) = fields::split::<5>(line, Separator::Blanks);
        let (at_ns, [file, action, offset, length], n) = match self.version {
            2 => (self.clock_ns, [all[0], all[1], all[2], all[3]], n),
            _ if n == 0 => (0, [&[][..]; 4], 0),
            _ => (fields::time_ns(all[0], unit)?, [all[1], all[2], all[3], all[4]], n - 1),
        };
        if !matches!(n, 2 | 4) {
            let time = if self.version == 2 { "" } else { "time " };
            let layout = format!("{time}file action, or {time}file action offset length");
            let (_, found) = fields::split::<0>(line, Separator::Blanks);
            let expected = if self.version == 2 { "2 or 4" } else { "3 or 5" };
            return Err(fields::wrong_count(expected, found, line, &layout));
        }
        let op = match action {
            b"add" | b"open" | b"close" => {
                return Ok(Line::Other("file actions (add, open, close)"));
            }
            b"sync_file_range" => {
                return Ok(Line::Other("sync_file_range (makes nothing durable)"));
            }
            b"wait" if self.version == 2 => return self.wait(offset, unit),
            b"sync" | b"datasync" => {
                let flush = Request { at_ns, ..Request::new(OpKind::Flush, Lba(0), 0) };
                return Ok(Row::new(flush, Device::named(file)).into());
            }
            b"read" => OpKind::Read,
            b"write" => OpKind::Write,
            b"trim" => OpKind::Trim,
            _ => return Err(Flaw::field("the action", ACTIONS, action)),
        };
        let offset = fields::integer("the offset in bytes", offset)?;
        let length = fields::integer("the length in bytes", length)?;
        Row::of_bytes(at_ns, op, offset, length, Device::named(file)).map(Line::Row)
    }

    fn wait(&mut self, time: &[u8], unit: TimeUnit) -> Result<Line<'static>, Flaw> {
        let wait_ns = fields::time_ns(time, unit)?;
        if wait_ns < WAIT_MIN_NS {
            return Ok(Line::Other("waits below 100 us, which fio drops too"));
        }
        self.clock_ns = self.clock_ns.checked_add(wait_ns).ok_or_else(|| {
            Flaw::new("waits of less than 2^64 ns (584 years) in all", "more")
                .advise("name the right time unit")
        })?;
        Ok(Line::Other("waits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row<'a>(iolog: &mut Iolog, line: &'a [u8]) -> Row<'a> {
        match iolog.parse(line, TimeUnit::Microseconds).unwrap() {
            Line::Row(row) => row,
            Line::Other(why) => panic!("{why}"),
        }
    }

    #[test]
    fn waits_move_the_clock_of_version_2() {
        let mut iolog = Iolog::new(b"fio version 2 iolog").unwrap();
        assert_eq!(row(&mut iolog, b"/dev/sda read 0 4096").request.at_ns, 0);
        for wait in [&b"/dev/sda wait 99 0"[..], b"/dev/sda wait 100 0", b"/dev/sda wait 1000 0"] {
            assert!(matches!(iolog.parse(wait, TimeUnit::Microseconds), Ok(Line::Other(_))));
        }
        assert_eq!(row(&mut iolog, b"/dev/sda write 512 512").request.at_ns, 1_100_000);
    }

    #[test]
    fn version_3_has_times_and_no_waits() {
        let mut iolog = Iolog::new(b"fio version 3 iolog").unwrap();
        let sync = row(&mut iolog, b"7 a datasync 0 0");
        assert_eq!((sync.request.at_ns, sync.request.op), (7000, OpKind::Flush));
        let trim = row(&mut iolog, b"8 a trim 1024 512");
        assert_eq!((trim.request.lba, trim.request.op), (Lba(2), OpKind::Trim));
        for line in [&b"7 a wait 1000 0"[..], b"a read 0 512", b"7 a read", b"7", b"7 a read 0"] {
            assert!(iolog.parse(line, TimeUnit::Microseconds).is_err(), "{line:?}");
        }
        assert!(Iolog::new(b"fio version 1 iolog").is_err());
    }
}
