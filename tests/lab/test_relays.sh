#!/bin/bash
# Paths chosen among four relays of 40, 60, 15 and 8 Mbit/s: the goodput between 20 and 30 s against that of the best two
# alone, with and without a rate limit; then again, 20 s after the best relay has become slow.
. "$(dirname "$0")/lib.sh"
close_to() { awk -v x="$1" -v best="$2" 'BEGIN { exit !(best > 0 && x >= 0.9 * best) }'; }

# go NAME FROM TO OPTION...: sends for TO seconds; the goodput since FROM seconds in Mbit/s becomes NAME_mbps
go() {
	local name=$1 from=$2 to=$3 sending began=$EPOCHREALTIME
	shift 3
	on s timeout "$to" "$BUILD/ptcp" send --json -vv --no-history "${trusted[@]}" "$@" "$dir/large" \
		"ptcp://$("$lab" addr r)/$name" 2>"$dir/$name.err" >"$dir/$name.out" &
	sending=$!
	sleep 0.3
	tail -n +1 -f --pid=$sending "$dir/$name.out" | while IFS= read -r line; do
		case $line in *'"event":"progress"'*) line=${line#*\"bytes\":} && echo "$EPOCHREALTIME ${line%%,*}" ;; esac
	done >"$dir/$name.times"
	wait $sending
	declare -g "${name}_mbps=$(awk -v began="$began" -v from="$from" '$1 - began >= from { if (!t) { t = $1; b = $2 }
		last = $1; bytes = $2 } END { if (last > t) printf "%.1f", 8e-6 * (bytes - b) / (last - t) }' "$dir/$name.times")"
	rm -rf "$dir"/root/* "$dir"/root/.[!.]*
}

relays() {
	go best 3 13 --via "$a" --via "$b"
	go chosen 20 30 --relays "$a,$b,$c,$d" --paths 2
	go limited 20 30 --relays "$a,$b,$c,$d" --paths 2 --rate 95Mbit/s
	echo "#> Mbit/s: the best two $best_mbps, chosen among four $chosen_mbps, with --rate 95Mbit/s $limited_mbps"
	ok "the paths chosen deliver at least 90 % of the best two" close_to "$chosen_mbps" "$best_mbps"
	ok "with a rate limit, too" close_to "$limited_mbps" "$best_mbps"
}

changing() {
	go left 3 13 --via "$a" --via "$c"
	(sleep 12 && "$lab" set b-in rate=5Mbit/s) &
	go changed 32 42 --relays "$a,$b,$c,$d" --paths 2
	"$lab" set b-in rate=60Mbit/s
	echo "#> Mbit/s: the best two once b is slow $left_mbps, chosen $changed_mbps"
	ok "20 s after a change: at least 90 % of the best two" close_to "$changed_mbps" "$left_mbps"
}

up relays
serve_relays s
thrice relays
thrice changing
