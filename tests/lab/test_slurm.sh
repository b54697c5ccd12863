#!/bin/bash
# Striped transfers with a real Slurm of three hosts (tests/lab/slurm): movers of clients and of a server started
# by srun, sbatch and mpirun, the files of contrib/slurm, and what is killed or interrupted in mid-transfer. `make
# check-slurm` runs this script; `make check` does not, since Slurm and Open MPI are large.
. "$(dirname "$0")/../e2e/lib.sh"
. "$here/tests/e2e/movers.sh"

slurm=$here/tests/lab/slurm
lab=$("$slurm" up 2>"$tmp/slurm.err")
case $? in
0) ;;
77) echo "ok Slurm # SKIP $lab" && exit 0 ;;
*) echo "not ok Slurm: $(cat "$tmp/slurm.err")" && exit 1 ;;
esac
trap '"$slurm" down "$lab"; cleanup' EXIT
install -m 755 "$PTCP" "$lab/bin/ptcp"
shared=$lab/shared
tasks='srun -N3 --ntasks-per-node=1'

# on COMMAND...: as a user of the cluster, on the host of the controller, in $shared
on() { "$slurm" exec "$lab" -u mover "$@"; }
# as SIDE COMMAND...: the same with the identity and state of this side
as() {
	on env HOME="$lab/home/$1" XDG_CONFIG_HOME="$lab/home/$1/config" XDG_STATE_HOME="$lab/home/$1/state" \
		XDG_RUNTIME_DIR="$lab/home" PTCP_SHARE_SOCKET= PTCP_PATIENCE="$PTCP_PATIENCE" "${@:2}"
}
pids() { "$slurm" pids "$lab" "$@"; }
# end SIGNAL NAME [HOST]: processes of the lab with this name
end() { pids "${@:2}" | xargs -r "$slurm" exec "$lab" kill -"$1"; }
chmod 700 "$lab/home"
on mkdir "$lab/home/client" "$lab/home/server"
own=$(as client ptcp key show)
as server ptcp key authorize "$own"

# server [OPTION...]: a server of $shared/root; sets $fp and $url
server() {
	local line since
	rm -rf "$shared/root"
	on mkdir root
	: >server.out
	as server ptcp serve --root "$shared/root" --listen 10.55.0.1:0 --log-level info "$@" >server.out \
		2>server.serve.err &
	since=$(now_ms)
	until [ -s server.out ] || overdue "$since" 10; do sleep 0.05; done
	read -r line <server.out
	[[ $line =~ ^listening\ ([^ ]*)\ (SHA256:.*)$ ]] || fail "no server: $(cat server.serve.err)"
	url=ptcp://${BASH_REMATCH[1]} fp=${BASH_REMATCH[2]}
}

# in_pool N: waits until N movers have joined the server
in_pool() {
	local since
	since=$(now_ms)
	until [ "$(grep -c 'mover .*: joined' server.serve.err)" -ge "$1" ]; do
		overdue "$since" 20 && fail "only $(grep -c joined server.serve.err) of $1 movers have joined"
		sleep 0.05
	done
}

# client COMMAND ARGUMENT...: a transfer in the background: $job; output in out and err
client() {
	: >out
	as client ptcp "$1" --json --fingerprint "$fp" "${@:2}" >out 2>err </dev/null &
	job=$!
}

complete() {
	end_transfer "${1:-60}"
	expect 0
}

# carried N: the last report of the client's movers names N hosts, each of which has carried data
carried() {
	local n
	n=$(grep '"event":"progress"' out | tail -n 1 | grep -oE '"host":"dtn[0-9]","bytes":[1-9]' | sort -u | wc -l)
	[ "$n" -eq "$1" ] || fail "$n hosts have carried data, not $1: $(grep '"event":"progress"' out | tail -n 1)"
}
# served N: N movers of the server have carried data in its last session
served() {
	local n
	n=$(awk '/event=open/ { n = 0 } /event=mover-end .*bytes=[1-9]/ { n++ } END { print n }' server.serve.err)
	[ "$n" -eq "$1" ] || fail "$n movers of the server have carried data, not $1"
}

