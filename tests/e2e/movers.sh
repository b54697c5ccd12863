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
	until_true 15 at_least "$1" grep -c '"text":"mover .* joined' out ||
		fail "only $(grep -c joined out) of $1 movers have joined"
}

# invited: waits until $PWD/invitation is written
invited() {
	until_true 10 test -s invitation || fail "no invitation"
}

# all_carry N: whether N streams have been connected, and have moved a block each since
all_carry() {
	local from
	from=$(grep '"event":"progress".*"streams":'"$1"',' out | head -n 1)
	[ -n "$from" ] || return
	[ $(($(bytes_moved) - $(sed -E 's/.*"progress","bytes":([0-9]+).*/\1/' <<<"$from"))) -ge $(($1 << 18)) ]
}

# movers_gone: no mover is left
movers_gone() {
	local p
	for p in $(cat "$PIDS"); do
		until_true 10 is_over "$p" || fail "mover $p is still there"
	done
}
