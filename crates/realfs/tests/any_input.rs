//! Whatever a kernel or a tool prints, and whatever a journal holds: an answer or an error,
//! never a panic; and what is accepted can be counted.

use flashwise_realfs::collect::Collector;
use flashwise_realfs::journal;
use flashwise_realfs::layout::{Layout, parse_dumpe2fs, parse_filefrag, parse_stat};
use flashwise_realfs::trace::{Dev, parse};
use proptest::prelude::*;

const LINES: [&str; 5] = [
    "jbd2/loop0-8-2 [001] ..... 24520.298566: block_bio_queue: 7,0 FWFSM 524352 + 8 [jbd2/loop0-8]",
    "kworker/1:1H-78 [001] .N... 24520.294881: block_rq_issue: 7,0 RAM 8192 () 536 + 16 be,0,4 [kworker/1:1H]",
    "x-1 [000] ..... 1.000001: ext4_allocate_blocks: dev 7,0 ino 12 flags HINT_DATA|DELALLOC_RESV len 4 block 33280 lblk 0 goal 0 lleft 0 lright 0 pleft 0 pright 0",
    "j-2 [001] ...1. 1.000001: jbd2_run_stats: dev 7,0 tid 2 wait 0 request_delay 0 running 4 locked 0 flushing 0 logging 0 handle_count 4 blocks 6 blocks_logged 8",
    "CPU:1 [LOST 123 EVENTS]",
];

const TEXTS: [&str; 3] = [
    "Block count: 131072\nBlock size: 4096\nGroup 0: (Blocks 0-32767)\n  Primary superblock at 0, Group descriptors at 1-1\n  Inode table at 73-584 (+73)\n",
    "EXTENTS:\n(ETB0):70000, (0-4095):65536-69631, (4096):12\n",
    "   0:  0..  1:  34816..  34817:  2:\n   1:  2..  2:  34818..  34818:  1: last,eof\n/m/a: 1 extent found\n",
];

/// A text with a part replaced, as a new kernel or a cut line would have it.
fn damaged(texts: &'static [&'static str]) -> impl Strategy<Value = String> {
    let part = prop_oneof![".{0,6}", "[0-9]{1,22}", "[FRWDNSMA]{0,4}", Just(String::new())];
    (0..texts.len(), any::<prop::sample::Index>(), any::<prop::sample::Index>(), part).prop_map(
        move |(which, from, to, part)| {
            let text = texts[which];
            let (from, to) = (from.index(text.len() + 1), to.index(text.len() + 1));
            format!("{}{part}{}", &text[..from.min(to)], &text[from.max(to)..])
        },
    )
}

proptest! {
    #[test]
    fn lines_are_read_or_refused(line in prop_oneof![damaged(&LINES), "\\PC{0,80}"]) {
        let layout = Layout { block_bytes: 4096, n_blocks: 1, ..Layout::default() };
        let mut collector = Collector::new(Dev { major: 7, minor: 0 }, &layout, None);
        collector.start();
        if let Ok(Some(line)) = parse(&line) {
            collector.event(&line.event);
            let seen = collector.cut();
            prop_assert_eq!(seen.written_bytes(), seen.structures.values().sum::<u64>());
        }
    }

    #[test]
    fn texts_are_read_or_refused(text in prop_oneof![damaged(&TEXTS), "\\PC{0,80}"]) {
        if let Ok(layout) = parse_dumpe2fs(&text) {
            prop_assert!(layout.block_bytes > 0);
        }
        let _ = parse_stat(&text);
        parse_filefrag(&text);
    }

    #[test]
    fn journals_are_read_or_refused(
        words in prop::collection::vec(any::<u32>(), 256),
        kind in 0_u32..6,
        features in prop::sample::select(vec![0_u32, 2, 8, 16, 18]),
    ) {
        let mut head = vec![0xC03B_3998, 4, 0, 1024, 2, 1, 1, 1, 0, 0, features];
        head.resize(256, 0);
        let mut block = words;
        block[..2].copy_from_slice(&[0xC03B_3998, kind]);
        let bytes: Vec<u8> = head.iter().chain(&block).flat_map(|w| w.to_be_bytes()).collect();
        let all = journal::parse(&bytes).expect("whole blocks");
        // A block of 1 KiB holds at most 126 tags of 8 bytes.
        prop_assert!(all.values().all(|t| t.homes.len() <= 126));
    }
}
