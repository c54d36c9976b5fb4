//! The examples of docs/traces.md are read as the document says.

use std::io::Cursor;
use std::path::Path;

use flashwise_workload::{
    Format, OpKind, Request, Source, TraceOptions, WorkloadError, read_trace,
};

fn document() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/traces.md");
    std::fs::read_to_string(path).unwrap()
}

/// The text blocks of the section with this title.
fn examples(title: &str) -> Vec<String> {
    let document = document();
    let (_, section) = document.split_once(&format!("\n{title}\n")).expect(title);
    let end = section.find("\n## ").into_iter().chain(section.find("\n### ")).min();
    let section = &section[..end.unwrap_or(section.len())];
    let blocks = section.split("```text\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

fn read(data: &[u8], opts: &TraceOptions) -> Result<(Format, Vec<Request>), WorkloadError> {
    let mut reader = read_trace(Path::new("example"), Box::new(Cursor::new(data.to_vec())), opts)?;
    let mut out = Vec::new();
    while let Some(request) = reader.next_request()? {
        out.push(request);
    }
    Ok((reader.format(), out))
}

#[test]
fn every_text_format_has_an_example_that_is_detected() {
    for format in Format::ALL {
        if matches!(format, Format::Vscsi1 | Format::Vscsi2 | Format::Custom) {
            continue;
        }
        let examples = examples(&format!("### `{format}`"));
        assert!(!examples.is_empty(), "{format}");
        for example in examples {
            let (found, requests) = read(example.as_bytes(), &TraceOptions::default()).unwrap();
            assert_eq!(found, format, "{example}");
            assert!(!requests.is_empty(), "{example}");
        }
    }
}

#[test]
fn the_binary_record_is_what_the_text_says() {
    let digits: String = examples("### `vscsi1` and `vscsi2`")[0].split_whitespace().collect();
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    let record: Vec<u8> = (0..digits.len()).step_by(2).map(byte).collect();
    let (format, requests) = read(&record, &TraceOptions::default()).unwrap();
    assert_eq!(format, Format::Vscsi1);
    let request = requests[0];
    assert_eq!((request.op, request.lba.0, request.sectors), (OpKind::Write, 8, 8));
}

#[test]
fn the_described_columns_read_the_row_beside_them() {
    let [option, row] = &examples("## Columns of your own")[..] else { panic!("two blocks") };
    let columns = option.trim().strip_prefix("--columns ").unwrap().parse().unwrap();
    let opts = TraceOptions { columns: Some(columns), ..TraceOptions::default() };
    let (_, requests) = read(row.as_bytes(), &opts).unwrap();
    let request = requests[0];
    assert_eq!((request.op, request.lba.0, request.sectors), (OpKind::Write, 8, 8));
}
