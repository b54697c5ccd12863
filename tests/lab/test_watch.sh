#!/bin/bash
# A daemon in a laboratory that measures its links in the background: what c is told of them when it asks, beside what
# they are.
. "$(dirname "$0")/lib.sh"

up links
cat >"$dir/o.yaml" <<-YAML
	destination: b
	hosts:
	  a: {address: $("$lab" addr a)}
	  b: {address: $("$lab" addr b)}
	  c: {address: $("$lab" addr c)}
	links: [{from: a, to: b}, {from: a, to: c}]
YAML
for host in b c; do
	authorize $host a
	serve $host
	echo "$("$lab" addr $host):7811 $fp" >>"$dir/a/ptcp/known_hosts"
done
authorize a c
serve a --watch "$dir/o.yaml" --watch-interval 1s

# ask MESSAGES: on c, until so many went over each link
ask() {
	local i
	for ((i = 0; i < 60; i++)); do
		on c "$BUILD/ptcp" links --query --json --fingerprint "$fp" --write "$dir/told.yaml" "$dir/o.yaml" >"$dir/told.out" \
			2>"$dir/told.err" && [ "$(get told links.0.messages)" -ge "$1" ] && [ "$(get told links.1.messages)" -ge "$1" ] &&
			return
		sleep 1
	done
	return 1
}

# tells MESSAGES: when so many went over each
tells() {
	local messages=$1
	ok "a tells c what it knows" ask "$messages"
	ok "10 Mbit/s to 20 % ($(get told links.0.rate_bps))" within "$(get told links.0.rate_bps)" 7.6e6 11.4e6
	ok "5 ms to 4 ms ($(get told links.0.delay_s))" within "$(get told links.0.delay_s)" 0.001 0.009
	ok "50 Mbit/s to 20 % ($(get told links.1.rate_bps))" within "$(get told links.1.rate_bps)" 38e6 57e6
	ok "40 ms to 6 ms ($(get told links.1.delay_s))" within "$(get told links.1.delay_s)" 0.034 0.046
}

again() { tells $((tries += 8)); }
tries=0
thrice again
ok "what it told is written" grep -qE 'from: a, to: b, rate: [0-9.]+ ?Mbit/s, delay: ' "$dir/told.yaml"
paths() { "$BUILD/ptcp" paths --from a --to b --size 10MB "$dir/told.yaml" >/dev/null; }
ok "paths can be found with it" paths
