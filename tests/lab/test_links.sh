#!/bin/bash
# ptcp links in a laboratory: the rates and delays that it finds beside those that the links have, and the file
# that it writes. With LONG=1 more messages, and with one stream, too.
set -u
here=$(dirname "$0")
: "${BUILD:=build}" "${LONG:=}"
lab=$BUILD/tests/lab/lab
dir=$(mktemp -d) || exit 1
export PTCP_LAB_DIR=$dir/labs
unset PTCP_LAB
trap '"$lab" down -a >/dev/null; rm -rf "$dir"' EXIT

ok() { # what happened: the rest is a command that has to succeed
	local name=$1
	shift
	if "$@"; then echo "ok $name"; else echo "not ok $name ($*)" && sed 's/^/# /' "$dir"/*.out "$dir"/*.err | cut -c1-800; fi
}
within() { awk -v x="$1" -v a="$2" -v b="$3" 'BEGIN { exit !(x >= a && x <= b) }'; }
get() { "$BUILD/tests/e2e/jsonget" "$dir/$1.out" last "$2"; }
as() { env HOME="$dir/$1" XDG_CONFIG_HOME="$dir/$1" "${@:2}"; }

"$lab" up -n links -w $$ "$here/topologies/links.yaml" >"$dir/up" 2>&1
rc=$?
if [ $rc -eq 77 ]; then
	echo "ok labs # SKIP $(cat "$dir/up")"
	exit 0
fi
client=$(as a "$BUILD/ptcp" key show)
for host in b c; do
	as $host "$BUILD/ptcp" key authorize "$client"
	as $host "$lab" exec -n links $host "$BUILD/ptcp" serve >"$dir/$host.serve" 2>"$dir/$host.err" &
done
for ((i = 0; i < 100; i++)); do
	[ -s "$dir/b.serve" ] && [ -s "$dir/c.serve" ] && break
	sleep 0.05
done
read -r _ _ fp_b <"$dir/b.serve"
read -r _ _ fp_c <"$dir/c.serve"
cat >"$dir/o.yaml" <<-YAML
	destination: b   # and what is told of it
	hosts:
	  a: {address: $("$lab" addr -n links a)}
	  b: {address: $("$lab" addr -n links b)}
	  c: {address: $("$lab" addr -n links c), relay: true}
	links:
	  - {from: a, to: b, rate: 1Gbit/s, delay: 1s} # not so
	  - {from: a, to: c}
	  - {from: c, to: b, rate: 3Mbit/s}
YAML

# measure NAME OPTION...: on a, into NAME.out and NAME.yaml
measure() {
	as a "$lab" exec -n links a "$BUILD/ptcp" links --json --fingerprint "$fp_b" --fingerprint "$fp_c" \
		--write "$dir/$1.yaml" "${@:2}" "$dir/o.yaml" >"$dir/$1.out" 2>"$dir/$1.err"
	ok "$1: links are measured" [ $? -eq 0 ]
	# Of 1500 bytes of a packet 1424 are data: 9.5 and 47.5 Mbit/s.
	ok "$1: 10 Mbit/s to 10 % ($(get "$1" links.0.rate_bps))" within "$(get "$1" links.0.rate_bps)" 8.55e6 10.45e6
	ok "$1: 5 ms to 2 ms ($(get "$1" links.0.delay_s))" within "$(get "$1" links.0.delay_s)" 0.003 0.007
	ok "$1: 50 Mbit/s to 10 % ($(get "$1" links.1.rate_bps))" within "$(get "$1" links.1.rate_bps)" 42.7e6 52.2e6
	ok "$1: 40 ms to 2 ms ($(get "$1" links.1.delay_s))" within "$(get "$1" links.1.delay_s)" 0.038 0.042
	ok "$1: what begins elsewhere is not measured" [ "$(get "$1" links.2.measured)" = false ]
}

measure four
ok "the file has what was measured, and the rest as it was" diff \
	<(sed 's/rate: [0-9.]*[MG]bit.s, delay: [0-9.]*m*s/X/; s/to: c}/to: c, X}/' "$dir/o.yaml") \
	<(sed 's/rate: [0-9.]*[MG]bit.s, delay: [0-9.]*m*s/X/' "$dir/four.yaml")
ok "paths can be found with it" "$BUILD/ptcp" paths --from a --to b --size 10MB "$dir/four.yaml" >/dev/null
if [ -n "$LONG" ]; then
	measure one --streams 1
	measure more --streams 2 --budget 60
fi
