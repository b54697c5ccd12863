#!/bin/bash
# Collections in a laboratory: five sources, two relays. As executed beside the plan, when links are what the overlay
# says; then a link is cut to a tenth halfway; and a relay stores what a window leaves little time to send.
. "$(dirname "$0")/lib.sh"
: "${MBYTES:=$([ -n "${LONG-}" ] && echo 16 || echo 6)}" # a fifteenth of the data
most=1.1
[ -n "${LONG-}" ] || most=1.25 # beside other tests, and the start counts for more
sources=(s1 s2 s3 s4 s5)

# What of a link's rate is file data: 1448 bytes of a packet of 1500, less TLS
goodput() { awk -v r="$1" 'BEGIN { printf "%.3fMbit/s", 0.955 * r }'; }

overlay() { # DIRECT K1 K2: rates in Mbit/s
	local s
	echo "destination: d"
	echo "hosts:"
	echo "  d: {}"
	for s in "${sources[@]}"; do
		echo "  $s: {address: $("$lab" addr "$s"), path: $s, data: $((${s#s} * MBYTES))MB}"
	done
	echo "  k1: {address: $("$lab" addr k1), relay: true}"
	echo "  k2: {address: $("$lab" addr k2), relay: true}"
	echo "links:"
	for s in "${sources[@]}"; do
		echo "  - {from: $s, to: d, rate: $(goodput "$1")}"
		echo "  - {from: $s, to: k1, rate: $(goodput 40)}"
		echo "  - {from: $s, to: k2, rate: $(goodput 40)}"
	done
	echo "  - {from: k1, to: d, rate: $(goodput "$2")}"
	echo "  - {from: k2, to: d, rate: $(goodput "$3")}"
	echo "shared:"
	echo "  - {rate: $(goodput "$1"), links: [s1>d, s2>d, s3>d, s4>d, s5>d]}"
}

# collect NAME [OPTION...]: in the background
collect() {
	rm -rf "$dir/got" "$dir/$1.status"
	on d timeout 300 "$BUILD/ptcp" collect --json "${trusted[@]}" "${@:2}" "$dir/overlay.yaml" "$dir/got" \
		>"$dir/$1.out" 2>"$dir/$1.err"
	echo "$?" >"$dir/$1.status"
}

arrived() {
	local s
	[ "$(cat "$dir/$1.status")" = 0 ] || return
	for s in "${sources[@]}"; do
		cmp -s "$dir/$s/data" "$dir/got/$s/$s" || return
	done
}

ratio() { awk -v a="$(get "$1" makespan_s)" -v b="$2" 'BEGIN { printf "%.3f", a / b }'; }

# Links are as they are said to be
as_planned() {
	overlay 16 12 12 >"$dir/overlay.yaml"
	collect plain
	echo "#> as planned: planned $(get plain planned_s) s, executed $(get plain makespan_s) s, plans beside the first: $(get plain replans)"
	ok "what was collected is what was there" arrived plain
	ok "it takes what was planned" within "$(ratio plain "$(get plain planned_s)")" 0.8 "$most"
}

# From halfway on k1 sends a tenth of what it did. The best that can be is what is left then over what links bring then.
cut_to_a_tenth() {
	local collecting left best elapsed
	overlay 16 12 12 >"$dir/overlay.yaml"
	: >"$dir/tenth.out"
	collect tenth &
	collecting=$!
	halfway $((15 * MBYTES * 1000000 / 2)) || return
	"$lab" set k1-out rate=1.2Mbit/s
	read -r elapsed left <<<"$(tail -n 1 "$dir/half" | awk -v all=$((15 * MBYTES * 1000000)) '{ print $1, all - $2 }')"
	wait $collecting
	"$lab" set k1-out rate=12Mbit/s
	best=$(awk -v t="$elapsed" -v b="$left" 'BEGIN { printf "%.1f", t + b * 8 / (0.955e6 * (16 + 12 + 1.2)) }')
	echo "#> k1 cut to a tenth at $elapsed s: executed $(get tenth makespan_s) s, plans beside the first: $(get tenth replans), at best it takes $best s"
	ok "with a link cut to a tenth all arrives" arrived tenth
	ok "and it is planned anew" [ "$("$BUILD/tests/e2e/jsonget" "$dir/tenth.out" count event=replan)" -ge 1 ]
	ok "and takes not much more than the best that can be" within "$(ratio tenth "$best")" 0.8 1.4
}