# left N: within 10 s, N processes of ptcp are left in all namespaces, the server counted
left() {
	local since
	since=$(now_ms)
	until [ "$(pids ptcp | wc -l)" -eq "$1" ]; do
		overdue "$since" 10 && fail "left: $("$slurm" exec "$lab" ps -C ptcp -o pid,args)"
		sleep 0.1
	done
}
# no_jobs: within 10 s, Slurm has none
no_jobs() {
	local since
	since=$(now_ms)
	while on squeue -h | grep -q .; do
		overdue "$since" 10 && fail "jobs: $(on squeue -h)"
		sleep 0.1
	done
}

after_case() {
	end KILL 'ptcp|srun|mpirun|salloc'
	on scancel -u mover
	(left 0) >&2
	find "$shared" -mindepth 1 -delete
}

make_in() { # a tree, and a file of 30 MB that takes 10 s with $slowly
	on mkdir -p in/tree
	on sh -c 'head -c 30000000 /dev/urandom >in/large; for i in $(seq 200); do echo "$i $i" >in/tree/$i; done
		head -c 300000 /dev/urandom >"in/two blocks"; truncate -s 3M in/sparse'
}
slowly=(--rate 24Mbit/s)
same_in() { diff -r "$shared/in" "$shared/$1" || fail "the trees differ"; }

# ---- Cases

sends() {
	make_in
	server
	client send "${slowly[@]}" --movers "$tasks" in/ "$url/x/"
	complete
	same_in root/x
	carried 3
	left 1
	client recv "${slowly[@]}" --movers "$tasks" "$url/x/" "$shared/back/"
	complete
	same_in back
	carried 3
	left 1
	[ -z "$(find "$lab/home" -name 'movers-*')" ] || fail "an invitation is left"
}

serves() {
	make_in
	server --movers "$tasks"
	in_pool 3
	client send "${slowly[@]}" in/ "$url/x/"
	complete
	same_in root/x
	served 3
	client recv "${slowly[@]}" "$url/x/" back/
	complete
	same_in back
	served 3
	end TERM ptcp
	left 0
}

both() {
	make_in
	server --movers "$tasks"
	in_pool 3
	client send "${slowly[@]}" --movers "$tasks" in/ "$url/x/"
	complete
	same_in root/x
	carried 3
	served 3
	[ "$(json out last streams)" -eq 6 ] || fail "4 streams are not rounded up to a multiple of 3: $(json out last streams)"
}

# Tasks survive their srun.
loses_srun() {
	make_in
	server
	client send "${slowly[@]}" --movers "$tasks" in/ "$url/x/"
	joined 3
	moved 5000000
	end KILL srun
	complete
	same_in root/x
	carried 3
	left 1
}

loses_slurmd() {
	make_in
	server
	client send "${slowly[@]}" --movers "$tasks" in/ "$url/x/"
	joined 3
	moved 5000000
	end KILL 'slurmd|slurmstepd|ptcp' dtn2
	"$slurm" exec "$lab" -w dtn2 slurmd
	complete
	same_in root/x
	grep -q '"movers":2,"text":"mover dtn2: lost' out || fail "the loss was not reported"
	left 1
}

interrupted() {
	no_jobs
	make_in
	server
	client send "${slowly[@]}" --movers "$tasks" in/ "$url/x/"
	joined 3
	moved 5000000
	"$slurm" exec "$lab" kill -INT "$(for id in $(pids ptcp); do
		"$slurm" exec "$lab" grep -qz -- '^send$' "/proc/$id/cmdline" && echo "$id"
	done)"
	end_transfer 20
	expect 8
	left 1
	no_jobs
	absent "$shared/root/x/large"
	client send --movers 'srun -N2 --ntasks-per-node=1' in/ "$url/x/"
	complete
	same_in root/x
	[ "$(json out last resumed_bytes)" -gt 0 ] || fail "nothing was resumed"
}

