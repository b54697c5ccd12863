#!/bin/bash
# Rough weather: transfers through random sequences of outages, of lost connections, of hosts that stop, end or change
# their addresses, and of paths that drop large packets. All transfers end with exit 0 and equal bytes. A run is a function
# of its seed; again: SEED=n RUNS=1 tests/lab/test_weather.sh. EVENTS="nat cut": only these events, one for each run.
#
# Hosts are network namespaces on a bridge: client c, server s, relay r, with IPv4 and IPv6. The packets of an event are
# dropped where they arrive: TCP notices a local drop at its own end.
if [ -z "${WEATHER_INSIDE-}" ]; then
	alone=(unshare --mount --net --pid --fork --kill-child --mount-proc)
	[ "$(id -u)" -eq 0 ] || alone+=(--user --map-root-user)
	if ! "${alone[@]}" sh -c 'mount -t tmpfs none /run && ip netns add c && ip netns exec c nft add table inet x' 2>/dev/null; then
		echo "ok rough weather # SKIP no network namespaces here"
		exit 0
	fi
	WEATHER_INSIDE=1 exec "${alone[@]}" "$0" "$@"
fi
mount -t tmpfs none /run || exit 1
. "$(dirname "$0")/../campaign/lib.sh"
runs 3 200
: "${WORKERS:=$([ -n "$LONG" ] && echo 6 || echo 3)}"
all_events=(cut control stream nat mtu server-stop server-kill client-stop client-address server-address no-ipv6 no-ipv4)
[ -z "${EVENTS-}" ] || read -ra all_events <<<"$EVENTS"

for side in client server relay; do fingerprint $side >/dev/null; done
authorize server client
authorize relay client
fps=$(fingerprint server) fpr=$(fingerprint relay)

# ---- Hosts

within() { ip netns exec "$1$seed" "${@:2}"; }

# host NAME: with an interface of 16 Mbit/s
host() {
	ip netns add "$1$seed"
	ip link add "$1$seed" master "b$seed" up type veth peer name eth0 netns "$1$seed"
	ip -n "$1$seed" link set lo up
	ip -n "$1$seed" link set eth0 up gso_max_segs 1 # so that packets are no larger than the MTU
	ip link set "$1$seed" gso_max_segs 1
	tc -n "$1$seed" qdisc add dev eth0 root tbf rate 16mbit burst 20k latency 60ms
	within "$1" nft 'table inet weather { chain in { type filter hook input priority 0; iif lo accept; }; }'
}

# address NAME NUMBER: removes all others
address() {
	ip -n "$1$seed" addr flush dev eth0 scope global
	ip -n "$1$seed" addr add "10.7.0.$2/24" dev eth0
	ip -n "$1$seed" addr add "2001:db8::$2/64" dev eth0 nodad
}

# The hosts file of all, which the programs there see as /etc/hosts
resolves_to() { printf '127.0.0.1 localhost\n10.7.0.%d far\n2001:db8::%d far\n10.7.0.200 between\n' "$1" "$1" >hosts; }

program() {
	printf '#!/bin/sh\nexec ip netns exec %s sh -c '\''mount --bind "%s" /etc/hosts && exec "$@"'\'' - "%s" "$@"\n' \
		"$1$seed" "$PWD/hosts" "$PTCP" >"at-$1"
	chmod +x "at-$1"
}

# drop WHERE RULE...: packets that match, from now on
drop() {
	local h
	for h in $1; do within "$h" nft add rule inet weather in "${@:2}" drop || fail "nft: ${*:2}"; done
}

# ---- Events: each leaves the network so that a transfer can go on, except for the lasting kinds of bad paths

# seconds SHORT_MAX LONG_MAX: to wait, drawn, at least a fifth of the largest
seconds() {
	local most=$([ -n "$LONG" ] && echo "$2" || echo "$1")
	below $((most * 800))
	nap "$((drawn / 1000 + most / 5)).$(printf %03d $((drawn % 1000)))"
}

start_server() {
	PTCP=$PWD/at-s serve server --root root --listen :7811 --timeout "$timeout" --no-sandbox
	server=$pid
}

# ports COMMAND: local ports of the client's connections, those with the fewest bytes first
ports() {
	within c ss -Htin state established | paste - - | awk '{
		n = 0
		for (i = 1; i <= NF; i++) if ($i ~ /^bytes_(sent|received):/) { split($i, f, ":"); n += f[2] }
		sub(/.*:/, "", $3); print n, $3 }' | sort -n | awk '{ print $2 }' | "$@"
}

