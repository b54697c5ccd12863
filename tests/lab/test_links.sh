#!/bin/bash
# ptcp links in a laboratory: the rates and delays that it finds beside those that the links have, and the file
# that it writes. With LONG=1 more messages, and with one stream, too.
. "$(dirname "$0")/lib.sh"
: "${LONG:=}"

up links
for host in b c; do
	authorize $host a
	serve $host
	pins+=(--fingerprint "$fp")
done
cat >"$dir/o.yaml" <<-YAML
	destination: b   # and what is told of it
	hosts:
	  a: {address: $("$lab" addr a)}
	  b: {address: $("$lab" addr b)}
	  c: {address: $("$lab" addr c), relay: true}
	links:
	  - {from: a, to: b, rate: 1Gbit/s, delay: 1s} # not so
	  - {from: a, to: c}
	  - {from: c, to: b, rate: 3Mbit/s}
YAML

# measure NAME OPTION...: on a, into NAME.out and NAME.yaml
measure() {
	on a "$BUILD/ptcp" links --json --local-only --no-shared "${pins[@]}" --write "$dir/$1.yaml" "${@:2}" "$dir/o.yaml" >"$dir/$1.out" \
		2>"$dir/$1.err"
	ok "$1: links are measured" [ $? -eq 0 ]
	# Of 1500 bytes of a packet 1424 are data: 9.5 and 47.5 Mbit/s.
	ok "$1: 10 Mbit/s to 10 % ($(get "$1" links.0.rate_bps))" within "$(get "$1" links.0.rate_bps)" 8.55e6 10.45e6
	ok "$1: 5 ms to 2 ms ($(get "$1" links.0.delay_s))" within "$(get "$1" links.0.delay_s)" 0.003 0.007
	ok "$1: 50 Mbit/s to 10 % ($(get "$1" links.1.rate_bps))" within "$(get "$1" links.1.rate_bps)" 42.7e6 52.2e6
	ok "$1: 40 ms to 2 ms ($(get "$1" links.1.delay_s))" within "$(get "$1" links.1.delay_s)" 0.038 0.042
	ok "$1: what begins elsewhere is not measured" [ "$(get "$1" links.2.measured)" = false ]
}

thrice measure four
ok "the file has what was measured, and the rest as it was" diff \
	<(sed 's/rate: [0-9.]*[MG]bit.s, delay: [0-9.]*m*s/X/; s/to: c}/to: c, X}/' "$dir/o.yaml") \
	<(sed 's/rate: [0-9.]*[MG]bit.s, delay: [0-9.]*m*s/X/' "$dir/four.yaml")
ok "paths can be found with it" "$BUILD/ptcp" paths --from a --to b --size 10MB "$dir/four.yaml" >/dev/null
if [ -n "$LONG" ]; then
	thrice measure one --streams 1
	thrice measure more --streams 2 --budget 60
fi
