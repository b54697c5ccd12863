#!/bin/bash
# ptcp send --streams auto beside cross traffic in a laboratory, and fixed numbers of streams for comparison: what
# each brings, and what five others then get, as their own kernel says. SECONDS_EACH=60 for less scatter.
. "$(dirname "$0")/lib.sh"
: "${SECONDS_EACH:=30}"
congestion=cubic

# run NAME COMMAND OPTION...: a transfer beside five flows, ended after its time. NAME.out; of the five together, the
# last two thirds of that time.
run() {
	local flows theirs name=$1 command=$2
	shift 2
	"$lab" exec xsrc "$bin/flow" source -n 5 -c cubic -s 1 -w $((8 + SECONDS_EACH / 3)) -t $((SECONDS_EACH * 2 / 3)) \
		"$("$lab" addr xdst)" >"$dir/$name.cross" &
	flows=$!
	sleep 9
	if [ "$command" = send ]; then set -- "$@" "$dir/large" "ptcp://$("$lab" addr dst)/$name"; else
		set -- "$@" "ptcp://$("$lab" addr dst)/large" "$dir/$name.got"; fi
	as src timeout --foreground -s INT -k 20 "$SECONDS_EACH" "$lab" exec src "$BUILD/ptcp" "$command" --json --fingerprint "$fp" \
		--no-resume --congestion "$congestion" "$@" >"$dir/$name.out" 2>"$dir/$name.err"
	wait $flows
	theirs=$(sed -n 's/^total .* mbps=\([0-9.]*\) .*/\1/p' "$dir/$name.cross")
	rm -rf "$dir/$name.got" "$dir/root/$name"* "$dir"/.ptcp-* "$dir"/root/.ptcp-*
	echo "#> $name: ours $(awk -v b="$(get "$name" wire_bytes)" -v s="$(get "$name" seconds)" \
		'BEGIN { printf "%.1f", b * 8 / s / 1e6 }') Mbit/s, the five $theirs Mbit/s"
	grep '"event":"streams"' "$dir/$name.out" | grep -v connected | sed 's/^/# /'
}

up dumbbell-3
mkdir "$dir/root"
head -c 1000000000 /dev/urandom >"$dir/large" && ln "$dir/large" "$dir/root/large"
authorize dst src
"$lab" exec xdst "$bin/flow" sink >/dev/null &
serve dst --root "$dir/root"

echo "#> $SECONDS_EACH s each beside 5 cubic flows, 100 Mbit/s, 118 ms"
for n in 1 4 8; do
	run "fixed-$n" send --streams $n
done
run auto send --streams auto
ok "auto ends as an interrupted transfer" [ "$(get auto exit)" = 8 ]
ok "it probed, and said so" grep -q 'probing with 15 streams' "$dir/auto.out"
ok "it came to an answer" [ "$(get auto advised_streams)" != null ]
ok "and says what it predicted" [ "$(get auto predicted_bps)" != null ]
ok "which keeps the budget, as it knows the path" awk -v i="$(get auto predicted_impact_percent)" 'BEGIN { exit !(i <= 10) }'
ok "it was remembered" [ "$(grep -c '^send ' "$dir/src/state/ptcp/paths")" -eq 1 ]
run again send --streams auto
ok "and used at once the next time" grep -q 'from history' "$dir/again.out"
# The server runs without privileges: it may use only what the kernel permits to everybody.
grep -qw cubic /proc/sys/net/ipv4/tcp_allowed_congestion_control || congestion=auto
run recv recv --streams auto
ok "the other way, too, it came to an answer" [ "$(get recv advised_streams)" != null ]
