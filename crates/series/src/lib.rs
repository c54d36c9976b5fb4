//! Long tables in files, a row at a time.
//!
//! The name of the file says the form: `.csv`, `.csv.gz`, `.csv.zst`, or `.parquet`
//! with the cargo feature `parquet`. A file is opened when it is created, so that a
//! place that cannot be written is found before any work is done. The same rows give
//! the same bytes. A file that was not finished is removed when it is dropped, so that
//! half a table is never taken for a whole one.

mod csv;
#[cfg(feature = "parquet")]
mod parquet;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text, always there.
    Text,
    /// Whole numbers, always there.
    Whole,
    /// Numbers, which may be missing.
    Number,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name, which ends in the unit.
    pub name: String,
    /// What it holds.
    pub kind: Kind,
}

/// One value. It must be of the kind of its column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// Text.
    Text(&'a str),
    /// A whole number.
    Whole(u64),
    /// A number, or none.
    Number(Option<f64>),
}

impl From<u64> for Cell<'_> {
    fn from(n: u64) -> Self {
        Self::Whole(n)
    }
}

impl From<f64> for Cell<'_> {
    fn from(n: f64) -> Self {
        Self::Number(Some(n))
    }
}

impl From<Option<f64>> for Cell<'_> {
    fn from(n: Option<f64>) -> Self {
        Self::Number(n)
    }
}

/// A table that cannot be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The name says no form.
    #[error(
        "{path}: the name of the file says its form; it must end in .csv, .csv.gz, .csv.zst or .parquet"
    )]
    Form {
        /// File.
        path: String,
    },
    /// This build has no Parquet.
    #[error(
        "{path}: this build writes no Parquet; build it with «cargo build --release --features \
         flashwise-cli/parquet», or name a .csv file"
    )]
    NoParquet {
        /// File.
        path: String,
    },
    /// The file cannot be written.
    #[error("{path}: {source}")]
    Io {
        /// File.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Plain,
    Gzip,
    Zstd,
    #[cfg(feature = "parquet")]
    Parquet,
}

fn form_of(path: &Path) -> Result<Form, TableError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let shown = || path.display().to_string();
    match () {
        () if name.ends_with(".csv") => Ok(Form::Plain),
        () if name.ends_with(".csv.gz") => Ok(Form::Gzip),
        () if name.ends_with(".csv.zst") => Ok(Form::Zstd),
        #[cfg(feature = "parquet")]
        () if name.ends_with(".parquet") => Ok(Form::Parquet),
        () if name.ends_with(".parquet") => Err(TableError::NoParquet { path: shown() }),
        () => Err(TableError::Form { path: shown() }),
    }
}

/// Checks the name of a file without touching it.
pub fn check_name(path: &Path) -> Result<(), TableError> {
    form_of(path).map(|_| ())
}

enum Sink {
    Csv(csv::Csv),
    #[cfg(feature = "parquet")]
    Parquet(Box<parquet::Parquet>),
}

/// A table that is being written.
pub struct TableFile {
    path: PathBuf,
    /// Where it is written.
    partial: PathBuf,
    columns: Vec<Column>,
    /// `None`: finished.
    sink: Option<Sink>,
}

impl TableFile {
    /// Begins the file and writes the names of the columns. Until it is finished it is
    /// written beside its place, under a name that ends in `.partial`: a table that was
    /// there before stays until then.
    pub fn create(path: &Path, columns: Vec<Column>) -> Result<Self, TableError> {
        let form = form_of(path)?;
        let refused = |source| TableError::Io { path: path.display().to_string(), source };
        if path.is_dir() {
            return Err(refused(io::ErrorKind::IsADirectory.into()));
        }
        let partial = partial_name(path);
        let file = File::create(&partial).map_err(refused)?;
        let sink = match form {
            Form::Plain => csv::Csv::plain(file, &columns).map(Sink::Csv),
            Form::Gzip => csv::Csv::gzip(file, &columns).map(Sink::Csv),
            Form::Zstd => csv::Csv::zstd(file, &columns).map(Sink::Csv),
            #[cfg(feature = "parquet")]
            Form::Parquet => {
                parquet::Parquet::new(file, &columns).map(|p| Sink::Parquet(Box::new(p)))
            }
        };
        let sink = Some(sink.map_err(refused)?);
        Ok(Self { path: path.to_owned(), partial, columns, sink })
    }

    /// Name of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If cells and columns do not agree.
    pub fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        assert_eq!(cells.len(), self.columns.len(), "a cell for each column");
        let agree = |(c, column): (&Cell<'_>, &Column)| {
            matches!(
                (c, column.kind),
                (Cell::Text(_), Kind::Text)
                    | (Cell::Whole(_), Kind::Whole)
                    | (Cell::Number(_), Kind::Number)
            )
        };
        debug_assert!(cells.iter().zip(&self.columns).all(agree), "kinds agree: {cells:?}");
        match self.sink.as_mut().expect("finish takes the table") {
            Sink::Csv(csv) => csv.row(cells),
            #[cfg(feature = "parquet")]
            Sink::Parquet(parquet) => parquet.row(cells),
        }
    }

    /// Writes the rest and puts the file in its place.
    pub fn finish(mut self) -> io::Result<()> {
        match self.sink.take().expect("finish takes the table") {
            Sink::Csv(csv) => csv.finish()?,
            #[cfg(feature = "parquet")]
            Sink::Parquet(parquet) => parquet.finish()?,
        }
        if self.is_beside() { std::fs::rename(&self.partial, &self.path) } else { Ok(()) }
    }

    fn is_beside(&self) -> bool {
        self.partial != self.path
    }
}

