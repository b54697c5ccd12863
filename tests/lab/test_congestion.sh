#!/bin/bash
# --congestion auto in a laboratory of hosts whose default is BBR: CUBIC to begin with; BBR where random loss and nobody
# else is found, at a sending client and at a sending server; CUBIC stays beside other flows, loss or not.
. "$(dirname "$0")/lib.sh" || exit 1
: "${SECONDS_EACH:=30}"

# paths LOSS QUEUE
path() {
	cat >"$dir/path.yaml" <<-EOF
		defaults:
		  host: { cc: bbr, rmem: 4096 131072 67108864, wmem: 4096 65536 67108864 }
		hosts: { src: , dst: , xsrc: , xdst: }
		routers: [left, right]
		links:
		  bottleneck: { between: [left, right], rate: 100Mbit/s, delay: 40ms, queue: $2 packets, loss: $1 }
		  src:  { between: [src, left],   rate: 1Gbit/s, delay: 5ms }
		  xsrc: { between: [xsrc, left],  rate: 1Gbit/s, delay: 5ms }
		  dst:  { between: [right, dst],  rate: 1Gbit/s, delay: 5ms }
		  xdst: { between: [right, xdst], rate: 1Gbit/s, delay: 5ms }
	EOF
}

# The congestion control of the sockets with data in flight on HOST, as the kernel names it
in_use() { "$lab" exec "$1" ss -tinH state established | grep -o '^[[:space:]]*[a-z]*' | sort | uniq -c | sort -rn | awk '{ print $2 "*" $1 }' | paste -sd' '; }

# Sockets with bbr, of NAME; the control connection has the default of its host, bbr
bbr() { sed -n 's/.*bbr\*\([0-9]*\).*/\1/p' "$dir/$1.ss" | grep . || echo 0; }

# run NAME COMMAND OPTION...: a transfer ended after its time; NAME.out, and NAME.ss just before the end
run() {
	local name=$1 command=$2 sender=src
	shift 2
	if [ "$command" = send ]; then set -- "$@" "$dir/large" "ptcp://$("$lab" addr dst)/$name"; else
		set -- "$@" "ptcp://$("$lab" addr dst)/large" "$dir/$name.got"
		sender=dst
	fi
	(sleep $((SECONDS_EACH - 2)) && in_use $sender >"$dir/$name.ss") &
	as src timeout --foreground -s INT -k 20 "$SECONDS_EACH" "$lab" exec src "$BUILD/ptcp" "$command" --json --fingerprint "$fp" \
		--no-resume --no-history "$@" >"$dir/$name.out" 2>"$dir/$name.err"
	wait $!
	rm -rf "$dir/$name.got" "$dir/root/$name"* "$dir"/.ptcp-* "$dir"/root/.ptcp-*
	echo "#> $name: $(awk -v b="$(get "$name" wire_bytes)" -v s="$(get "$name" seconds)" \
		'BEGIN { printf "%.1f", b * 8 / s / 1e6 }') Mbit/s; kernel: $(cat "$dir/$name.ss")"
	grep '"event":"congestion"' "$dir/$name.out" | sed 's/^/# /'
}

path 0.4% 800
up "$dir/path.yaml"
mkdir "$dir/root"
head -c 400000000 /dev/urandom >"$dir/large" && ln "$dir/large" "$dir/root/large"
authorize dst src
"$lab" exec xdst "$bin/flow" sink >/dev/null &
serve dst --root "$dir/root"

alone() {
	run send send
	ok "begins with cubic" [ "$(sed -n 's/.*"event":"congestion","name":"\([a-z]*\)".*/\1/p' "$dir/send.out" | head -n 1)" = cubic ]
	ok "random loss and nobody else: bbr" [ "$(get send congestion)" = bbr ]
	ok "the kernel agrees" within "$(bbr send)" 2 99
	run recv recv
	ok "and at a server that sends" [ "$(get recv congestion)" = bbr ]
	ok "the server's kernel agrees" within "$(bbr recv)" 2 99
}

beside() {
	"$lab" exec xsrc "$bin/flow" source -n 5 -c cubic -s 1 -w 1 -t $((SECONDS_EACH + 8)) "$("$lab" addr xdst)" >"$dir/flows.out" &
	sleep 5
	run "$1" send
	wait $!
	ok "$1: cubic beside others" [ "$(get "$1" congestion)" = cubic ]
	ok "$1: the kernel agrees" within "$(bbr "$1")" 0 1
}

thrice alone
"$lab" set bottleneck loss=0 >/dev/null
thrice beside deep
"$lab" set bottleneck queue="20 packets" >/dev/null
thrice beside short
run fixed send --streams 2
ok "fixed streams: cubic as well" [ "$(get fixed congestion)" = cubic ]
run system send --streams 2 --congestion system
ok "unless the system's setting is requested" [ "$(get system congestion)" = bbr ]