# forget PORT...: packets of these connections
forget() {
	local list
	[ $# -gt 0 ] || return
	list=$(printf '%s,' "$@")
	drop "$far" tcp sport "{ ${list%,} }"
	drop c tcp dport "{ ${list%,} }"
}

happens() {
	local h
	case $1 in
	cut)
		for h in c $far; do within "$h" nft insert rule inet weather in drop; done
		seconds 5 60
		for h in c $far; do within "$h" nft flush chain inet weather in; done
		lasting
		;;
	control) forget $(ports head -n 1) ;; # the control connection carries the fewest bytes
	stream) forget $(ports tail -n 1) ;;
	nat) forget $(ports cat) ;;
	mtu) large=1 && lasting ;;
	server-stop) kill -STOP "$server"; seconds 5 60; kill -CONT "$server" ;;
	server-kill)
		kill -KILL "$server"
		wait "$server" 2>/dev/null
		seconds 3 30
		start_server
		;;
	client-stop) kill -STOP "$job"; seconds 5 60; kill -CONT "$job" ;;
	client-address) address c $((client_number += 1)) ;;
	server-address) address s $((server_number += 1)) && resolves_to $server_number ;;
	no-ipv6) dead=ipv6 && lasting ;;
	no-ipv4) dead=ipv4 && lasting ;;
	esac
}

# What is wrong with the path until further notice
lasting() {
	local h
	for h in c $far; do
		within "$h" nft flush chain inet weather in
	done
	[ -z "$large" ] || drop "c $far" meta length '>' 1400
	[ -z "$dead" ] || drop "c $far" meta nfproto "$dead"
}

# ---- A run

# moved: sets $moved, the bytes of the last progress event
moved() {
	moved=$(tail -n 20 stamped | sed -n 's/.*"event":"progress","bytes":\([0-9]*\).*/\1/p' | tail -n 1)
	moved=${moved:-0}
}

# Until more than $1 bytes have moved, or the transfer is over
moves_on() {
	local since
	since=$(now_ms)
	moved
	until [ "$moved" -gt "$1" ] || ! kill -0 "$job" 2>/dev/null; do
		! overdue "$since" 60 || fail "stands still: $(grep -v progress stamped | tail -n 6)"
		nap 0.1
		moved
	done
}

# Bytes that the kernels hold of the sent data
in_flight() {
	{ within c ss -Htn state established; within s ss -Htn state established; } | awk '{ n += $1 + $2 } END { print n + 0 }'
}

# event NAME: fires it, and notes its time, its end, and the bytes in flight
event() {
	local from=$EPOCHREALTIME flying
	flying=$(in_flight)
	moved
	echo "$1"
	happens "$1"
	echo "$from $EPOCHREALTIME $flying $1" >>events
	moves_on $((moved + 400000))
}

begin_stamped() {
	XDG_CONFIG_HOME=$tmp/client/config XDG_STATE_HOME=$tmp/client/state HOME=$tmp/client \
		./at-c "$@" > >(while IFS= read -r line; do echo "$EPOCHREALTIME $line"; done >stamped) 2>err </dev/null &
	job=$!
	began_ms=$(now_ms)
}

# For each event: its name, the seconds until more data moves than ever before, the bytes sent again and those in flight
recoveries() {
	sed -nE 's/^([0-9.]*) .*"event":"progress","bytes":([0-9]*),.*"wire_bytes":([0-9]*),.*/\1 \2 \3/p' stamped | awk -v size="$1" '
		FNR == NR { from[++n] = $1; until[n] = $2; flying[n] = $3; name[n] = $4; from[n + 1] = 1e18; next }
		!since { since = $1 }
		{
			while (e < n && $1 >= from[e + 1]) extra[e++] = wire - most # before the event
			if ($2 > most) {
				if (e > 0 && $1 - (since > from[e] ? since : from[e]) > gap[e]) {
					gap[e] = $1 - (since > from[e] ? since : from[e])
					late[e] = $1 - until[e]
				}
				most = $2; since = $1
			}
			wire = $3
		}
		END {
			extra[e] = wire - (most > size ? size : most)
			for (i = 1; i <= n; i++)
				printf "%s %.1f %d %d\n", name[i], (late[i] > 0 && gap[i] > 0.5 ? late[i] : 0), \
					(extra[i] > extra[i - 1] ? extra[i] - extra[i - 1] : 0), flying[i]
		}' events -
}

figures() { [ ! -e recovered ] || cat recovered; }

