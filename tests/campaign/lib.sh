# Sourced by the campaigns, on top of the end-to-end scripts' library: payloads, the chaos proxy, runs
# side by side, and their table. A run is a function of its seed alone, and so can be repeated:
# SEED=n RUNS=1 tests/campaign/test_NAME.
#
#   SEED     of the first run (1); each run has the next one
#   LONG     set for the long form
#   RUNS     how many, instead of the form's number
#   WORKERS  how many at a time (4: they wait more than they compute)
#   COST     ms of data that a kill may cost beside what is in flight (1500): small files that wait to be
#            completed together, and a journal's records

. "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib.sh"
: "${LONG=}" "${SEED:=1}" "${WORKERS:=4}" "${COST:=1500}"

chaos=$BUILD/tests/campaign/chaos
payloads=$tmp/payloads
mkdir "$payloads" "$tmp/logs" || exit 1

# runs SHORT LONG: how many there are in each form
runs() { : "${RUNS:=$([ -n "$LONG" ] && echo "$2" || echo "$1")}"; }

# below N: a number from 0, of the run's generator
below() { drawn=$(((RANDOM << 15 | RANDOM) % $1)); }

# ---- Payloads: folders in $payloads, each with its sums in NAME.sums. One with a single file
# calls it "file" and is sent as that; others are sent as the content of a folder.

sums() {
	(cd "$1" && find . -type f ! -name '.ptcp-*' -print0 | xargs -0r sha256sum | sort)
}

seal() {
	sums "$payloads/$1" >"$payloads/$1.sums"
	find "$payloads/$1" -type f -printf '%s\n' | awk '{ n += $1 } END { print n + 0 }' >"$payloads/$1.size"
}

# single NAME BYTES
single() {
	mkdir "$payloads/$1"
	bytes "$2" "$payloads/$1/file"
	seal "$1"
}

# many NAME FILES: small ones of some sizes, in folders
many() {
	local i
	for ((i = 0; i < $2; i++)); do
		[ $((i % 100)) -eq 0 ] && mkdir -p "$payloads/$1/d$((i / 100))"
		head -c $((i % 7 * 3001)) /dev/urandom >"$payloads/$1/d$((i / 100))/f$i"
	done
	seal "$1"
}

# odd NAME: a tree with all kinds of things in it
odd() {
	make_tree "$payloads/$1"
	seal "$1"
}

# Sets $from and $to, the two ends of the command for payload $1 below $2 and $3; makes what has to
# be there.
ends_for() {
	if [ -e "$payloads/$1/file" ]; then
		from=$2/file to=$3/file
		mkdir -p "$place"
	else
		from=$2/ to=$3
	fi
}

differ() {
	differing=1
	fail "$@"
}

# What is under a final name in folder $2 is as in payload $1.
nothing_wrong() {
	local wrong
	[ -d "$2" ] || return 0
	wrong=$(comm -13 "$payloads/$1.sums" <(sums "$2"))
	[ -z "$wrong" ] || differ "not as the source: $(head -n 3 <<<"$wrong" | cat -v)"
}

# All of payload $1 is in folder $2 and nothing else.
all_there() {
	cmp -s "$payloads/$1.sums" <(sums "$2") ||
		differ "not the same: $(diff "$payloads/$1.sums" <(sums "$2") | head -n 3 | cat -v)"
	[ ! -e "$payloads/$1/odd" ] || same "$payloads/$1" "$2"
	[ -z "$(find "$2" -name '.ptcp-*' | head -n 3)" ] ||
		fail "left behind: $(find "$2" -name '.ptcp-*' | head -n 3)"
}

# ---- The sides of a run. Identities are made once; each run has a server and a proxy of its own.

# proxy OPTION...: starts it before the server of the current folder; sets $proxy, its process, and
# $url and $modes
proxy() {
	local since
	: >proxy.out
	"$chaos" --to "$PWD/server.serve.out" "$@" >proxy.out 2>proxy.err </dev/null &
	proxy=$!
	echo "$proxy" >>"$pids"
	since=$(now_ms)
	until [ -s proxy.out ] || overdue "$since" 5; do
		nap 0.02
	done
	read -r port modes <proxy.out || fail "no proxy: $(cat proxy.err)"
	proxied=ptcp://127.0.0.1:$port
}