# The link to k1 is open for the first seconds only, and k1 sends less than it can receive then: it stores the data. What
# it delivers after the window does not come over that link.
stored_at_a_relay() {
	rm -rf "$dir/got" "$dir/stored.out"
	cat >"$dir/stored.yaml" <<-YAML
		destination: d
		hosts:
		  d: {}
		  s4: {address: $("$lab" addr s4), path: s4, data: $((4 * MBYTES))MB}
		  k1: {address: $("$lab" addr k1), relay: true, storage: 1GB}
		links:
		  - {from: s4, to: d, rate: $(goodput 4)}
		  - {from: s4, to: k1, rate: $(goodput 40)}
		  - {from: k1, to: d, rate: $(goodput 12)}
		windows:
		  - {link: s4>k1, from: $((MBYTES * 4 / 5))s, rate: 0}
	YAML
	"$lab" set direct rate=4Mbit/s
	(sleep $((MBYTES * 4 / 5)) && sleep 0.5 && "$lab" set k1-in rate=200kbit/s) &
	on d timeout 300 "$BUILD/ptcp" collect --json "${trusted[@]}" "$dir/stored.yaml" "$dir/got" >"$dir/stored.out" 2>"$dir/stored.err"
	wait $!
	"$lab" set k1-in rate=40Mbit/s
	"$lab" set direct rate=16Mbit/s
	echo "#> stored at a relay: planned $(get stored planned_s) s, executed $(get stored makespan_s) s, plans beside the first: $(get stored replans)"
	ok "data stored at a relay arrives" cmp -s "$dir/s4/data" "$dir/got/s4/s4"
	ok "and is not taken for data of the link before" [ "$(grep -c 's4>k1 carries' "$dir/stored.out")" -eq 0 ]
	ok "in about the planned time" within "$(ratio stored "$(get stored planned_s)")" 0.5 1.3
	ok "and it helps: the direct path alone takes longer" within "$(ratio stored $((8 * MBYTES)))" 0.2 0.9
}

# Waits until so many bytes have come; elapsed time and bytes then are in the file half
halfway() {
	local i
	for ((i = 0; i < 3000; i++)); do
		paste -d' ' <(told_of elapsed_s) <(told_of bytes) | tail -n 1 >"$dir/half"
		awk -v want="$1" '$2 >= want { ok = 1 } END { exit !ok }' "$dir/half" && return
		[ ! -e "$dir/tenth.status" ] || break
		sleep 0.1
	done
	echo "not ok halfway: $(tail -n 2 "$dir/tenth.err")"
	return 1
}
told_of() { "$BUILD/tests/e2e/jsonget" "$dir/tenth.out" get "$1" event=progress 2>/dev/null; }

up collect
for s in "${sources[@]}" k1 k2; do
	authorize "$s" d
done
for s in "${sources[@]}"; do
	mkdir "$dir/$s/root" 2>/dev/null || mkdir -p "$dir/$s/root"
	head -c $((${s#s} * MBYTES * 1000000)) /dev/urandom >"$dir/$s/data"
	ln "$dir/$s/data" "$dir/$s/root/$s"
	serve "$s" --root "$dir/$s/root"
	trusted+=(--fingerprint "$fp")
done
for k in k1 k2; do
	serve $k --relay-to 10.0.0.0/8 --relay-storage 1GB
	trusted+=(--fingerprint "$fp")
done
thrice as_planned
thrice cut_to_a_tenth
thrice stored_at_a_relay
[ -z "${KEEP-}" ] || cp "$dir"/*.out "$dir"/*.err "$dir"/overlay.yaml "$KEEP"