transfer() {
	local i n size from=here/file to=ptcp://far/file options=()
	seed=$1 large='' dead='' far=s server_number=2 client_number=10 timeout=1s
	: >events
	: >stamped
	below 2 && way=$([ "$drawn" -eq 0 ] && echo send || echo recv)
	below 2 && paths=$((drawn + 1))
	below 4 && streams=$((1 << drawn))
	n=$([ -n "${EVENTS-}" ] && echo 1 || echo 3)
	size=$((n * 6000000 * paths))
	[ -z "$LONG" ] || timeout=2s
	ip link add "b$seed" up type bridge
	host c && host s
	address c 1 && address s 2 && resolves_to 2
	program c && program s
	mkdir root here
	start_server
	options+=(--fingerprint "far=$fps")
	if [ "$paths" -eq 2 ]; then
		far="s r"
		host r && address r 200 && program r
		PTCP=$PWD/at-r serve relay --relay-to far:7811 --listen :7811 --timeout "$timeout" --no-sandbox
		options+=(--via direct --via between --fingerprint "between=$fpr")
	fi
	bytes "$size" here/file
	[ "$way" = send ] || { mv here/file root/file && from=ptcp://far/file to=here/file; }
	echo "$way, $paths paths, $streams streams, $size bytes"
	below 6
	case $drawn in # from the start
	0) large=1 && lasting ;;
	1) dead=ipv6 && lasting ;;
	2) dead=ipv4 && lasting ;;
	esac
	[ -n "${EVENTS-}" ] && { large='' dead='' && lasting; }
	begin_stamped "$way" --json --no-history --timeout "$timeout" --streams "$streams" "${options[@]}" "$from" "$to"
	moves_on 1000000
	for ((i = 0; i < n; i++)); do
		below ${#all_events[@]}
		event "${all_events[drawn]}"
		below 1000
		nap "0.$(printf %03d "$drawn")"
	done
	finish 240
	nap 0.2 # for the last stamp
	cut -d' ' -f2- stamped >out
	[ "$status" -eq 0 ] || fail "exit $status: $(cat -v err)"
	cmp here/file root/file || differ "not the same"
	recoveries "$size" >recovered
	cat events recovered
	again=$(($(json out last wire_bytes) - size))
	most=$(awk -v n="$streams" '{ m += $4 + n * 1048576 } END { print m }' recovered)
	[ "$again" -le "$most" ] || fail "sent again: $again bytes, at most $most expected"
	echo "total - $again $most" >>recovered
}

# forgetful NAME FLAGS THEIRS OURS: drops packets of connections that were idle for 30 s; new ones begin with these flags
forgetful() {
	within "$1" nft -f - <<-NFT
		table inet nat {
			set known { type inet_service; flags dynamic, timeout; timeout 30s; }
			chain in {
				type filter hook input priority 1; policy accept;
				tcp flags & (syn | ack) == $2 tcp $3 7811 update @known { tcp $4 } accept
				tcp $3 7811 tcp $4 != @known drop
				tcp $3 7811 update @known { tcp $4 }
			}
		}
	NFT
}

# The receiver's disk needs 75 s for one block, and the time-out is long: only keepalives cross the connections.
idle() {
	seed=idle far=s timeout=5m
	ip link add "b$seed" up type bridge
	host c && host s
	address c 1 && address s 2 && resolves_to 2
	program c && program s
	forgetful s syn dport sport
	forgetful c 'syn | ack' sport dport
	mkdir root
	LD_PRELOAD=$BUILD/tests/e2e/slow.so SLOW_FIRST_S=75 start_server
	bytes 20000000 file
	begin_stamped send --json --no-history --timeout "$timeout" --streams 2 --fingerprint "far=$fps" \
		file ptcp://far/file
	finish 200
	nap 0.2
	cut -d' ' -f2- stamped >out
	[ "$status" -eq 0 ] || fail "exit $status: $(cat -v err)"
	same_file file root/file
	[ "$took_ms" -gt 75000 ] || fail "over after $took_ms ms"
	! grep -E '"event":"reconnecting"|"reason":"(connection lost|no )' out || fail "a connection was lost"
}

table() {
	echo "event: count, recovery in s (median, largest), bytes sent again (median, largest), in flight (median)"
	sort "$tmp/figures" | awk '
		function median(a, n,  i, j, t) {
			for (i = 2; i <= n; i++) for (j = i; j > 1 && a[j] < a[j - 1]; j--) { t = a[j]; a[j] = a[j - 1]; a[j - 1] = t }
			return a[int((n + 1) / 2)]
		}
		function show() { if (n) printf "%s: %d, %.1f %.1f, %d %d, %d\n", last, n, median(s, n), s[n], median(b, n), b[n], median(f, n) }
		$1 == "total" { runs++; again += $3; next }
		$1 != last { show(); n = 0; last = $1 }
		{ n++; s[n] = $2; b[n] = $3; f[n] = $4; if ($2 > longest) longest = $2 }
		END { show(); printf "all: %d runs, recovery within %.1f s, %d bytes sent again for each run\n", runs, longest, runs ? again / runs : 0 }'
}

fleet transfer
LONG=$LONG${EVENTS-} tell
verdicts "rough weather"
[ -z "$LONG" ] || test_case "a NAT that forgets idle connections after 30 s" idle
done_testing
