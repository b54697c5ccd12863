# Sourced by the tests of striped transfers, behind lib.sh.

# A launcher like srun: starts $1 tasks, prefixes nothing, ends with them.
cat >"$tmp/launch" <<'EOF'
#!/bin/bash
n=$1
shift
for i in $(seq "$n"); do
	"$@" & # each its own process
	echo $! >>"$PIDS"
done
disown -a # bash remarks on what is killed
while kill -0 $(cat "$PIDS") 2>/dev/null; do sleep 0.1; done
EOF
chmod +x "$tmp/launch"
export PIDS=$tmp/mover.pids
: >"$PIDS"

# joined N: waits until N movers have joined in all
joined() {
	local since
	since=$(now_ms)
	until [ "$(grep -c '"text":"mover .* joined' out)" -ge "$1" ]; do
		overdue "$since" 15 && fail "only $(grep -c joined out) of $1 movers have joined"
		sleep 0.05
	done
}

# invited: waits until $PWD/invitation is written
invited() {
	local since
	since=$(now_ms)
	until [ -s invitation ]; do
		overdue "$since" 10 && fail "no invitation"
		sleep 0.05
	done
}

# moved BYTES: waits until so much has arrived
moved() {
	local since
	since=$(now_ms)
	until [ "$(sed -n 's/.*"event":"progress","bytes":\([0-9]*\).*/\1/p' out | tail -n 1)" -ge "$1" ] 2>/dev/null; do
		overdue "$since" 15 && fail "too little has moved"
		sleep 0.05
	done
}

# movers_gone: no mover is left
movers_gone() {
	local p since
	since=$(now_ms)
	for p in $(cat "$PIDS"); do
		while kill -0 "$p" 2>/dev/null; do
			overdue "$since" 10 && fail "mover $p is still there"
			sleep 0.05
		done
	done
}
