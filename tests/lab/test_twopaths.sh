#!/bin/bash
# Two paths in a laboratory, of which one is congested by others: what one TCP stream gets, what each path gives alone
# and both together; then the relay's path is cut and restored. SECONDS_EACH=30 for less scatter.
. "$(dirname "$0")/lib.sh"
: "${SECONDS_EACH:=12}"
atleast() { awk -v x="$1" -v a="$2" 'BEGIN { exit !(x > 0 && x >= a) }'; }

# go NAME MBITS OPTION...: sends what takes SECONDS_EACH at that rate; its goodput in Mbit/s becomes NAME_mbps
go() {
	local name=$1 mbits=$2
	shift 2
	head -c $((mbits * SECONDS_EACH * 125000)) "$dir/large" >"$dir/part"
	on a timeout 120 "$BUILD/ptcp" send --json --no-history --fingerprint "$fp_b" --fingerprint "$fp_k" "$@" "$dir/part" \
		"ptcp://$("$lab" addr b)/$name" >"$dir/$name.out" 2>"$dir/$name.err" || echo "$name: $(cat "$dir/$name.err")" >>"$dir/wrong"
	cmp -s "$dir/part" "$dir/root/$name" || echo "$name: what arrived is not what was sent" >>"$dir/wrong"
	declare -g "${name}_mbps=$(awk -v b="$(get "$name" throughput_bps)" 'BEGIN { printf "%.1f", b / 1e6 }')"
	rm -f "$dir/root/$name"
}

# What each path brings, alone and with the other
both() {
	local sum
	go one 3 --streams 1
	go direct 8 --streams 4
	go relay 36 --streams 4 --via "$k"
	go both 42 --streams 8 --via direct --via "$k"
	go eight 12 --streams 8
	sum=$(awk -v a="$direct_mbps" -v b="$relay_mbps" 'BEGIN { printf "%.1f", a + b }')
	echo "#> Mbit/s: one stream $one_mbps, 4 direct $direct_mbps, 4 over the relay $relay_mbps, both $both_mbps, 8 direct $eight_mbps"
	ok "both bring at least twice what one stream does" atleast "$both_mbps" "$(awk -v x="$one_mbps" 'BEGIN { print 2 * x }')"
	ok "both bring at least 95 % of the sum, $sum" atleast "$both_mbps" "$(awk -v x="$sum" 'BEGIN { print 0.95 * x }')"
	ok "both bring more than 8 streams on the congested one" atleast "$both_mbps" "$eight_mbps"
}

# A path is cut for 5 s and restored
interrupted() {
	local sending was back before after i
	rm -f "$dir/cut.out"
	# Bytes that have arrived, by the time when that was told.
	go cut 40 --streams 8 --via direct --via "$k" &
	sending=$!
	for ((i = 0; i < 200; i++)); do
		grep -q progress "$dir/cut.out" 2>/dev/null && break
		sleep 0.1
	done
	tail -n +1 -f --pid=$sending "$dir/cut.out" | while IFS= read -r line; do
		case $line in *'"event":"progress"'*) line=${line#*\"bytes\":} && echo "$EPOCHREALTIME ${line%%,*}" ;; esac
	done >"$dir/times" &
	sleep 4
	was=$EPOCHREALTIME
	"$lab" cut k-in
	sleep 5
	"$lab" restore k-in
	back=$EPOCHREALTIME
	wait $sending
	# The rate in the 3 s before the cut, and the best second of those that end within 5 s of the restoration.
	read -r before after <<<"$(awk -v was="$was" -v back="$back" '{ t[NR] = $1; b[NR] = $2 } END {
		for (i = 1; i <= NR; i++) { if (t[i] < was - 3) from = i; if (t[i] <= was) to = i }
		if (!from) from = 1
		before = (b[to] - b[from]) / (t[to] - t[from])
		for (i = 1; i <= NR; i++) for (k = i; k <= NR; k++)
			if (t[i] >= back && t[k] <= back + 5 && t[k] - t[i] >= 1) {
				r = (b[k] - b[i]) / (t[k] - t[i]); if (r > best) best = r; break }
		printf "%.1f %.1f\n", before * 8e-6, best * 8e-6 }' "$dir/times")"
	echo "#> Mbit/s: before the cut $before, in the best second within 5 s of its end $after"
	ok "a path cut for 5 s: nothing is lost" [ "$(get cut ok)" = true ]
	ok "and the goodput is back within 5 s" atleast "$after" "$(awk -v x="$before" 'BEGIN { print 0.9 * x }')"
}

up twopaths
mkdir "$dir/root"
head -c 200000000 /dev/urandom >"$dir/large"
authorize b a
authorize k a
serve b --root "$dir/root"
fp_b=$fp
serve k --relay-to "$("$lab" addr b)"
fp_k=$fp
k=$("$lab" addr k)

"$lab" exec y "$bin/flow" sink >/dev/null &
"$lab" exec x "$bin/flow" source -n 5 -c cubic -t 1000 "$("$lab" addr y)" >/dev/null &
sleep 3
thrice both
thrice interrupted
ok "all arrives as it was sent" [ ! -e "$dir/wrong" ]
