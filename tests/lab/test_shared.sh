#!/bin/bash
# ptcp links in a laboratory of links that share a bottleneck: rates measured at the same time, the bottleneck that
# is found, and the file. With LONG=1 the rates of nine links beside those of a long flow over each, too.
. "$(dirname "$0")/lib.sh"
: "${LONG:=}"

# server HOST [LINK...]: measures links for a
server() {
	local link relay=()
	for link in "${@:2}"; do
		[ "${link%>*}" != "$1" ] || relay+=(--relay-to "$("$lab" addr "${link#*>}")")
	done
	authorize "$1" a
	serve "$1" "${relay[@]}"
	pins+=(--fingerprint "$("$lab" addr "$1")=$fp")
}

# overlay "HOST.." LINK...
overlay() {
	local host link
	printf 'destination: %s\nhosts:\n' "${1##* }"
	for host in $1; do printf '  %s: {address: %s}\n' "$host" "$("$lab" addr "$host")"; done
	printf 'links:\n'
	for link in "${@:2}"; do printf '  - {from: %s, to: %s}\n' "${link%>*}" "${link#*>}"; done
}

# Each link is in a round with the other two: those of the pipe have half of their rates there.
shared() {
	on a "$BUILD/ptcp" links --json --budget 12 "${pins[@]}" --write "$dir/shared.yaml" "$dir/o.yaml" >"$dir/shared.out" \
		2>"$dir/shared.err"
	ok "links are measured" [ $? -eq 0 ]
	for i in 0 1; do # of 1500 bytes of a packet 1424 are data
		ok "30 Mbit/s to 15 % ($(get shared "links.$i.rate_bps"))" within "$(get shared "links.$i.rate_bps")" 24.2e6 32.8e6
	done
	ok "20 Mbit/s to 15 % ($(get shared links.2.rate_bps))" within "$(get shared links.2.rate_bps)" 16.1e6 21.8e6
	ok "one bottleneck of two links" [ "$(get shared shared.0.links.0) $(get shared shared.0.links.1)" = "x1>y1 x2>y2" ]
	ok "no other link shares one" [ "$(get shared shared.0.links.2) $(get shared shared.1.rate_bps)" = "missing missing" ]
	ok "the bottleneck has 30 Mbit/s ($(get shared shared.0.rate_bps))" within "$(get shared shared.0.rate_bps)" 24.2e6 32.8e6
	ok "the file has it" grep -qE '^  - \{rate: [0-9.]+Mbit/s, links: \[x1>y1, x2>y2\]\}$' "$dir/shared.yaml"
	"$BUILD/ptcp" paths --from x1 --to y1 --size 10MB "$dir/shared.yaml" >"$dir/paths.out" 2>"$dir/paths.err"
	ok "and can be used" [ $? -eq 0 ]
}

# Over each link a flow of four streams, without its first four seconds
flows() {
	local i
	for i in {1..9}; do
		on "b$i" "$bin/flow" sink >/dev/null 2>&1 &
		sleep 0.3
		truth[i]=$(on a "$bin/flow" source -n 4 -w 4 -t 14 "$("$lab" addr "b$i")" | sed -n 's/^total.* mbps=\([0-9.]*\).*/\1/p')
		kill $!
	done
}

rates() {
	local i began=$SECONDS
	on a "$BUILD/ptcp" links --json --local-only "${pins[@]}" "$dir/rates.yaml" >"$dir/rates.out" 2>"$dir/rates.err"
	ok "nine links are measured" [ $? -eq 0 ]
	echo "#> nine links in $((SECONDS - began)) s"
	for i in {1..9}; do
		awk -v f="$(get rates "links.$((i - 1)).rate_bps")" -v t="${truth[i]}" -v i="$i" \
			'BEGIN { e = 100 * (f / 1e6 / t - 1); printf "#> link %d: %.1f of %.1f Mbit/s, %+.1f %%\n", i, f / 1e6, t, e
			print e < 0 ? -e : e >"/dev/stderr" }' 2>>"$dir/errors"
	done
	sort -g "$dir/errors" >"$dir/sorted"
	ok "the median is right to 15 % ($(sed -n 5p "$dir/sorted"))" within "$(sed -n 5p "$dir/sorted")" 0 15
	ok "the worst to 40 % ($(tail -n 1 "$dir/sorted"))" within "$(tail -n 1 "$dir/sorted")" 0 40
	rm "$dir/errors"
}

up shared
links=("x1>y1" "x2>y2" "z1>z2") pins=()
for host in x1 x2 y1 y2 z1 z2; do server "$host" "${links[@]}"; done
overlay "x1 x2 z1 z2 y1 y2" "${links[@]}" >"$dir/o.yaml"
thrice shared
[ -n "$LONG" ] || exit 0
"$lab" down -a >/dev/null
up rates
links=(a\>b{1..9}) pins=()
for host in b{1..9}; do server "$host"; done
overlay "$(echo a b{1..9})" "${links[@]}" >"$dir/rates.yaml"
flows
thrice rates
