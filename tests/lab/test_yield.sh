#!/bin/bash
# ptcp send --impact 0 in a laboratory: on an idle link it has 90 % of it; other flows lose at most 3 points. On three
# paths that the control law was not tuned on. SECONDS_EACH=60 for less scatter.
. "$(dirname "$0")/lib.sh" || exit 1
: "${SECONDS_EACH:=40}"

# path RATE_MBPS DELAY_MS QUEUE CROSS_DELAY_MS
path() {
	cat <<-EOF
		defaults:
		  host: { rmem: 4096 131072 67108864, wmem: 4096 65536 67108864 }
		hosts: { src: , dst: , xsrc: , xdst: }
		routers: [left, right]
		links:
		  bottleneck: { between: [left, right], rate: $1Mbit/s, delay: $2ms, queue: $3 packets }
		  src:  { between: [src, left],   rate: 1Gbit/s, delay: 1ms }
		  xsrc: { between: [xsrc, left],  rate: 1Gbit/s, delay: $4ms }
		  dst:  { between: [right, dst],  rate: 1Gbit/s, delay: 1ms }
		  xdst: { between: [right, xdst], rate: 1Gbit/s, delay: 1ms }
	EOF
}

# send NAME SECONDS: NAME.out, and NAME.bps of its last half, as the receiver has it
send() {
	as src timeout --foreground -s INT -k 20 "$2" "$lab" exec src "$BUILD/ptcp" send --json --fingerprint "$fp" --no-resume \
		--impact 0 --log-level "${LOG_LEVEL:-warn}" "$dir/large" "ptcp://$("$lab" addr dst)/$1" >"$dir/$1.out" 2>"$dir/$1.err"
	rm -rf "$dir/root/$1"* "$dir"/root/.ptcp-*
	grep '"event":"progress"' "$dir/$1.out" | sed -n 's/.*"wire_bytes":\([0-9]*\).*/\1/p' |
		awk '{ b[NR] = $1 } END { h = int(NR / 2); printf "%.1f\n", (b[NR] - b[h]) * 8 / ((NR - h) * 0.2) / 1e6 }' >"$dir/$1.mbps"
}

# others NAME N: what N cubic flows have in the last 2 / 3 of the time
others() {
	"$lab" exec xsrc "$bin/flow" source -n "$2" -c cubic -s 1 -w $((12 + SECONDS_EACH / 3)) -t $((SECONDS_EACH * 2 / 3)) \
		"$("$lab" addr xdst)" >"$dir/$1.cross"
	sed -n 's/^total .* mbps=\([0-9.]*\) .*/\1/p' "$dir/$1.cross" >"$dir/$1.theirs"
}

# measure PATH RATE OTHERS
measure() {
	local at=$1 rate=$2 n=$3 alone without with
	send alone $((SECONDS_EACH / 2 + 5))
	alone=$(cat "$dir/alone.mbps")
	others without "$n"
	without=$(cat "$dir/without.theirs")
	(sleep 8 && send beside $((4 + SECONDS_EACH))) &
	others with "$n"
	wait $!
	with=$(cat "$dir/with.theirs")
	echo "#> $at: alone $alone of $rate Mbit/s; $n others have $without without us and $with with us, ours $(cat "$dir/beside.mbps")"
	ok "$at: fills an idle link to 90 %" awk -v a="$alone" -v r="$rate" 'BEGIN { exit !(a >= 0.9 * 0.965 * r) }'
	ok "$at: others lose at most 3 %" awk -v a="$with" -v b="$without" 'BEGIN { exit !(a >= 0.97 * b) }'
}

# in_lab NAME RATE DELAY QUEUE CROSS_DELAY OTHERS; 96.5 % of the rate are payload
in_lab() {
	export PTCP_LAB=$1
	path "$2" "$3" "$4" "$5" >"$dir/$1.yaml"
	up "$dir/$1.yaml" -n "$1"
	"$lab" exec xdst "$bin/flow" sink >/dev/null &
	serve dst --root "$dir/root"
	thrice measure "$1" "$2" "$6"
	"$lab" down -n "$1" >/dev/null
}

mkdir "$dir/root"
head -c 600000000 /dev/urandom >"$dir/large"
authorize dst src
PATHS=${PATHS-office dsl far}
for p in $PATHS; do
	case $p in
	tuned) in_lab tuned 50 25 300 1 3 ;;
	office) in_lab office 80 8 120 6 5 ;;
	dsl) in_lab dsl 20 15 150 1 2 ;;
	far) in_lab far 60 60 400 20 8 ;;
	esac
done
