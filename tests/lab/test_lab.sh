#!/bin/bash
# The driver from end to end on small labs: up, exec, set, cut, stats, down, two side
# by side, and what is left after kill -9 at every stage (nothing).
. "$(dirname "$0")/lib.sh"

says() { grep -q -- "$1" "$dir/out" || { sed 's/^/# /' "$dir/out"; false; }; }
fails() { ! "$@" >"$dir/out" 2>&1; }
value() { sed -n "s/^\(.* \|\)$1=\([0-9.]*\).*/\2/p"; }
state() { "$lab" list | sed -n "s/^$1 up .*$2=\([0-9]*\).*/\1/p"; }
# Whether the process ends, or the lab, within 20 s
gone() { for _ in $(seq 400); do kill -0 "$1" 2>/dev/null || return 0; sleep 0.05; done; false; }
cleared() { for _ in $(seq 400); do [ -e "$PTCP_LAB_DIR/$1" ] || return 0; sleep 0.05; done; false; }

# ------------------------------------------------ without any namespace

cat >"$dir/bad.yaml" <<-YAML
	hosts:
	  a:
	  b:
	links:
	  l: { between: [a, b], rate: quick }
YAML
fails "$lab" up "$dir/bad.yaml"
ok "a bad topology names file, line and column" says "^$dir/bad.yaml:5:31: rate is \"quick\""
fails "$lab" up "$dir/none.yaml"
ok "a missing topology is named" says 'cannot open .*none.yaml'
ok "down without a lab is no failure" "$lab" down
fails "$lab" stats
ok "stats without a lab says so" says 'there is no lab'
fails "$lab" up -n ../x "$here/topologies/pair.yaml"
ok "a name must not be a path" says 'usage: lab up'
fails "$lab" frobnicate
ok "an unknown command gets the list" says 'usage: lab COMMAND'

"$lab" up -n one -w $$ "$here/topologies/pair.yaml" >"$dir/out" 2>&1
rc=$?
if [ $rc -eq 77 ]; then
	echo "ok labs # SKIP $(cat "$dir/out")"
	exit 0
fi
ok "a lab comes up" [ $rc -eq 0 ]
ok "up says what there is" says 'lab one is up: 2 hosts, 1 links'

# ------------------------------------------------------------ one lab

fails "$lab" up -n one "$here/topologies/pair.yaml"
ok "a second lab of that name is refused" says 'lab one is up already'
ok "exec runs on the host" [ "$("$lab" exec a sh -c 'echo $PTCP_LAB/$PTCP_LAB_HOST')" = one/a ]
ok "exec passes the exit status" [ "$("$lab" exec a sh -c 'exit 7'; echo $?)" = 7 ]
ok "hosts know each other by name" [ "$("$lab" exec a getent ahostsv4 b | head -1 | cut -d' ' -f1)" = "$("$lab" addr b)" ]
ok "the machine's own hosts file is untouched" [ "$(grep -c PTCP /etc/hosts)$(getent ahostsv4 b)" = 0 ]
ok "a host sees only its own devices" [ "$("$lab" exec a cut -s -d: -f1 /proc/net/dev | tr -d ' \n')" = lolab0 ]
fails "$lab" exec c true
ok "an unknown host is named" says 'has no host "c"'
fails "$lab" exec a /no/such/program
ok "a missing program is named" says 'cannot run /no/such/program'
fails "$lab" set link rate=slow
ok "set explains a bad value" says 'rate is "slow", should be like'
fails "$lab" set nolink rate=1Mbit/s
ok "set names an unknown link" says 'there is no link "nolink"'

# UDP from a to b: udp PACKETS_PER_S COUNT; its line in $dir/seen.
udp() {
	"$lab" exec b "$bin/udp" sink -f 2 -i 0.4 >"$dir/seen" &
	local sink=$!
	sleep 0.2
	"$lab" exec a "$bin/udp" source -r "$1" -k "$2" "$("$lab" addr b)"
	wait $sink
}
tcp() {
	"$lab" exec a "$bin/flow" source -n "$1" -w 1 -t 2 -c reno "$("$lab" addr b)" | tail -1 >"$dir/seen"
}
# NAME VALUE LEAST MOST COMMAND...
measured() {
	local v
	"${@:5}"
	v=$(value "$2" <"$dir/seen")
	ok "$1 ($2=$v)" within "${v:-0}" "$3" "$4"
}
"$lab" set link rate=10Mbit/s delay=30ms queue="2000 packets"
# Sent faster than carried: the queue lasts, whatever keeps the sender from its work.
thrice measured "10 Mbit/s are 10 Mbit/s" mbps 9.8 10.2 udp 5000 900
thrice measured "30 ms and sending are 31.2 ms" delay_p50_ms 31 32.2 udp 200 100
"$lab" set link/fwd loss=50%
thrice measured "half is lost" received 120 180 udp 600 300
"$lab" set link loss=0 jitter=20ms reorder=yes
thrice measured "jitter may reorder" reordered 1 300 udp 600 300
"$lab" set link jitter=0 reorder=no
"$lab" cut link
fails udp 200 20
ok "a cut link carries nothing" [ "$(value received <"$dir/seen")" != 20 ]
ok "a cut is seen in the counters" [ "$("$lab" stats link/fwd | value drop_cut)" -gt 0 ]
"$lab" restore link
thrice measured "a restored link carries all" received 20 20 udp 200 20

