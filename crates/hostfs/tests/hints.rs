//! What the file system tells the drive about each write.

use flashwise_hint::{DataClass, FileEvent, FileId, FileOp, Handle, Relation};
use flashwise_hostfs::{
    Call, Fd, FsConfig, Host, Io, IoClass, IoOp, OpenFlags, Paths, Placer, RamDisk, RamSpeed,
    Script,
};

const FD: Fd = Fd(0);

/// Appends, overwrites, and a film.
fn script() -> Script {
    let mut paths = Paths::new();
    let (log, film) = (paths.intern("/log"), paths.intern("/film.MP4"));
    let open = |path| Call::Open { path, fd: FD, flags: OpenFlags::CREATE };
    let calls = vec![
        open(log),
        Call::Write { fd: FD, offset: 0, len: 8192 },
        Call::Fsync { fd: FD },
        Call::Append { fd: FD, len: 4096 },
        Call::Fsync { fd: FD },
        Call::Write { fd: FD, offset: 4096, len: 4096 },
        Call::Fsync { fd: FD },
        // A hole, then a block that follows it.
        Call::Write { fd: FD, offset: 65_536, len: 4096 },
        Call::Fsync { fd: FD },
        Call::Close { fd: FD },
        open(film),
        Call::Append { fd: FD, len: 4096 },
        Call::Fsync { fd: FD },
        Call::Close { fd: FD },
        Call::Sync,
    ];
    Script::new(paths, vec![], calls)
}

fn writes(fs: &str, placer: Option<Box<dyn Placer + Send>>) -> Vec<Io> {
    let config = FsConfig::parse(fs).expect("a valid file system");
    let mut host = Host::new(script(), &config, 1 << 30).expect("it fits");
    if let Some(placer) = placer {
        host.set_placer(placer);
    }
    let mut disk = RamDisk::new(RamSpeed::DDR4);
    let mut all = vec![];
    host.run(|io| {
        all.push(*io);
        disk.submit(io)
    })
    .expect("it runs");
    all.retain(|io| io.op == IoOp::Write);
    all
}

fn data(all: &[Io]) -> Vec<&Io> {
    all.iter().filter(|io| io.class == IoClass::Data).collect()
}

#[test]
fn relations_and_classes_come_with_each_write() {
    let all = writes("ext4", None);
    let data = data(&all);
    let relations: Vec<Relation> = data.iter().map(|io| io.hint.relation).collect();
    let second_block = flashwise_hint::Lba(data[0].lba.0 + 8);
    // New, append to the block before, overwrite, behind a hole, new.
    assert_eq!(
        relations,
        [
            Relation::None,
            Relation::Append { prev: second_block },
            Relation::Overwrite,
            Relation::None,
            Relation::None
        ]
    );
    let classes: Vec<DataClass> = data.iter().map(|io| io.hint.class).collect();
    assert_eq!(classes[..4], [DataClass::Hot; 4]);
    assert_eq!(classes[4], DataClass::Cold);
    for io in &all {
        match io.class {
            IoClass::Journal => assert_eq!(io.hint.class, DataClass::Journal),
            IoClass::Metadata => assert_eq!(io.hint.class, DataClass::Metadata),
            IoClass::Data => {}
        }
    }
    assert!(all.iter().any(|io| io.class == IoClass::Metadata));
}

#[test]
fn each_axis_has_its_switch() {
    let off = writes("ext4,hint_relation=off", None);
    assert!(off.iter().all(|io| io.hint.relation == Relation::None));
    assert!(off.iter().any(|io| io.hint.class == DataClass::Journal));
    let off = writes("ext4,hint_class=off,cold=none", None);
    assert!(off.iter().all(|io| io.hint.class == DataClass::Unspecified));
    assert!(off.iter().any(|io| io.hint.relation == Relation::Overwrite));
    let warm = writes("ext4,cold=none", None);
    assert!(warm.iter().all(|io| io.hint.class != DataClass::Cold));
}

/// Handle 1 for files by their path, and everything that was heard.
#[derive(Default)]
struct Films {
    films: Vec<FileId>,
    heard: std::sync::Arc<std::sync::Mutex<Vec<FileEvent>>>,
}

impl Placer for Films {
    fn event(&mut self, event: &FileEvent) {
        if let FileOp::Create { path: Some(path) } = &event.op
            && path.ends_with("MP4")
        {
            self.films.push(event.file);
        }
        self.heard.lock().expect("nobody panicked").push(event.clone());
    }

    fn handle(&mut self, file: FileId, _offset: u64, _len: u64, _now_ns: u64) -> Handle {
        Handle(u16::from(self.films.contains(&file)))
    }
}

#[test]
fn a_placement_policy_hears_of_files_and_chooses_handles() {
    let films = Films::default();
    let heard = films.heard.clone();
    let all = writes("ext4", Some(Box::new(films)));
    let handles: Vec<u16> = data(&all).iter().map(|io| io.hint.handle.0).collect();
    assert_eq!(handles, [0, 0, 0, 0, 1]);
    let heard = heard.lock().expect("nobody panicked");
    let of_log: Vec<&FileOp> =
        heard.iter().filter(|e| e.file == heard[0].file).map(|e| &e.op).collect();
    assert_eq!(of_log[0], &FileOp::Create { path: Some("/log".to_owned()) });
    assert_eq!(of_log[1], &FileOp::Write { offset: 0, len: 8192 });
    assert_eq!(of_log[2], &FileOp::Sync);
    assert_eq!(of_log.last(), Some(&&FileOp::LastClose));
    let off = writes("ext4,hint_handle=off", Some(Box::new(Films::default())));
    assert!(off.iter().all(|io| io.hint.handle == Handle(0)));
}
