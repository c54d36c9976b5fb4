#!/usr/bin/env bash
# Records examples/sqlite.trace: the block requests of SQLite on a real ext4, in
# MQSim's columns (time [ns], device, LBA [512 B], sectors, 0 = write, 1 = read).
# Needs root, loop devices, ext4, sqlite3 and the block tracepoints. Discards and
# flushes carry no data and are left out.
set -euo pipefail
out=${1:-examples/sqlite.trace}
dir=$(mktemp -d)
tracing=/sys/kernel/tracing
mountpoint -q "$tracing" || mount -t tracefs tracefs "$tracing"
truncate -s 512M "$dir/image"
mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 "$dir/image"
loop=$(losetup --find --show --direct-io=off "$dir/image")
cleanup() {
    echo 0 >"$tracing/events/block/block_rq_issue/enable" || true
    umount "$dir/mnt" 2>/dev/null || true
    losetup -d "$loop" || true
    rm -rf "$dir"
}
trap cleanup EXIT
mkdir "$dir/mnt"
mount "$loop" "$dir/mnt"
numbers=$(lsblk -dno MAJ:MIN "$loop" | tr -d ' ')
dev=$(((${numbers%:*} << 20) | ${numbers#*:}))
echo 65536 >"$tracing/buffer_size_kb"
echo mono >"$tracing/trace_clock"
echo "dev == $dev" >"$tracing/events/block/block_rq_issue/filter"
: >"$tracing/trace"
echo 1 >"$tracing/events/block/block_rq_issue/enable"

db="$dir/mnt/db"
sql() { sqlite3 "$db" "$1" >/dev/null; }
sql 'create table t(id integer primary key, a blob); create index i on t(substr(a, 1, 8));'
for round in $(seq 1 60); do
    sql "insert into t(a) select randomblob(200 + abs(random()) % 3000) from generate_series(1, 60);"
    sql "update t set a = randomblob(length(a)) where id % 17 = $round % 17;"
    sql "delete from t where id % 23 = $round % 23;"
    if ((round % 10 == 0)); then
        sync
        echo 3 >/proc/sys/vm/drop_caches
        sql 'select sum(length(a)) from t;'
    fi
done
umount "$dir/mnt"

# … 12.345678: block_rq_issue: 7,0 WS 4096 () 1234 + 8 none,0,0 [sqlite3]
echo 0 >"$tracing/events/block/block_rq_issue/enable"
awk '/block_rq_issue:/ {
    for (i = 1; i <= NF; i++) if ($i == "block_rq_issue:") break
    rwbs = $(i + 2); plus = i; while ($plus != "+" && plus <= NF) plus++
    if ($(plus + 1) == 0 || rwbs ~ /D/) next
    type = rwbs ~ /R/ ? 1 : rwbs ~ /W/ ? 0 : -1
    if (type < 0) next
    t = $(i - 1); sub(":", "", t); split(t, s, ".")
    ns = s[1] * 1000000000 + s[2] * 1000
    if (!start) start = ns
    printf "%d 0 %d %d %d\n", ns - start, $(plus - 1), $(plus + 1), type
}' "$tracing/trace" >"$out"
wc -l "$out"
