#!/bin/bash
# ptcp send --streams auto beside cross traffic in a laboratory, and fixed numbers of streams for comparison: what
# each brings, and what five others then get, as their own kernel says. SECONDS_EACH=60 for less scatter.
set -u
here=$(dirname "$0")
: "${BUILD:=build}" "${SECONDS_EACH:=30}"
bin=$BUILD/tests/lab lab=$BUILD/tests/lab/lab
dir=$(mktemp -d) || exit 1
export PTCP_LAB_DIR=$dir/labs
unset PTCP_LAB
trap '"$lab" down -a >/dev/null; rm -rf "$dir"' EXIT

ok() { # what happened: the rest is a command that has to succeed
	local name=$1
	shift
	if "$@"; then echo "ok $name"; else echo "not ok $name ($*)" && tail -n 2 "$dir"/*.err | sed 's/^/# /' | cut -c1-300; fi
}
get() { "$BUILD/tests/e2e/jsonget" "$dir/$1.out" last "$2"; }
as() { env HOME="$dir/$1" XDG_CONFIG_HOME="$dir/$1" XDG_STATE_HOME="$dir/$1/state" "${@:2}"; }
in_lab() { "$lab" exec "$1" "${@:2}"; }

# run NAME COMMAND OPTION...: a transfer beside five flows, ended after its time. NAME.out; of the five together, the
# last two thirds of that time.
run() {
	local flows theirs name=$1 command=$2
	shift 2
	in_lab xsrc "$bin/flow" source -n 5 -c cubic -s 1 -w $((8 + SECONDS_EACH / 3)) -t $((SECONDS_EACH * 2 / 3)) \
		"$("$lab" addr xdst)" >"$dir/$name.cross" &
	flows=$!
	sleep 9
	if [ "$command" = send ]; then set -- "$@" "$dir/large" "ptcp://$("$lab" addr dst)/$name"; else
		set -- "$@" "ptcp://$("$lab" addr dst)/large" "$dir/$name.got"; fi
	as client timeout --foreground -s INT -k 20 "$SECONDS_EACH" "$lab" exec src "$BUILD/ptcp" "$command" --json --fingerprint "$fp" \
		--no-resume --congestion cubic "$@" >"$dir/$name.out" 2>"$dir/$name.err"
	wait $flows
	theirs=$(sed -n 's/^total .* mbps=\([0-9.]*\) .*/\1/p' "$dir/$name.cross")
	rm -rf "$dir/$name.got" "$dir/root/$name"* "$dir"/.ptcp-* "$dir"/root/.ptcp-*
	echo "#> $name: ours $(awk -v b="$(get "$name" wire_bytes)" -v s="$(get "$name" seconds)" \
		'BEGIN { printf "%.1f", b * 8 / s / 1e6 }') Mbit/s, the five $theirs Mbit/s"
	grep '"event":"streams"' "$dir/$name.out" | grep -v connected | sed 's/^/# /'
}

"$lab" up -w $$ "$here/topologies/dumbbell-3.yaml" >"$dir/up" 2>&1
if [ $? -eq 77 ]; then
	echo "ok labs # SKIP $(cat "$dir/up")"
	exit 0
fi
mkdir "$dir/root"
head -c 1000000000 /dev/urandom >"$dir/large" && ln "$dir/large" "$dir/root/large"
as server "$BUILD/ptcp" key authorize "$(as client "$BUILD/ptcp" key show)"
in_lab xdst "$bin/flow" sink >/dev/null &
: >"$dir/serve"
as server "$lab" exec dst "$BUILD/ptcp" serve --root "$dir/root" >"$dir/serve" 2>"$dir/serve.err" &
for ((i = 0; i < 100; i++)); do
	read -r _ _ fp <"$dir/serve" 2>/dev/null && break
	sleep 0.05
done

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
ok "it was remembered" [ "$(grep -c '^send ' "$dir/client/state/ptcp/paths")" -eq 1 ]
run again send --streams auto
ok "and used at once the next time" grep -q 'from history' "$dir/again.out"
run recv recv --streams auto
ok "the other way, too, it came to an answer" [ "$(get recv advised_streams)" != null ]
