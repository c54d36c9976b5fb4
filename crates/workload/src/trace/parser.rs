//! One line in, what it means out: the common shape of all formats.
//!
//! A format is a function from a line to a [`Line`]; three of them keep something
//! between lines (fio's clock of waits, the end of a blkparse text, the separator of
//! described columns). No format knows files, line numbers or other rows: those rules
//! stand once, in the reader.

use super::blkparse::Blkparse;
use super::custom::Custom;
use super::fields::Flaw;
use super::iolog::Iolog;
use super::{
    Columns, Format, TimeUnit, TraceOptions, alibaba, cloudphysics, fiu, mqsim, msr, spc, systor17,
    tencent, vscsi,
};
use crate::{OpKind, Request};

/// Which device a row is about, as it stands in the line: one field, or two with a
/// byte between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Device<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) second: Option<(u8, &'a [u8])>,
}

impl<'a> Device<'a> {
    pub(crate) fn named(name: &'a [u8]) -> Self {
        Self { name, second: None }
    }

    pub(crate) fn pair(name: &'a [u8], between: u8, second: &'a [u8]) -> Self {
        Self { name, second: Some((between, second)) }
    }
}

/// A request as its row says, before the rules that span rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<'a> {
    /// With the absolute time of the trace, and the address on its own device.
    pub(crate) request: Request,
    /// `None`: the format has none.
    pub(crate) device: Option<Device<'a>>,
    /// The drive makes everything durable before it takes the request.
    pub(crate) flush_before: bool,
    /// The range was rounded outward to whole sectors.
    pub(crate) rounded: bool,
}

impl<'a> Row<'a> {
    pub(crate) fn new(request: Request, device: impl Into<Option<Device<'a>>>) -> Self {
        let device = device.into();
        Self { request, device, flush_before: false, rounded: false }
    }

    /// The row of a request in bytes.
    pub(crate) fn of_bytes(
        at_ns: u64,
        op: OpKind,
        offset: u64,
        bytes: u64,
        device: impl Into<Option<Device<'a>>>,
    ) -> Result<Self, Flaw> {
        let (request, rounded) = super::fields::request_of_bytes(at_ns, op, offset, bytes)?;
        Ok(Self { rounded, ..Self::new(request, device) })
    }
}

/// What a line is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Line<'a> {
    Row(Row<'a>),
    /// No request, and why; these are counted by reason.
    Other(&'static str),
}

impl<'a> From<Row<'a>> for Line<'a> {
    fn from(row: Row<'a>) -> Self {
        Self::Row(row)
    }
}

/// The reader of lines of one format.
#[derive(Debug)]
pub(crate) enum Parser {
    /// A format whose rows stand alone.
    Plain(Format),
    Iolog(Iolog),
    Blkparse(Blkparse),
    Custom(Custom),
}

impl Parser {
    /// For a format and the first line of the file. The second value says whether that
    /// line is a row itself, or a header that has been dealt with.
    pub(crate) fn new(
        format: Format,
        first: &[u8],
        columns: Option<&Columns>,
        opts: &TraceOptions,
    ) -> Result<(Self, bool), Flaw> {
        match (format, columns) {
            (Format::Custom, Some(columns)) => {
                Ok((Self::Custom(Custom::new(columns.clone())), true))
            }
            (Format::FioIolog, _) => Ok((Self::Iolog(Iolog::new(first)?), false)),
            (Format::Blkparse, _) => {
                Ok((Self::Blkparse(Blkparse::new(opts.blkparse_action)), true))
            }
            (Format::CloudPhysicsCsv, _) if !super::detect::is_header(format, first) => {
                let expected = format!("the header «{}»", format.columns());
                let found = format!("«{}»", crate::names::excerpt(first));
                Err(Flaw::new(expected, found).advise("add the header or name another format"))
            }
            _ => Ok((Self::Plain(format), !super::detect::is_header(format, first))),
        }
    }

    /// What one line means. `unit` is that of its time column.
    pub(crate) fn parse<'a>(&mut self, line: &'a [u8], unit: TimeUnit) -> Result<Line<'a>, Flaw> {
        match self {
            Self::Plain(Format::Mqsim) => mqsim::parse(line, unit).map(Line::Row),
            Self::Plain(Format::CloudPhysicsCsv) => cloudphysics::parse(line, unit).map(Line::Row),
            Self::Plain(Format::Vscsi1) => vscsi::parse_v1(line, unit),
            Self::Plain(Format::Vscsi2) => vscsi::parse_v2(line, unit),
            Self::Plain(Format::Msr) => msr::parse(line, unit).map(Line::Row),
            Self::Plain(Format::Alibaba) => alibaba::parse(line, unit).map(Line::Row),
            Self::Plain(Format::Tencent) => tencent::parse(line, unit).map(Line::Row),
            Self::Plain(Format::Systor17) => systor17::parse(line, unit),
            Self::Plain(Format::Fiu) => fiu::parse(line, unit).map(Line::Row),
            Self::Plain(Format::Spc) => spc::parse(line, unit).map(Line::Row),
            Self::Iolog(iolog) => iolog.parse(line, unit),
            Self::Blkparse(blkparse) => blkparse.parse(line, unit),
            Self::Custom(custom) => custom.parse(line, unit),
            Self::Plain(Format::FioIolog | Format::Blkparse | Format::Custom) => {
                unreachable!("these have parsers of their own")
            }
        }
    }

    /// Whether empty lines may stand between lines.
    pub(crate) fn takes_blank_lines(&self) -> bool {
        matches!(self, Self::Blkparse(_))
    }
}
