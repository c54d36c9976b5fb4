//! Parquet, compressed with Snappy: numbers are optional doubles, whole numbers 64-bit
//! integers, text is UTF-8. Written by columns, so rows are gathered into groups.

use std::fs::File;
use std::io;
use std::sync::Arc;

use parquet::basic::{Compression, ConvertedType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use crate::{Cell, Column, Kind};

/// Rows gathered before they are written.
const GROUP_ROWS: usize = 65_536;

enum Values {
    Text(Vec<ByteArray>),
    Whole(Vec<i64>),
    /// Values there are, and for every row whether it has one.
    Number(Vec<f64>, Vec<i16>),
}

pub(crate) struct Parquet {
    writer: SerializedFileWriter<File>,
    columns: Vec<Values>,
    n_rows: usize,
}

fn io_error(e: ParquetError) -> io::Error {
    io::Error::other(e)
}

impl Parquet {
    pub(crate) fn new(file: File, columns: &[Column]) -> io::Result<Self> {
        let fields: Result<Vec<_>, ParquetError> = columns.iter().map(field).collect();
        let schema = Type::group_type_builder("series").with_fields(fields.map_err(io_error)?);
        let schema = Arc::new(schema.build().map_err(io_error)?);
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY);
        let writer = SerializedFileWriter::new(file, schema, Arc::new(properties.build()));
        let empty = columns.iter().map(|c| match c.kind {
            Kind::Text => Values::Text(vec![]),
            Kind::Whole => Values::Whole(vec![]),
            Kind::Number => Values::Number(vec![], vec![]),
        });
        Ok(Self { writer: writer.map_err(io_error)?, columns: empty.collect(), n_rows: 0 })
    }

    pub(crate) fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        for (cell, values) in cells.iter().zip(&mut self.columns) {
            match (cell, values) {
                (Cell::Text(t), Values::Text(v)) => v.push(ByteArray::from(*t)),
                (Cell::Whole(n), Values::Whole(v)) => {
                    v.push(i64::try_from(*n).unwrap_or(i64::MAX));
                }
                (Cell::Number(n), Values::Number(v, there)) => {
                    let n = n.filter(|n| n.is_finite());
                    v.extend(n);
                    there.push(i16::from(n.is_some()));
                }
                _ => panic!("a cell is of the kind of its column"),
            }
        }
        self.n_rows += 1;
        if self.n_rows == GROUP_ROWS { self.write_group() } else { Ok(()) }
    }

    fn write_group(&mut self) -> io::Result<()> {
        self.n_rows = 0;
        let mut group = self.writer.next_row_group().map_err(io_error)?;
        for values in &mut self.columns {
            let column = group.next_column().map_err(io_error)?;
            let mut column = column.expect("a column for each of the schema");
            let written = match (column.untyped(), &*values) {
                (ColumnWriter::ByteArrayColumnWriter(w), Values::Text(v)) => {
                    w.write_batch(v, None, None)
                }
                (ColumnWriter::Int64ColumnWriter(w), Values::Whole(v)) => {
                    w.write_batch(v, None, None)
                }
                (ColumnWriter::DoubleColumnWriter(w), Values::Number(v, there)) => {
                    w.write_batch(v, Some(there), None)
                }
                _ => panic!("a column is of the kind of the schema"),
            };
            written.map_err(io_error)?;
            column.close().map_err(io_error)?;
            match values {
                Values::Text(v) => v.clear(),
                Values::Whole(v) => v.clear(),
                Values::Number(v, there) => (v.clear(), there.clear()).0,
            }
        }
        group.close().map_err(io_error)?;
        Ok(())
    }

    pub(crate) fn finish(mut self) -> io::Result<()> {
        if self.n_rows > 0 {
            self.write_group()?;
        }
        self.writer.close().map(drop).map_err(io_error)
    }
}

fn field(c: &Column) -> Result<Arc<Type>, ParquetError> {
    let (physical, repetition) = match c.kind {
        Kind::Text => (Physical::BYTE_ARRAY, Repetition::REQUIRED),
        Kind::Whole => (Physical::INT64, Repetition::REQUIRED),
        Kind::Number => (Physical::DOUBLE, Repetition::OPTIONAL),
    };
    let field = Type::primitive_type_builder(&c.name, physical).with_repetition(repetition);
    let text = if c.kind == Kind::Text { ConvertedType::UTF8 } else { ConvertedType::NONE };
    field.with_converted_type(text).build().map(Arc::new)
}