/// Where a file is written until it is whole; a device or a pipe at once.
fn partial_name(path: &Path) -> PathBuf {
    if std::fs::metadata(path).is_ok_and(|m| !m.is_file()) {
        return path.to_owned();
    }
    let mut name = path.as_os_str().to_owned();
    name.push(".partial");
    name.into()
}

impl Drop for TableFile {
    fn drop(&mut self) {
        let unfinished = self.sink.take().is_some();
        if unfinished && self.is_beside() {
            // What cannot be removed is left: the failure itself is reported elsewhere.
            let _ = std::fs::remove_file(&self.partial);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn columns() -> Vec<Column> {
        let all = [("policy", Kind::Text), ("n", Kind::Whole), ("read_us", Kind::Number)];
        all.map(|(name, kind)| Column { name: name.to_owned(), kind }).to_vec()
    }

    fn write(path: &Path) {
        let mut table = TableFile::create(path, columns()).expect("a table");
        table.row(&[Cell::Text("none"), 1.into(), 0.5.into()]).unwrap();
        table.row(&[Cell::Text("a,b \"c\""), u64::MAX.into(), Cell::Number(None)]).unwrap();
        table.row(&[Cell::Text("none"), 0.into(), 1e-7.into()]).unwrap();
        table.finish().unwrap();
    }

    const TEXT: &str = "policy,n,read_us\nnone,1,0.5\n\"a,b \"\"c\"\"\",18446744073709551615,\n\
                        none,0,0.0000001\n";

    #[test]
    fn the_same_table_in_every_form_of_csv() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        ["a.csv", "b.csv.gz", "c.CSV.ZST"].iter().for_each(|n| write(&path(n)));
        assert_eq!(std::fs::read_to_string(path("a.csv")).unwrap(), TEXT);
        let (mut gz, mut zst) = (String::new(), String::new());
        let file = File::open(path("b.csv.gz")).unwrap();
        flate2::read::GzDecoder::new(file).read_to_string(&mut gz).unwrap();
        let file = File::open(path("c.CSV.ZST")).unwrap();
        zstd::Decoder::new(file).unwrap().read_to_string(&mut zst).unwrap();
        assert_eq!((gz.as_str(), zst.as_str()), (TEXT, TEXT));
        let first = std::fs::read(path("b.csv.gz")).unwrap();
        write(&path("b.csv.gz"));
        assert_eq!(first, std::fs::read(path("b.csv.gz")).unwrap(), "the same bytes");
    }

    #[test]
    fn half_a_table_is_removed_and_what_was_there_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("half.csv");
        std::fs::write(&path, "before").unwrap();
        let mut table = TableFile::create(&path, columns()).unwrap();
        table.row(&[Cell::Text("none"), 1.into(), 0.5.into()]).unwrap();
        let files = || std::fs::read_dir(dir.path()).unwrap().count();
        assert_eq!(files(), 2);
        drop(table);
        assert_eq!(files(), 1);
        assert_eq!(std::fs::read(&path).unwrap(), b"before");
        write(&path);
        assert_eq!(files(), 1);
        assert!(std::fs::read(&path).unwrap().starts_with(b"policy"));
    }

    #[test]
    fn what_cannot_be_written_is_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let message = |p: &Path| TableFile::create(p, columns()).err().unwrap().to_string();
        assert!(message(&dir.path().join("x.txt")).contains(".csv.zst"));
        assert!(message(&dir.path().join("no/dir.csv")).contains("no/dir.csv"));
        assert!(message(Path::new("")).contains("must end in"));
        let parquet = dir.path().join("x.parquet");
        if cfg!(not(feature = "parquet")) {
            assert!(message(&parquet).contains("--features"));
        }
    }

    #[cfg(feature = "parquet")]
    #[test]
    fn parquet_holds_the_same_rows() {
        use ::parquet::file::reader::{FileReader, SerializedFileReader};
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.parquet");
        let mut table = TableFile::create(&path, columns()).unwrap();
        // More than one row group.
        for i in 0..100_000u64 {
            let n = (i % 3 != 0).then_some(i as f64 / 2.0);
            table
                .row(&[Cell::Text(if i % 2 == 0 { "none" } else { "hints" }), i.into(), n.into()])
                .unwrap();
        }
        table.finish().unwrap();
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        assert_eq!(reader.metadata().file_metadata().num_rows(), 100_000);
        for (i, row) in reader.get_row_iter(None).unwrap().enumerate().step_by(9_973) {
            let row = row.unwrap();
            let values: Vec<String> = row.get_column_iter().map(|(_, v)| v.to_string()).collect();
            let n = if i % 3 == 0 { "null".to_owned() } else { format!("{:?}", i as f64 / 2.0) };
            let policy = if i % 2 == 0 { "\"none\"" } else { "\"hints\"" };
            assert_eq!(values, [policy.to_owned(), i.to_string(), n]);
        }
        let first = std::fs::read(&path).unwrap();
        assert!(first.len() < 1_000_000, "{} bytes", first.len());
    }
}