"$lab" exec b "$bin/flow" sink >/dev/null &
sink=$!
sleep 0.2
"$lab" set link rate=20Mbit/s delay=5ms queue=50p
thrice measured "four TCP streams fill the link" mbps 17 19.5 tcp 4

# ------------------------------------------------- two labs, and ends

"$lab" up -n two "$here/topologies/peering.yaml" >/dev/null
ok "another comes up beside it" [ "$("$lab" list | grep -c ' up ')" = 2 ]
fails "$lab" stats
ok "which lab has to be said then" says 'say which with -n'
ok "both have a host 10.0.0.2, each its own" [ "$("$lab" addr -n one b)" = "$("$lab" addr -n two s2)" ]
ok "the other lab has no such listener" fails "$lab" exec -n two s1 "$bin/flow" source -t 1 "$("$lab" addr -n two s2)"
"$lab" exec -n two s1 "$bin/udp" source -k 50 "$("$lab" addr -n two dst)"
sleep 0.2
# Less than 50: what the refusing host reports back makes some sends fail.
ok "packets take the shortest path" [ "$("$lab" stats -n two north/fwd | value out_packets)" -ge 25 ]
ok "and no other" [ "$("$lab" stats -n two south/fwd | value in_packets | tail -1)" = 0 ]
"$lab" down -n two >/dev/null
ok "down ends one and leaves the other" [ "$("$lab" list | cut -d' ' -f1)" = one ]

kill -9 "$(state one emulator)"
ok "kill -9 of the emulator ends the lab" cleared one
ok "and what ran in it" gone $sink
ok "and a second down is no failure" "$lab" down -n one

"$lab" up -n three "$here/topologies/pair.yaml" >/dev/null
"$lab" exec a "$bin/flow" sink >/dev/null &
sink=$! emulator=$(state three emulator)
sleep 0.2
kill -9 "$(state three keeper)"
ok "kill -9 of the keeper ends the emulator" gone "$emulator"
ok "the crashed lab is listed" [ "$("$lab" list)" = 'three crashed' ]
fails "$lab" exec -n three a true
ok "and explained" says 'has crashed (lab down'
"$lab" down -n three >/dev/null
ok "down finds what still ran in it" gone $sink
ok "and removes it" [ -z "$("$lab" list)" ]

"$lab" up -n four -w $$ "$here/topologies/pair.yaml" >/dev/null
keeper=$(state four keeper)
kill -9 "$keeper" "$(state four emulator)"
gone "$keeper"
"$lab" up -n four -w $$ "$here/topologies/pair.yaml" >"$dir/out" 2>&1
ok "up clears a crashed lab away" says 'cleared away'
ok "and takes its name" says 'lab four is up'

sleep 1000 & owner=$!
"$lab" up -n five -w $owner "$here/topologies/pair.yaml" >/dev/null
kill $owner
ok "a lab ends with its owner" cleared five
for after in 0.002 0.01 0.03; do
	"$lab" up -n six "$here/topologies/overlay.yaml" >/dev/null 2>&1 & up=$!
	sleep $after
	kill -9 $up 2>/dev/null
	wait $up 2>/dev/null
	# what it had started may still be on its way up, on a busy machine for a while
	for ((i = 0; i < 30; i++)); do
		sleep 0.3
		"$lab" down -n six >/dev/null
		sleep 0.2
		[ -e "$PTCP_LAB_DIR/six" ] || break
	done
	ok "kill -9 of up after $after s leaves nothing" [ ! -e "$PTCP_LAB_DIR/six" ]
done
mkdir "$PTCP_LAB_DIR/seven" # up was killed before it made anything in it
"$lab" list >"$dir/out"
ok "a lab of which there is only the folder is listed" says '^seven crashed$'
"$lab" down -n seven >/dev/null
ok "down removes its folder" [ ! -e "$PTCP_LAB_DIR/seven" ]
"$lab" down -a >/dev/null
ok "down -a ends all" [ -z "$(ls "$PTCP_LAB_DIR")" ]

# ----------------------------------------------------- not as root

if [ "$(id -u)" -ne 0 ]; then
	echo "ok unprivileged labs: the above were"
elif ! command -v setpriv >/dev/null || ! cp "$lab" "$bin/udp" "$dir" || ! chmod 755 "$dir" "$dir/lab" "$dir/udp"; then
	echo "ok unprivileged labs # SKIP no setpriv"
else
	mkdir "$dir/nobody" && chown 65534 "$dir/nobody" && cp "$here/topologies/pair.yaml" "$dir" && chmod 644 "$dir/pair.yaml"
	nobody() { (cd / && PTCP_LAB_DIR=$dir/nobody setpriv --reuid 65534 --regid 65534 --clear-groups "$@"); }
	nobody "$dir/lab" up -w $$ "$dir/pair.yaml" >"$dir/out" 2>&1
	rc=$?
	if [ $rc -eq 77 ]; then
		echo "ok unprivileged labs # SKIP $(cat "$dir/out")"
	else
		ok "an unprivileged user has a lab" says 'lab pair is up'
		nobody "$dir/lab" exec b "$dir/udp" sink -f 5 -i 0.4 >"$dir/seen" & sink=$!
		sleep 0.3
		nobody "$dir/lab" exec a "$dir/udp" source -k 20 10.0.0.2
		wait $sink
		ok "and packets in it" [ "$(value received <"$dir/seen")" = 20 ]
		nobody "$dir/lab" down >"$dir/out" 2>&1
		ok "and ends it" says 'lab pair is down'
	fi
fi
