//! Lines of the `blkparse` format: the default text output of blkparse. Source:
//! blkparse(1), "OUTPUT DESCRIPTION AND FORMATTING", and `blkparse_fmt.c`.
//!
//! ```text
//!   8,0    1       42     0.000123456   697  Q  WS 272208 + 8 [jbd2/sda1-8]
//! ```
//!
//! One request leaves a line for each step it takes. The lines of one action are the
//! workload: Q in the order of the host, D as sent to the device, C as completed. All
//! others are counted by action. The letters of the sixth column behind it (RWBS) say
//! what the request does: D discard (a trim), W write, R read, F before these a flush
//! ahead, F behind W force unit access, F alone a flush. Addresses are sectors of 512
//! bytes. The summary at the end is recognised, and events behind it are a flaw.

use flashwise_hint::Lba;

use super::fields::{self, Flaw, Separator};
use super::parser::{Device, Line, Row};
use super::{BlkAction, TimeUnit};
use crate::{Format, OpKind, Request};

/// Fields up to the sector count: all that matters.
const N_FIELDS: usize = 10;

/// How lines of the summary that blkparse prints at the end begin.
const SUMMARY: [&[u8]; 5] = [b"CPU", b"Total ", b"Throughput ", b"Events ", b"Skips:"];

/// The state between lines.
#[derive(Debug)]
pub(crate) struct Blkparse {
    action: BlkAction,
    in_summary: bool,
}

impl Blkparse {
    pub(crate) fn new(action: BlkAction) -> Self {
        Self { action, in_summary: false }
    }

    /// The lines that count, for messages.
    pub(crate) fn expected(&self) -> String {
        format!("at least one line of action {} (--blkparse-action names another)", self.action)
    }

    /// What one line means.
    pub(crate) fn parse<'a>(&mut self, line: &'a [u8], unit: TimeUnit) -> Result<Line<'a>, Flaw> {
        let (f, n) = fields::split::<N_FIELDS>(line, Separator::Blanks);
        let device = (n >= 6).then(|| device(f[0])).flatten();
        let Some(device) = device else {
            self.in_summary |= SUMMARY.iter().any(|start| line.starts_with(start));
            return match self.in_summary {
                _ if f[0] == b"Input" => Ok(Line::Other("notes of blkparse")),
                // Every line of a summary names what it counts.
                true if line.contains(&b':') => Ok(Line::Other("lines of the summary at the end")),
                true => Err(Flaw::new("the summary (`what: count`)", "something else")
                    .advise("remove what follows the output of blkparse")),
                false => {
                    Err(fields::wrong_count("at least 6", n, line, Format::Blkparse.columns()))
                }
            };
        };
        if self.in_summary {
            return Err(Flaw::new("no events behind the summary", "an event")
                .advise("split the file where one output of blkparse ends and the next begins"));
        }
        if f[5] != self.action.name().as_bytes() {
            return other_action(f[5]);
        }
        let at_ns = fields::time_ns(f[3], unit)?;
        let rwbs = f[6];
        let has_range = n >= N_FIELDS && f[8] == b"+";
        if rwbs.is_empty() || !rwbs.iter().all(u8::is_ascii_uppercase) {
            return Err(Flaw::field("the kind of request (RWBS)", "capital letters", rwbs));
        }
        if !has_range {
            if rwbs.contains(&b'F') {
                return Ok(flush(at_ns, device));
            }
            return Ok(Line::Other("requests without a sector (SCSI commands and the like)"));
        }
        let lba = fields::integer("the first sector", f[7])?;
        let sectors = fields::integer("the length in sectors", f[9])?;
        let Some(op) = operation(rwbs) else {
            if rwbs.contains(&b'F') {
                return Ok(flush(at_ns, device));
            }
            return Ok(Line::Other("requests without data (RWBS N)"));
        };
        if sectors == 0 && rwbs.contains(&b'F') {
            return Ok(flush(at_ns, device));
        }
        let mut row = Row::new(fields::request(at_ns, op, lba, sectors)?, device);
        row.flush_before = rwbs[0] == b'F';
        row.request.fua = op == OpKind::Write && rwbs[1..].contains(&b'F');
        Ok(row.into())
    }
}

/// Major and minor number, if a field holds both.
pub(crate) fn device(field: &[u8]) -> Option<Device<'_>> {
    let comma = field.iter().position(|&byte| byte == b',')?;
    let (major, minor) = (&field[..comma], &field[comma + 1..]);
    let number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    (number(major) && number(minor)).then_some(Device::pair(major, b':', minor))
}

