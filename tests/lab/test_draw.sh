#!/bin/bash
# A random path in the laboratory: its round-trip times, rate, RED and loss are the drawn ones, as TCP observes them; flows
# that come and go do so, and flows by a schedule have its numbers of streams.
. "$(dirname "$0")/lib.sh"

flow() { "$lab" exec "$1" "$bin/flow" source -c reno "${@:3}" "$("$lab" addr "$2")" >"$dir/flow.out" 2>"$dir/flow.err"; }
total() { sed -n "s/^total.* $1=\([0-9.]*\).*/\1/p" "$dir/flow.out"; }
dropped() { "$lab" stats bottleneck/fwd | sed -n "s/^link.* $1=\([0-9]*\).*/\1/p"; }
# numbers FILE: the numbers of open streams in a trace, in their order
numbers() { awk -F, 'NR > 1 && $1 != at { at = $1; if (n != "" && n != last) print n; last = n; n = 0 } NR > 1 { n++ } END { if (n != last) print n }' "$1"; }
# falls FILE: streams whose counters fell, which reopened streams must not do
falls() { awk -F, 'NR > 1 { if ($4 < acked[$3] || $7 < segments[$3]) n++; acked[$3] = $4; segments[$3] = $7 } END { print n + 0 }' "$1"; }

"$bin/draw" -r 20Mbit/s 3 >"$dir/path.yaml"
ok "the path of this test has RED and random loss" [ "$(grep -c 'red:\|loss:' "$dir/path.yaml")" = 2 ]
up "$dir/path.yaml"
for host in dst y1; do "$lab" exec $host "$bin/flow" sink >"$dir/$host.out" & done
# Drawn with seed 3: 61.3 ms between src and dst, 30 ms between x1 and y1, 13 Mbit/s.
round_trips() {
	local pair
	for pair in "src dst 61.3" "x1 y1 30"; do
		set -- $pair
		flow "$1" "$2" -t 0.3
		ok "the RTT between $1 and $2 is the drawn one" within "$(sed -n 's/^stream=0 .*min_rtt_ms=\([0-9.]*\) .*/\1/p' "$dir/flow.out")" \
			"$3" "$(awk -v x="$3" 'BEGIN { print x + 2 }')"
	done
}
thrice timed round_trips

"$lab" set bottleneck loss=0 red=off >"$dir/set"
full() {
	flow src dst -w 1 -t 2
	ok "one stream fills a queue of one bandwidth-delay product" within "$(total mbps)" 11.7 13
}
thrice timed full

flow src dst -l 2:0.4,5:0.4,1:0.4 -i 0.1 -T "$dir/levels.csv"
ok "a schedule has its numbers of streams" [ "$(numbers "$dir/levels.csv" | xargs)" = "2 5 1" ]
ok "and 5 streams in all" [ "$(total streams)" = 5 ]
flow x1 y1 -n 8 -t 2 -o 0.3,0.3 -i 0.1 -T "$dir/changing.csv"
ok "streams come and go" [ "$(numbers "$dir/changing.csv" | wc -l)" -ge 5 ]
ok "streams never exceed their number" [ "$(numbers "$dir/changing.csv" | sort -n | tail -n 1)" -le 8 ]
ok "counters continue in the next connection of a stream" [ "$(falls "$dir/changing.csv")" = 0 ]
ok "closed streams come again" [ "$(awk -F, 'NR > 1 && at[$3] > 0 && $1 > at[$3] + 0.15 { print $3 } { at[$3] = $1 }' "$dir/changing.csv" | wc -l)" -ge 3 ]

"$lab" set bottleneck queue="1000 packets" red="5 15 0.1 0.02" >"$dir/set"
before=$(dropped drop_queue)
flow src dst -n 8 -t 1
ok "RED drops before the queue is full" [ "$(dropped drop_red)" -gt 0 -a "$(dropped drop_queue)" = "$before" ]
"$lab" set bottleneck loss=2% red=off >"$dir/set"
before=$(dropped drop_loss) packets=$(dropped in_packets)
flow src dst -n 8 -t 1
lost=$(($(dropped drop_loss) - before)) packets=$(($(dropped in_packets) - packets))
# 5 standard deviations of independent losses.
ok "random loss is the drawn one ($lost of $packets)" awk -v k=$lost -v n=$packets 'BEGIN { d = k - 0.02 * n; exit !(n > 500 && d * d < 25 * 0.0196 * n) }'
