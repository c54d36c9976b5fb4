#!/usr/bin/env bash
# Records examples/fio-v3.iolog: what fio 3.31 and later writes with `write_iolog`.
# Two files, random reads and writes, syncs, in the times of the machine it runs on.
# Needs fio. The paths in the log are shortened to the names of the files.
set -euo pipefail
out=${1:-examples/fio-v3.iolog}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fio --name=example --directory="$dir" --filename=a.dat:b.dat --filesize=4m --rw=randrw \
    --rwmixread=60 --bsrange=4k-64k --fsync=16 --thinktime=200 --number_ios=600 \
    --ioengine=psync --randrepeat=1 --allrandrepeat=1 --randseed=7 \
    --write_iolog="$dir/log" >/dev/null
sed "s|$dir/||" "$dir/log" >"$out"
head -1 "$out" | grep -q '^fio version 3 iolog$'
wc -l "$out"