fn flush(at_ns: u64, device: Device<'_>) -> Line<'_> {
    Row::new(Request { at_ns, ..Request::new(OpKind::Flush, Lba(0), 0) }, device).into()
}

/// The operation among the letters of RWBS. Source: `fill_rwbs` of blkparse.
fn operation(rwbs: &[u8]) -> Option<OpKind> {
    rwbs.iter().find_map(|letter| match letter {
        b'D' => Some(OpKind::Trim),
        b'W' => Some(OpKind::Write),
        b'R' => Some(OpKind::Read),
        _ => None,
    })
}

/// Lines of an action that is not the chosen one, by action. Source: blkparse(1).
fn other_action(action: &[u8]) -> Result<Line<'static>, Flaw> {
    let why = match action {
        b"Q" => "action Q (queued)",
        b"D" => "action D (issued to the device)",
        b"C" => "action C (completed)",
        b"G" => "action G (request allocated)",
        b"I" => "action I (inserted into the scheduler)",
        b"M" => "action M (merged at the back)",
        b"F" => "action F (merged at the front)",
        b"P" => "action P (plugged)",
        b"U" => "action U (unplugged)",
        b"UT" => "action UT (unplugged by a timer)",
        b"A" => "action A (remapped)",
        b"X" => "action X (split)",
        b"B" => "action B (bounced)",
        b"S" => "action S (waited for a request)",
        b"R" => "action R (requeued)",
        b"T" => "action T (timer of a plug)",
        b"m" => "action m (message)",
        _ => return Err(Flaw::field("the action (column 6)", "one of blkparse's", action)),
    };
    Ok(Line::Other(why))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(action: BlkAction, text: &str) -> Result<Line<'_>, Flaw> {
        Blkparse::new(action).parse(text.as_bytes(), TimeUnit::Seconds)
    }

    fn row(rwbs: &str) -> Row<'static> {
        let text = format!("  8,16   1  42  0.000000007  697  Q  {rwbs} 272208 + 8 [jbd2]");
        match read(BlkAction::Queue, Box::leak(text.into_boxed_str())).unwrap() {
            Line::Row(row) => row,
            Line::Other(why) => panic!("{why}"),
        }
    }

    #[test]
    fn letters_say_what_a_request_does() {
        for (rwbs, op, fua, flush_before) in [
            ("W", OpKind::Write, false, false),
            ("WS", OpKind::Write, false, false),
            ("WFS", OpKind::Write, true, false),
            ("FWFS", OpKind::Write, true, true),
            ("FWS", OpKind::Write, false, true),
            ("R", OpKind::Read, false, false),
            ("RA", OpKind::Read, false, false),
            ("RM", OpKind::Read, false, false),
            ("D", OpKind::Trim, false, false),
            ("DS", OpKind::Trim, false, false),
            ("DE", OpKind::Trim, false, false),
        ] {
            let row = row(rwbs);
            assert_eq!((row.request.op, row.request.fua), (op, fua), "{rwbs}");
            assert_eq!(row.flush_before, flush_before, "{rwbs}");
            assert_eq!((row.request.lba, row.request.sectors), (Lba(272_208), 8));
            assert_eq!(row.device, Some(Device::pair(b"8", b':', b"16")));
        }
        assert_eq!(row("FN").request.op, OpKind::Flush);
    }

    #[test]
    fn flushes_have_no_range_and_commands_are_counted() {
        for text in ["8,0 0 1 0.5 7 Q FWS [jbd2]", "8,0 0 1 0.5 7 Q F [fsync]"] {
            let Ok(Line::Row(row)) = read(BlkAction::Queue, text) else { panic!("{text}") };
            assert_eq!((row.request.op, row.request.at_ns), (OpKind::Flush, 500_000_000));
        }
        for text in [
            "8,0 0 1 0.5 7 Q R 36 (12 00 00 00 24 00 ..) [smartd]",
            "8,0 0 1 0.5 7 Q N 0 + 0 [none]",
            "8,0 0 1 0.5 7 P N [kworker]",
            "8,0 0 1 0.5 7 U N [kworker] 3",
            "8,0 0 0 0.5 7 m N cfq7S activate rq",
        ] {
            assert!(matches!(read(BlkAction::Queue, text), Ok(Line::Other(_))), "{text}");
        }
        assert!(read(BlkAction::Queue, "8,0 0 1 0.5 7 Z N [x]").is_err());
        assert!(read(BlkAction::Queue, "8,0 0 1 0.5 7 Q W 8 + x [y]").is_err());
    }

    #[test]
    fn events_behind_the_summary_are_a_flaw() {
        let mut blkparse = Blkparse::new(BlkAction::Issue);
        let event = b"8,0 0 1 0.5 7 D W 8 + 8 [x]";
        assert!(matches!(blkparse.parse(event, TimeUnit::Seconds), Ok(Line::Row(_))));
        for line in [&b"CPU0 (8,0):"[..], b" Reads Queued:           0,        0KiB"] {
            assert!(matches!(blkparse.parse(line, TimeUnit::Seconds), Ok(Line::Other(_))));
        }
        assert!(blkparse.parse(event, TimeUnit::Seconds).is_err());
    }
}