# carried: sets $bytes, which the proxy has taken so far from the sender
carried() {
	local lines
	lines=$(wc -l <proxy.out)
	kill -QUIT "$proxy"
	until [ "$(wc -l <proxy.out)" -gt "$lines" ]; do
		nap 0.002
	done
	read -r _ up _ down < <(tail -n 1 proxy.out)
	bytes=$([ "$way" = send ] && echo "$up" || echo "$down")
}

# counted: ends the proxy; sets $up and $down, the bytes it took from clients and from servers
counted() {
	kill -TERM "$proxy"
	wait "$proxy"
	read -r _ up _ down < <(tail -n 1 proxy.out)
}

# begin ARGUMENT...: "ptcp" in the background, with the client's identity; sets $job
begin() {
	HOME=$tmp/client XDG_CONFIG_HOME=$tmp/client/config XDG_STATE_HOME=$tmp/client/state \
		LD_PRELOAD=$examiner${LD_PRELOAD:+:$LD_PRELOAD} "$PTCP" "$@" >out 2>err </dev/null &
	job=$!
	echo "$job" >>"$pids"
	began_ms=$(now_ms)
}

# finish SECONDS: waits for it at most so long (see overdue); sets $status and $took_ms
finish() {
	local since
	since=$(now_ms)
	while kill -0 "$job" 2>/dev/null; do
		! overdue "$since" "$1" || fail "hung: still there after $1 s"
		nap 0.01
	done
	took_ms=$(($(now_ms) - began_ms))
	wait "$job" 2>/dev/null
	status=$?
	echo "ptcp -> $status after $took_ms ms: $(tail -n 1 err | cat -v)"
}

# The status is one that the manual knows for a transfer.
documented() {
	case $status in
	0 | 1 | 3 | 4 | 5 | 6 | 8) ;;
	*) fail "status $status: $(cat -v err)" ;;
	esac
}

# ---- Runs side by side

# one_run FUNCTION SEED: its log in $tmp/logs/SEED, with "FAILED" as the last line if it did; what the
# script's function "figures" prints goes into $tmp/figures
one_run() {
	local rc
	dir=$tmp/run$2
	mkdir "$dir"
	(
		pids=/dev/null # the worker's group will do; by the end a number may be another's
		differing=0
		measure_patience
		trap 'figures >>"$tmp/figures"; kill -KILL $(jobs -p) 2>/dev/null' EXIT
		cd "$dir" || exit 1
		RANDOM=$2
		"$1" "$2" && census_all "$dir"
	) >"$tmp/logs/$2" 2>&1
	rc=$?
	not_owned "$dir" >>"$tmp/logs/$2" && rc=1
	if [ $rc -ne 0 ]; then
		tail -v -n 5 "$dir"/*.err >>"$tmp/logs/$2" 2>/dev/null
		echo "FAILED" >>"$tmp/logs/$2"
	fi
	chmod -R u+rwX "$dir"
	rm -rf "$dir"
}

# fleet FUNCTION: RUNS of them. Workers are process groups, so that nothing outlives an interrupt.
fleet() {
	local w
	: >"$tmp/figures"
	set -m
	for ((w = 0; w < WORKERS; w++)); do
		(
			set +m
			for ((n = SEED + w; n < SEED + RUNS; n += WORKERS)); do
				one_run "$1" "$n"
			done
		) &
		echo "-$!" >>"$pids"
	done
	set +m
	wait
}

# verdicts NAME: a TAP line for each failed run with its log, or one for all
verdicts() {
	local n
	for ((n = SEED; n < SEED + RUNS; n++)); do
		[ -e "$tmp/logs/$n" ] && [ "$(tail -n 1 "$tmp/logs/$n")" != FAILED ] && continue
		cases=$((cases + 1)) failures=$((failures + 1))
		echo "not ok $1, run $n (again: SEED=$n RUNS=1 ${0#"$here"/})"
		report "$tmp/logs/$n" log
	done
	[ $failures -gt 0 ] || {
		cases=$((cases + 1))
		echo "ok $1"
	}
}

# Shows the script's "table", the short form only its first and last line, so that tests/run does, too
tell() { table | sed "$([ -n "$LONG" ] || echo '1b out; $!d; :out;') s/^/#> /"; }
