#!/bin/bash
# Transfers of one user on one path: they share the streams, probe once and keep one budget. Three at once on an idle link
# with random loss, whose first ends; and five, 15 s apart, beside five competing flows. Prints shares of the link.
. "$(dirname "$0")/lib.sh" || exit 1
: "${SECONDS_EACH:=60}"

# link LOSS: 48 Mbit/s, 58 ms, a queue of one bandwidth-delay product
link() {
	cat >"$dir/path.yaml" <<-EOF
		defaults:
		  host: { rmem: 4096 131072 67108864, wmem: 4096 65536 67108864 }
		hosts: { src: , dst: , xsrc: , xdst: }
		routers: [left, right]
		links:
		  bottleneck: { between: [left, right], rate: 48Mbit/s, delay: 20ms, queue: 232 packets, loss: $1 }
		  src:  { between: [src, left],   rate: 1Gbit/s, delay: 4ms }
		  xsrc: { between: [xsrc, left],  rate: 1Gbit/s, delay: 4ms }
		  dst:  { between: [right, dst],  rate: 1Gbit/s, delay: 5ms }
		  xdst: { between: [right, xdst], rate: 1Gbit/s, delay: 5ms }
	EOF
}

# start NAME SECONDS [ENV]...: a transfer in the background, ended after its time
start() {
	as src env "${@:3}" timeout --foreground -s INT -k 20 "$2" "$lab" exec src "$BUILD/ptcp" send --json --fingerprint "$fp" \
		--no-resume --no-history --congestion cubic "$dir/large" "ptcp://$("$lab" addr dst)/$1" >"$dir/$1.out" 2>"$dir/$1.err" &
}

# rates NAME...: Mbit/s of each in the second half of its time, a line each
rates() {
	local name
	for name in "$@"; do
		sed -n 's/.*"event":"progress".*"rate_bps":\([0-9.]*\).*/\1/p' "$dir/$name.out" |
			awk '{ r[NR] = $1 } END { for (i = int(NR / 2) + 1; i <= NR; i++) s += r[i]; printf "%.2f\n", s / (NR - int(NR / 2)) / 1e6 }'
	done >"$dir/rates"
	awk '{ n++; s += $1; q += $1 * $1 } END { printf "%.1f %.2f\n", s, s * s / n / q }' "$dir/rates"
}

# at_once NAME [ENV]...: three; sets $sum and $jain
at_once() {
	local name pids=()
	for name in a b c; do
		start "$1$name" "$SECONDS_EACH" "${@:2}" ${2:+XDG_RUNTIME_DIR="$dir/run-$name"}
		pids+=($!)
	done
	wait "${pids[@]}"
	read -r sum jain < <(rates "$1a" "$1b" "$1c")
	echo "#> three $1: $(paste -sd' ' "$dir/rates"), together $sum Mbit/s in the second half of $SECONDS_EACH s, Jain $jain"
}

idle() {
	at_once together
	ok "they know of each other" grep -q '"3 transfers together: ' "$dir/togethera.out"
	timed ok "and fill the link" within "$sum" 43 47
	timed ok "in equal parts" within "$jain" 0.9 1
}

# Beside five flows each of five single streams has a tenth of the link.
beside() {
	local i pids=() flows theirs span=$((5 * 10 + SECONDS_EACH / 2))
	"$lab" exec xsrc "$bin/flow" source -n 5 -c cubic -s 1 -w $((8 + 50)) -t $((SECONDS_EACH / 2)) \
		"$("$lab" addr xdst)" >"$dir/cross" &
	flows=$!
	sleep 8
	for ((i = 0; i < 5; i++)); do
		start "s$i" $((span - 10 * i)) "$@" ${1:+XDG_RUNTIME_DIR="$dir/run-$i"}
		pids+=($!)
		sleep 10
	done
	wait $flows "${pids[@]}"
	theirs=$(sed -n 's/^total .* mbps=\([0-9.]*\) .*/\1/p' "$dir/cross")
	echo "#> five, 10 s apart: the five flows have $theirs Mbit/s beside $(rates s0 s1 s2 s3 s4)"
	timed ok "a group takes no more than its budget" within "$theirs" 19 47
}

link 0.1%
up "$dir/path.yaml"
mkdir "$dir/root"
mkdir -m 700 "$dir"/run-{a,b,c,0,1,2,3,4}
head -c 600000000 /dev/urandom >"$dir/large"
authorize dst src
"$lab" exec xdst "$bin/flow" sink >/dev/null &
serve dst --root "$dir/root"
if [ -n "${APART-}" ]; then
	at_once apart APART=1
	"$lab" set bottleneck loss=0
	beside APART=1
	exit
fi
thrice idle
"$lab" set bottleneck loss=0
thrice beside
