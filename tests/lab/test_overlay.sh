#!/bin/bash
# An overlay of four hosts: ptcp links measures it, ptcp paths finds the quickest paths, ptcp send --via auto takes
# them; then once more, and the rate of one falls on the way. SHOW=1 shows what each prints to a user.
. "$(dirname "$0")/lib.sh"
: "${SHOW:=}"

case $BUILD in /*) ;; *) BUILD=$PWD/$BUILD lab=$PWD/$lab ;; esac
ptcp=$BUILD/ptcp
up four
mkdir "$dir/root"
head -c 10000000 /dev/urandom >"$dir/run7"
for host in b k l; do
	authorize $host a
	case $host in b) serve b --root "$dir/root" ;; *) serve $host --relay-to "$("$lab" addr b)" ;; esac
	pins+=(--fingerprint "$("$lab" addr $host)=$fp")
done
cat >"$dir/overlay.yaml" <<-YAML
	destination: b
	hosts:
	  a: {address: $("$lab" addr a)}
	  b: {address: $("$lab" addr b)}
	  k: {address: $("$lab" addr k), relay: true}
	  l: {address: $("$lab" addr l), relay: true}
	links:
	  - {from: a, to: b}
	  - {from: a, to: k}
	  - {from: k, to: b}   # measured by k
	  - {from: a, to: l}
	  - {from: l, to: b}   # measured by l
YAML

# try NAME COMMAND ARGUMENT...: on a, as one would call it there; NAME.out, NAME.err
try() { (cd "$dir" && on a timeout 120 "$ptcp" "${@:2}" >"$1.out" 2>"$1.err"); }

# Of 1500 bytes of a packet 1424 are data; a busy machine brings less, not more.
links() {
	local i=0 want rate delay
	try links links --json "${pins[@]}" --budget 40 --write overlay.yaml overlay.yaml
	ok "links are measured, from a and by k and l" [ $? -eq 0 ]
	for want in 3.8:22 11.4:6 15.2:6 9.5:11 7.6:11; do
		rate=$(get links links.$i.rate_bps) delay=$(get links links.$i.delay_s)
		ok "link $i brings ${want%:*} Mbit/s ($rate)" within "$rate" \
			"$(awk -v w="${want%:*}" 'BEGIN { print 0.6e6 * w }')" "$(awk -v w="${want%:*}" 'BEGIN { print 1.2e6 * w }')"
		ok "in ${want#*:} ms ($delay)" within "$delay" "$(awk -v w="${want#*:}" 'BEGIN { print 0.8e-3 * w }')" \
			"$(awk -v w="${want#*:}" 'BEGIN { print 1.4e-3 * w }')"
		i=$((i + 1))
	done
}

# What three paths brought: in Mbit/s, and the share of k's bytes in per cent
figures() {
	mbps=$(awk -v b="$(get "$1" throughput_bps)" 'BEGIN { printf "%.1f", b / 1e6 }')
	share=$(for i in 0 1 2; do echo "$(get "$1" paths.$i.via.0) $(get "$1" paths.$i.bytes)"; done |
		awk -v k="$("$lab" addr k)" '{ all += $2 } $1 == k { its = $2 } END { printf "%.0f", 100 * its / all }')
}
send() { # NAME PATHS
	try "$1" send --json "${pins[@]}" --no-history --via auto --overlay overlay.yaml --paths "$2" --streams 9 run7 \
		"ptcp://$("$lab" addr b)/$1"
	cmp -s "$dir/run7" "$dir/root/$1" || echo "$1: $(cat "$dir/$1.err")" >>"$dir/wrong" # once is enough
	rm -f "$dir/root/$1"
	figures "$1"
	echo "#> $1: $mbps Mbit/s, $share % of it over k"
}

# The best path has 11.4 of the 22.8 Mbit/s of all three.
as_planned() {
	local alone
	send alone 1
	alone=$mbps
	send whole 3
	ok "three paths bring more than the best one" awk -v a="$alone" -v w="$mbps" 'BEGIN { exit !(w >= 1.25 * a) }'
	ok "of which k carries the largest part" within "$share" 36 64
}

# Soon k has 1 Mbit/s left of its 11: for its half of the bytes it would need 40 s.
as_it_comes() {
	rm -f "$dir/falls.out"
	(
		for ((i = 0; i < 200; i++)); do
			grep -q '"event":"progress","bytes":[1-9]' "$dir/falls.out" 2>/dev/null && break
			sleep 0.05
		done
		"$lab" set k-in rate=1Mbit/s
	) &
	send falls 3
	wait $!
	"$lab" set k-in rate=12Mbit/s
	ok "k carries less where its rate falls" within "$share" 0 35
	ok "and the others what it does not" within "$mbps" 4 23
}

show() { # COMMAND ARGUMENT...
	try show "$@"
	echo "\$ ptcp $*" | cat - "$dir/show.out" "$dir/show.err" | sed 's/^/#> /'
}
if [ -n "$SHOW" ]; then # what is known is enough here
	for pin in "${pins[@]}"; do
		[ "$pin" = --fingerprint ] || echo "${pin%=*}:7811 ${pin#*=}"
	done >>"$dir/a/ptcp/known_hosts"
	show links --write overlay.yaml overlay.yaml
	show paths --from a --to b --size 10MB -m 3 overlay.yaml
	show send -v --via auto --overlay overlay.yaml --paths 3 run7 "ptcp://$("$lab" addr b)/"
	exit
fi

thrice links
try paths paths --from a --to b --size 10MB -m 3 overlay.yaml
ok "paths finds three" [ "$(grep -c Mbit/s "$dir/paths.out")" -eq 3 ]
thrice as_planned
thrice as_it_comes
ok "all arrives as it was sent" [ ! -e "$dir/wrong" ]
