#!/usr/bin/env bash
# Records examples/ext4.blkparse.gz: the block events of file work on a real ext4, as
# the text that blkparse prints by default. Needs root, loop devices, ext4 and blkparse
# (package blktrace).
#
# The events come from the kernel's own block tracer, in the binary form that blktrace
# saves (`trace_options: bin`), and blkparse turns them into text. So this also works
# where blktrace itself may not open its files in debugfs. Two differences from a run
# of blktrace: blkparse learns no process names, and numbers no events.
set -euo pipefail
out=${1:-examples/ext4.blkparse.gz}
dir=$(mktemp -d)
tracing=/sys/kernel/tracing
mountpoint -q "$tracing" || mount -t tracefs tracefs "$tracing"
truncate -s 256M "$dir/image"
mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 "$dir/image"
loop=$(losetup --find --show --direct-io=off "$dir/image")
events=/sys/block/$(basename "$loop")/trace/enable
cleanup() {
    echo 0 >"$events" || true
    umount "$dir/mnt" 2>/dev/null || true
    echo nop >"$tracing/current_tracer" || true
    echo nobin >"$tracing/trace_options" || true
    echo context-info >"$tracing/trace_options" || true
    losetup -d "$loop" || true
    rm -rf "$dir"
}
trap cleanup EXIT
mkdir "$dir/mnt"
echo 16384 >"$tracing/buffer_size_kb"
echo blk >"$tracing/current_tracer"
echo bin >"$tracing/trace_options"
echo nocontext-info >"$tracing/trace_options"
: >"$tracing/trace"
echo 1 >"$events"

mount -o discard "$loop" "$dir/mnt"
for round in $(seq 1 12); do
    for file in $(seq 1 8); do
        head -c $((round * file * 700)) /dev/urandom >"$dir/mnt/f$file.$round"
    done
    sync -f "$dir/mnt"
    dd if=/dev/urandom of="$dir/mnt/log" bs=4k count=3 oflag=append conv=notrunc,fsync status=none
    if ((round % 4 == 0)); then
        rm -f "$dir"/mnt/f*.$((round - 3)) "$dir"/mnt/f*.$((round - 2))
        sync -f "$dir/mnt"
        echo 3 >/proc/sys/vm/drop_caches
        cat "$dir"/mnt/f*."$round" >/dev/null
    fi
done
umount "$dir/mnt"

echo 0 >"$events"
timeout 3 cat "$tracing/trace_pipe" >"$dir/ext4.blktrace.0" || true
# blkparse expects one file for each processor and says so on stderr.
(cd "$dir" && blkparse -i ext4 2>/dev/null) | gzip -9n >"$out"
zcat "$out" | wc -l
