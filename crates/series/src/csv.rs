//! Comma-separated values as RFC 4180 has them, with a header; lines end in LF. A
//! missing number is an empty field. Numbers are the shortest that read back as the
//! same.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::{Cell, Column};

enum Out {
    Plain(BufWriter<File>),
    Gzip(GzEncoder<BufWriter<File>>),
    Zstd(zstd::Encoder<'static, BufWriter<File>>),
}

pub(crate) struct Csv {
    out: Out,
    line: String,
}

impl Csv {
    pub(crate) fn plain(file: File, columns: &[Column]) -> io::Result<Self> {
        Self::new(Out::Plain(BufWriter::new(file)), columns)
    }

    pub(crate) fn gzip(file: File, columns: &[Column]) -> io::Result<Self> {
        // The header carries no time, so that the same rows give the same bytes.
        let out = GzEncoder::new(BufWriter::new(file), Compression::default());
        Self::new(Out::Gzip(out), columns)
    }

    pub(crate) fn zstd(file: File, columns: &[Column]) -> io::Result<Self> {
        let out = zstd::Encoder::new(BufWriter::new(file), zstd::DEFAULT_COMPRESSION_LEVEL)?;
        Self::new(Out::Zstd(out), columns)
    }

    fn new(out: Out, columns: &[Column]) -> io::Result<Self> {
        let mut csv = Self { out, line: String::new() };
        let names: Vec<Cell<'_>> = columns.iter().map(|c| Cell::Text(&c.name)).collect();
        csv.row(&names)?;
        // A full disk shows here rather than after the work.
        csv.writer().flush()?;
        Ok(csv)
    }

    fn writer(&mut self) -> &mut dyn Write {
        match &mut self.out {
            Out::Plain(w) => w,
            Out::Gzip(w) => w,
            Out::Zstd(w) => w,
        }
    }

    pub(crate) fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        use std::fmt::Write;
        let mut line = std::mem::take(&mut self.line);
        line.clear();
        for (i, cell) in cells.iter().enumerate() {
            if i > 0 {
                line.push(',');
            }
            match cell {
                Cell::Text(text) => push_text(&mut line, text),
                // Writing to a string cannot fail.
                Cell::Whole(n) => drop(write!(line, "{n}")),
                Cell::Number(Some(n)) if n.is_finite() => drop(write!(line, "{n}")),
                Cell::Number(_) => {}
            }
        }
        line.push('\n');
        let written = self.writer().write_all(line.as_bytes());
        self.line = line;
        written
    }

    pub(crate) fn finish(self) -> io::Result<()> {
        match self.out {
            Out::Plain(mut w) => w.flush(),
            Out::Gzip(w) => w.finish()?.flush(),
            Out::Zstd(w) => w.finish()?.flush(),
        }
    }
}

fn push_text(line: &mut String, text: &str) {
    if text.contains(['"', ',', '\n', '\r']) {
        line.push('"');
        line.push_str(&text.replace('"', "\"\""));
        line.push('"');
    } else {
        line.push_str(text);
    }
}
