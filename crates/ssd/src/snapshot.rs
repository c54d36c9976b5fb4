//! Saved drives: age once, use often.
//!
//! A file is the magic line, then one zstd stream of sections: the preset as TOML,
//! the state of the FTL, the wear of the flash. A loaded drive goes on exactly as
//! the saved one would have (both start from a drive at rest).

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;

use flashwise_ftl::{CodecError, Contents, Ftl, Reader, RelationPolicy, Writer};
use flashwise_nand::{Instant, Nand};

use crate::config::DeviceConfig;
use crate::device::{Options, Ssd};
use crate::error::{PresetError, SnapshotError};

const MAGIC: &str = "flashwise drive 2\n";

/// How the files of all versions begin.
const KIND: &str = "flashwise drive ";

/// Longest preset text accepted \[bytes\].
const PRESET_BYTES_MAX: u64 = 1 << 20;

/// The file begins like a saved drive (of any version).
pub fn is_saved_drive(path: &Path) -> bool {
    let mut head = [0u8; KIND.len()];
    File::open(path).and_then(|mut f| f.read_exact(&mut head)).is_ok() && head == KIND.as_bytes()
}

impl Ssd {
    /// Brings the drive to rest (open program units are padded, which counts) and
    /// writes it to a file.
    pub fn save(&mut self, path: &Path) -> Result<(), SnapshotError> {
        self.quiesce();
        let name = path.display().to_string();
        let io = |source| SnapshotError::Io { path: name.clone(), source };
        let mut file = BufWriter::new(File::create(path).map_err(io)?);
        file.write_all(MAGIC.as_bytes()).map_err(io)?;
        let mut zstd = zstd::Encoder::new(file, 1).map_err(io)?;
        self.write_sections(&mut zstd)
            .map_err(|source| SnapshotError::Codec { path: name.clone(), source })?;
        zstd.finish().and_then(|mut f| f.flush()).map_err(io)
    }

    /// Reads a drive from a file. Contents, if it has any, go to
    /// `options.contents`; the relation policy may differ from that it was aged
    /// with.
    pub fn load(path: &Path, options: Options) -> Result<Self, SnapshotError> {
        let name = path.display().to_string();
        let io = |source| SnapshotError::Io { path: name.clone(), source };
        let mut file = BufReader::new(File::open(path).map_err(io)?);
        let mut head = [0u8; MAGIC.len()];
        if file.read_exact(&mut head).is_err() || head != MAGIC.as_bytes() {
            let expected = MAGIC.trim_end();
            return Err(if head.starts_with(KIND.as_bytes()) {
                SnapshotError::OtherVersion { path: name, expected }
            } else {
                SnapshotError::NotADrive { path: name, expected }
            });
        }
        let mut zstd = zstd::Decoder::new(file).map_err(io)?;
        let ssd = read_sections(&name, &mut zstd, options)?;
        if zstd.read(&mut [0]).map_err(io)? > 0 {
            let what = "bytes behind its end".to_owned();
            let source = CodecError::Inconsistent { what };
            return Err(SnapshotError::Codec { path: name, source });
        }
        Ok(ssd)
    }

    /// Ends all work, padding what is half filled.
    fn quiesce(&mut self) {
        self.rest();
        self.ftl.quiesce(self.now_ns(), &mut Instant(&mut self.nand));
        self.release_at_once();
        self.rest();
    }

    fn write_sections(&self, to: &mut dyn Write) -> Result<(), CodecError> {
        let mut w = Writer::new(to);
        w.bytes(b"CONF", self.cfg.to_toml().as_bytes())?;
        let keeps_contents = !matches!(self.keeps(), Contents::None);
        let keeps_oob = self.ftl.media().is_some();
        w.bytes(b"KEPT", &[u8::from(keeps_contents), u8::from(keeps_oob)])?;
        w.u32s(b"WEAR", self.nand.wear())?;
        self.ftl.save(&mut w)
    }
}

fn read_sections(name: &str, from: &mut dyn Read, options: Options) -> Result<Ssd, SnapshotError> {
    let codec = |source| SnapshotError::Codec { path: name.to_owned(), source };
    let preset = |source| SnapshotError::Preset { path: name.to_owned(), source };
    let bad = |what: &str| codec(CodecError::Inconsistent { what: what.to_owned() });
    let mut r = Reader::new(from);
    let text = r.bytes(b"CONF", PRESET_BYTES_MAX).map_err(codec)?;
    let text = String::from_utf8(text).map_err(|_| bad("its preset is not text"))?;
    let cfg =
        DeviceConfig::parse(&format!("{name} (preset inside)"), &text, &[]).map_err(preset)?;
    let kept = r.bytes(b"KEPT", 2).map_err(codec)?;
    let &[keeps_contents @ (0 | 1), keeps_oob @ (0 | 1)] = &kept[..] else {
        return Err(bad("section KEPT"));
    };
    let mut ftl_cfg = cfg.ftl_config(options.relation).map_err(preset)?;
    ftl_cfg.oob = keeps_oob == 1;
    let contents = match (keeps_contents, options.contents) {
        (0, _) => Contents::None,
        (_, Contents::None) => Contents::Memory,
        (_, wanted) => wanted,
    };
    let mut nand = Nand::new(ftl_cfg.geo, cfg.timing().map_err(preset)?);
    nand.set_wear(r.u32s(b"WEAR", ftl_cfg.geo.n_blocks() as usize).map_err(codec)?);
    let mut ftl = Ftl::load(ftl_cfg, contents, &mut r).map_err(codec)?;
    ftl.set_erases(nand.wear());
    ftl.self_check(&nand).map_err(|what| codec(CodecError::Inconsistent { what }))?;
    Ssd::assemble(cfg, ftl, nand).map_err(preset)
}

impl Ssd {
    /// The same drive with another relation policy: what was written stays.
    pub fn with_relation(mut self, relation: RelationPolicy) -> Self {
        self.ftl.set_relation(relation);
        self
    }

    /// The same drive with other bounds for hinted writes (`ftl.yield_erases`,
    /// `ftl.yield_programs`): what was written stays.
    pub fn with_yield(mut self, erases: f64, programs: u32) -> Result<Self, PresetError> {
        (self.cfg.ftl.yield_erases, self.cfg.ftl.yield_programs) = (erases, programs);
        let units = self.cfg.yield_units(self.ftl.config())?;
        self.ftl.set_yield(self.cfg.yield_erases()?, units);
        Ok(self)
    }
}
