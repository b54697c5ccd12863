#!/bin/bash
# Two paths in a laboratory, of which one is congested by others: what one TCP stream gets, what each path gives alone
# and both together; then the relay's path is cut and restored. SECONDS_EACH=30 for less scatter.
set -u
here=$(dirname "$0")
: "${BUILD:=build}" "${SECONDS_EACH:=12}"
bin=$BUILD/tests/lab lab=$BUILD/tests/lab/lab
dir=$(mktemp -d) || exit 1
export PTCP_LAB_DIR=$dir/labs
unset PTCP_LAB
trap '"$lab" down -a >/dev/null; rm -rf "$dir"' EXIT

ok() { # what happened: the rest is a command that has to succeed
	local name=$1
	shift
	if "$@"; then echo "ok $name"; else echo "not ok $name ($*)" && tail -n 3 "$dir"/*.err | sed 's/^/# /' | cut -c1-300; fi
}
get() { "$BUILD/tests/e2e/jsonget" "$dir/$1.out" last "$2"; }
as() { env HOME="$dir/$1" XDG_CONFIG_HOME="$dir/$1" XDG_STATE_HOME="$dir/$1/state" "${@:2}"; }
on() { as "$1" "$lab" exec "$1" "${@:2}"; }
atleast() { awk -v x="$1" -v a="$2" 'BEGIN { exit !(x > 0 && x >= a) }'; }

# go NAME MBITS OPTION...: sends what takes SECONDS_EACH at that rate; its goodput in Mbit/s becomes NAME_mbps
go() {
	local name=$1 mbits=$2
	shift 2
	head -c $((mbits * SECONDS_EACH * 125000)) "$dir/large" >"$dir/part"
	on a timeout 120 "$BUILD/ptcp" send --json --no-history --fingerprint "$fp_b" --fingerprint "$fp_k" "$@" "$dir/part" \
		"ptcp://$("$lab" addr b)/$name" >"$dir/$name.out" 2>"$dir/$name.err" || echo "not ok $name: $(cat "$dir/$name.err")"
	cmp -s "$dir/part" "$dir/root/$name" || echo "not ok $name: what arrived is not what was sent"
	declare -g "${name}_mbps=$(awk -v b="$(get "$name" throughput_bps)" 'BEGIN { printf "%.1f", b / 1e6 }')"
	rm -f "$dir/root/$name"
}

"$lab" up -w $$ "$here/topologies/twopaths.yaml" >"$dir/up" 2>&1
case $? in
0) ;;
77) echo "ok labs # SKIP $(cat "$dir/up")" && exit 0 ;;
*) echo "not ok labs: $(cat "$dir/up")" && exit 1 ;;
esac
mkdir "$dir/root"
head -c 200000000 /dev/urandom >"$dir/large"
client=$(as a "$BUILD/ptcp" key show)
for host in b k; do
	as $host "$BUILD/ptcp" key authorize "$client"
	: >"$dir/$host.serve"
done
on b "$BUILD/ptcp" serve --root "$dir/root" >"$dir/b.serve" 2>"$dir/b.err" &
on k "$BUILD/ptcp" serve --relay-to "$("$lab" addr b)" >"$dir/k.serve" 2>"$dir/k.err" &
for ((i = 0; i < 100; i++)); do
	[ -s "$dir/b.serve" ] && [ -s "$dir/k.serve" ] && break
	sleep 0.05
done
read -r _ _ fp_b <"$dir/b.serve"
read -r _ _ fp_k <"$dir/k.serve"
k=$("$lab" addr k)

"$lab" exec y "$bin/flow" sink >/dev/null &
"$lab" exec x "$bin/flow" source -n 5 -c cubic -t 1000 "$("$lab" addr y)" >/dev/null &
sleep 3
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