queued() {
	no_jobs
	make_in
	server
	on srun -N3 --exclusive --ntasks-per-node=1 sleep 600 &
	until on squeue -h -t R | grep -q .; do sleep 0.1; done
	client send --movers-wait 3s --movers "$tasks" in/ "$url/x/"
	end_transfer 20
	expect 3
	says 'none has joined within 3 s; the command that starts them says: srun: job [0-9]+ queued and waiting'
	[ "$(on squeue -h | wc -l)" -eq 1 ] || fail "the job is still in the queue: $(on squeue -h)"
	client send --movers 'srun -p nowhere -N3' in/ "$url/x/"
	end_transfer 20
	expect 3
	says 'ended with status 1: srun: error: .*invalid partition'
}

batch() {
	make_in
	server
	on install -m 755 "$here/contrib/slurm/send.sbatch" send.sbatch
	as client timeout 60 sbatch --wait -N3 -o "$shared/job.out" send.sbatch in/ "$url/x/" --fingerprint "$fp" \
		"${slowly[@]}" || fail "sending: $(cat "$shared/job.out")"
	same_in root/x
	grep -q "mover dtn3: joined" "$shared/job.out" || fail "no mover on dtn3: $(cat "$shared/job.out")"
	as client timeout 60 sbatch --wait -N3 -o "$shared/job.out" send.sbatch "$url/x/" back/ --fingerprint "$fp" ||
		fail "receiving: $(cat "$shared/job.out")"
	same_in back
	left 1
	[ -z "$(find "$shared" -name '.ptcp-*')" ] || fail "left: $(find "$shared" -name '.ptcp-*')"
}

# The command of the unit, with four hosts instead of three.
service() {
	local words
	make_in
	server --mover-file "$shared/movers" --mover-port 0
	words=$(sed -n 's/^ExecStart=//p' "$here/contrib/slurm/ptcp-movers.service")
	words=${words/--nodes=4/--nodes=3}
	on ${words/\/gpfs\/ptcp\/movers/$shared/movers} 2>srun.err &
	in_pool 3
	client send "${slowly[@]}" in/ "$url/x/"
	complete
	same_in root/x
	served 3
	end TERM ptcp
	left 0
}

mpi() {
	command -v mpirun >/dev/null || skip "no mpirun"
	make_in
	server
	: >out
	as client salloc -N3 --ntasks-per-node=1 ptcp send --json --fingerprint "$fp" "${slowly[@]}" --movers 'mpirun -N 1' \
		--mover-file "$shared/movers" in/ "$url/x/" >out 2>err </dev/null &
	job=$!
	complete
	same_in root/x
	carried 3
	left 1
}

# The host vanishes without a word; the connection of its mover stays until the limit of silence. Last: it stays away.
crashes() {
	make_in
	server
	client send "${slowly[@]}" --movers "$tasks" in/ "$url/x/"
	joined 3
	moved 5000000
	"$slurm" crash "$lab" dtn2
	complete
	same_in root/x
	grep -q '"movers":2,"text":"mover dtn2: lost: no response for 8 s' out || fail "the loss was not reported"
	left 1
}

test_case "srun starts the movers of a client" sends
test_case "srun starts the movers of a server" serves
test_case "srun starts movers on both sides" both
test_case "srun is killed: its tasks carry on" loses_srun
test_case "a host's slurmd and tasks are killed" loses_slurmd
test_case "a transfer is interrupted: no process is left, and a later run resumes" interrupted
test_case "srun waits in the queue, or is refused" queued
test_case "the batch job sends and receives" batch
test_case "the service keeps movers of a partition" service
test_case "mpirun starts the movers of a client" mpi
test_case "a host crashes" crashes
done_testing
