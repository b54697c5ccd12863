#!/bin/bash
# Three sources that know nothing of each other share four relays of 20, 30, 8 and 4 Mbit/s, each with a demand, two paths
# and a controller of its own (Wang, Wei, Kurose, Towsley and others): the goodput of all between 20 and 40 s against the
# most that can arrive, for several ratios f of the relays' bandwidth to the demand. Headers take 3.5 % of a link.
. "$(dirname "$0")/lib.sh"
CAPACITY=62

# goodput SOURCE FROM UNTIL: Mbit/s that arrived between, by the progress of a source
goodput() {
	awk -v from="$2" -v until="$3" '$1 >= from && $1 <= until { if (!t) { t = $1; b = $2 } last = $1; bytes = $2 }
		END { printf "%.1f\n", (last > t) ? 8e-6 * (bytes - b) / (last - t) : 0 }' "$dir/$1.times"
}

# send SOURCE MBPS OPTION...: for 40 s, with this demand
send() {
	local name=$1 pid began=$EPOCHREALTIME line
	on "$name" timeout 40 "$BUILD/ptcp" send --json --no-history "${trusted[@]}" --rate "$2Mbit/s" --paths 2 \
		"${@:3}" "$dir/large" "ptcp://$("$lab" addr r)/$name" 2>"$dir/$name.err" >"$dir/$name.out" &
	pid=$!
	sleep 0.3
	tail -n +1 -f --pid=$pid "$dir/$name.out" | while IFS= read -r line; do
		case $line in *'"event":"progress"'*)
			line=${line#*\"bytes\":}
			echo "$(awk -v a="$EPOCHREALTIME" -v b="$began" 'BEGIN { print a - b }') ${line%%,*}" ;;
		esac
	done >"$dir/$name.times"
	wait $pid
}

# share F: all three with their demands; $share, of the most that can arrive, in per cent
share() {
	local demand s each=() sum
	demand=$(awk -v c=$CAPACITY -v f="$1" 'BEGIN { printf "%.1f", c / f / 3 }')
	for s in s1 s2 s3; do send $s "$demand" --relays "$a,$b,$c,$d" & each+=($!); done
	wait "${each[@]}"
	sum=$(for s in s1 s2 s3; do goodput $s 20 40; done | awk '{ n += $1 } END { printf "%.1f", n }')
	share=$(awk -v x="$sum" -v c=$CAPACITY -v f="$1" 'BEGIN { most = f > 1 ? c / f : c; printf "%.0f", 100 * x / most }')
	echo "#> f $1, three demands of $demand Mbit/s: $sum Mbit/s, $share % of the most ($(for s in s1 s2 s3; do goodput $s 20 40; done | xargs))"
	rm -rf "$dir"/root/* "$dir"/root/.[!.]*
}

sharing() {
	share "$1"
	ok "f $1: at least $2 % of the most that can arrive" within "$share" "$2" 101
}

up sources
serve_relays s1 s2 s3
for f in ${F:-0.6 1 1.6 2}; do thrice sharing "$f" 80; done
