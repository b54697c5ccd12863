#!/bin/bash
# TUN or AF_PACKET on veth? Runs iobench both ways with one and four TCP streams
# between two namespaces and prints packets, rate and CPU of the forwarder. Root.
#
#   BUILD=build tests/lab/iobench.sh [SECONDS]
set -eu
: "${BUILD:=build}"
bin=$BUILD/tests/lab seconds=${1:-5}
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true' EXIT

# A process holding a fresh network namespace; its pid in $ns.
new_ns() {
	unshare -n sleep 1000 &
	ns=$!
	pids+=("$ns")
	until [ "$(readlink /proc/$ns/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
}
in_ns() { nsenter -n -t "$@"; }

for streams in 1 4; do
	for mode in tun packet; do
		new_ns; a=$ns; new_ns; b=$ns; new_ns; e=$ns
		if [ $mode = packet ]; then
			for x in a b; do
				in_ns "$e" ip link add v$x type veth peer name lab0 netns "${!x}"
				in_ns "$e" ip link set v$x up
				# What offloads leave undone, nobody would do on the way.
				in_ns "${!x}" "$bin/iobench-offload" lab0
			done
			in_ns "$e" "$bin/iobench" packet $((seconds + 3)) va vb & f=$!
		else
			"$bin/iobench" tun $((seconds + 3)) "$a" "$b" & f=$!
		fi
		sleep 0.3
		in_ns "$a" ip addr add 10.0.0.1 peer 10.0.0.2 dev lab0
		in_ns "$b" ip addr add 10.0.0.2 peer 10.0.0.1 dev lab0
		for x in $a $b; do in_ns $x ip link set lab0 up txqueuelen 4000; done
		in_ns "$b" "$bin/flow" sink >/dev/null & pids+=($!)
		sleep 0.2
		in_ns "$a" "$bin/flow" source -c cubic -n $streams -w 0.5 -t "$seconds" 10.0.0.2 | grep total
		wait $f
	done
done
