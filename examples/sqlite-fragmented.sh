#!/usr/bin/env bash
# Writes the extents of a really fragmented SQLite database, as `filefrag -v` prints them:
# the recipe of the FAST'24 paper on a real ext4 on a loop device. 10,000 rows of 16 KiB
# are inserted in descending order without a journal of SQLite's; after each, 100 KiB are
# appended to another file and made durable. `flashwise study fragmentation --extents FILE`
# reads the result.
# Usage: sqlite-fragmented.sh FILE [ROWS]
# Needs root, loop devices, ext4 (e2fsprogs) and python3 with sqlite3; 1.5 GiB of space
# and a minute or two.
set -euo pipefail
out=${1:?usage: sqlite-fragmented.sh FILE [ROWS]}
rows=${2:-10000}
needs() {
    printf 'needs %s\n' "$1" >&2
    exit 1
}
[ "$(id -u)" = 0 ] || needs root
for tool in losetup mkfs.ext4 filefrag python3; do
    command -v "$tool" >/dev/null || needs "$tool"
done
python3 -c 'import sqlite3' 2>/dev/null || needs 'the sqlite3 module of python3'
grep -qw ext4 /proc/filesystems || needs 'ext4 in the kernel'
case $rows in
'' | *[!0-9]*)
    printf 'ROWS: found «%s», expected a number\n' "$rows" >&2
    exit 2
    ;;
esac
# Before the work, not after it.
: >"$out"

dir=$(mktemp -d)
loop=''
cleanup() {
    umount "$dir/mnt" 2>/dev/null || true
    [ -z "$loop" ] || losetup -d "$loop" || true
    rm -rf "$dir"
}
trap cleanup EXIT
# Sparse: only what is written takes space.
truncate -s 6G "$dir/image"
mkfs.ext4 -q -m 0 -b 4096 -E lazy_itable_init=0,lazy_journal_init=0 "$dir/image"
loop=$(losetup --find --show "$dir/image") || needs 'a loop device'
mkdir "$dir/mnt"
mount -o nodelalloc "$loop" "$dir/mnt" || needs 'the right to mount'
# As the paper: nothing is reserved, and files of any size get their blocks side by side.
knobs=/sys/fs/ext4/$(basename "$loop")
echo 0 >"$knobs/reserved_clusters" || needs "write access to $knobs"
echo 4200000000 >"$knobs/mb_stream_req"

# The id is not the rowid: with "integer primary key" the rows would lie backwards in
# their tree and the file would be 166 MiB, not the paper's 162 MB.
python3 - "$dir/mnt" "$rows" <<'EOF'
import os
import sqlite3
import sys

path, rows = sys.argv[1], int(sys.argv[2])
# ext4 gives each processor a place of its own: on one, every run lays out the same.
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
db = sqlite3.connect(path + "/db", isolation_level=None)
db.execute("pragma page_size = 4096")
db.execute("pragma journal_mode = off")
db.execute("create table t(id integer, a text, b text, c text, d text)")
dummy = os.open(path + "/dummy", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
strings = ["x" * n for n in (4096, 4096, 4096, 4094)]
for i in range(rows, 0, -1):
    db.execute("insert into t values (?, ?, ?, ?, ?)", (i, *strings))
    os.write(dummy, b"y" * (100 << 10))
    os.fdatasync(dummy)
assert db.execute("select count(*) from t").fetchone()[0] == rows
db.close()
EOF
sync
# The name in the output is that of the file, not of a directory that is gone.
(cd "$dir/mnt" && filefrag -v db) >"$out"
tail -n 1 "$out"
