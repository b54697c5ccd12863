#!/bin/bash
# ptcp advise behind a policer of 20 Mbit/s that nobody shares: it is named, nobody is seen, and the command that advise
# prints carries nearly the rate, and loses little.
. "$(dirname "$0")/lib.sh" || exit 1

cat >"$dir/policer.yaml" <<-EOF
	defaults:
	  host: { rmem: 4096 131072 67108864, wmem: 4096 65536 67108864 }
	hosts: { src: , dst: }
	routers: [left, right]
	links:
	  bottleneck:
	    between: [left, right]
	    rate: 100Mbit/s
	    delay: 20ms
	    queue: 400 packets
	    fwd: { police: 20Mbit/s 250kB }
	  src: { between: [src, left], rate: 1Gbit/s, delay: 1ms }
	  dst: { between: [right, dst], rate: 1Gbit/s, delay: 1ms }
EOF
export PTCP_LAB=policer
up "$dir/policer.yaml" -n policer
authorize dst src
mkdir "$dir/root"
serve dst --root "$dir/root"

drops() { "$lab" stats | sed -n 's/^link=bottleneck\/fwd .* drop_police=\([0-9]*\) .*/\1/p'; }

named() {
	local before rate
	on src "$BUILD/ptcp" advise --json -vv --no-history --fingerprint "$fp" "$("$lab" addr dst)" >"$dir/policer.out" 2>"$dir/policer.err"
	echo "#> $(get policer path_advice)"
	ok "the policer is named" [ "$(get policer path_limit)" = policer ]
	ok "nobody else is seen" [ "$(get policer others)" = "none seen" ]
	ok "nobody loses" within "$(get policer impact_total_percent)" 0 0
	ok "its rate is known" within "$(get policer path_rate_bps)" 17e6 20e6
	ok "the answer carries most of it" within "$(get policer throughput_bps)" 17e6 20e6
	ok "the command has the rate" grep -q -- '--rate [0-9.]*Mbit/s' "$dir/policer.out"
	before=$(drops)
	rate=$(get policer choices.0.command)
	# shellcheck disable=SC2086 # the options of the command
	on src "$BUILD/ptcp" send --json --no-history --no-resume --fingerprint "$fp" ${rate#ptcp send} "$dir/large" \
		"ptcp://$("$lab" addr dst)/large" >"$dir/sent.out" 2>"$dir/sent.err"
	echo "#> $rate: $(get sent throughput_bps) bit/s, $(($(drops) - before)) packets dropped of 22,000"
	ok "as printed, it carries that" within "$(get sent throughput_bps)" 16e6 20e6
	ok "and loses little" [ $(($(drops) - before)) -lt 500 ]
}

head -c 30000000 /dev/urandom >"$dir/large"
thrice named
