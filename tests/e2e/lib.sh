# Sourced by the end-to-end scripts: sides with their own XDG folders, servers on loopback
# at a free port, clients with a time limit, trees to compare, TAP lines. All in one temporary
# folder that is removed at the end, as are the processes started.
#
#   test_case NAME FUNCTION     runs it in a subshell; fail (or exit 1) there fails the case,
#                               skip there skips it; its log is printed only when it failed
#   timed test_case ...         one that measures times or rates: may be repeated alone, see tests/run
#   beside [timed] test_case .. one that waits more than it computes: runs beside those that follow, until
#   all_beside                  has shown them in their order; they share nothing that they change
#   after_case                  what a script may define: runs after each case
#   done_testing                last line of a script
#
# CASE=text: only the cases whose name contains the text.

set -u
export LC_ALL=C
unset XDG_CONFIG_HOME XDG_STATE_HOME 2>/dev/null
export PTCP_SHARE_SOCKET= # no service of this host
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
BUILD=${BUILD:-build}
case $BUILD in /*) ;; *) BUILD=$here/$BUILD ;; esac
PTCP=${PTCP:-$BUILD/ptcp}
tmp=$(mktemp -d "${TMPDIR:-/tmp}/ptcp-e2e.XXXXXX") || exit 1
chmod 755 "$tmp"
export XDG_RUNTIME_DIR=$tmp/run
mkdir -m 700 "$XDG_RUNTIME_DIR"
failures=0 cases=0 besides=()

# Each ptcp that the functions below start is examined, beside what a test preloads: for a second close, and for
# descriptors that stay open (owners.c). The copy is where other users can read the library, too.
examiner=
if cp "$BUILD/tests/e2e/owners.so" "$tmp/owners.so" 2>/dev/null; then
	examiner=$tmp/owners.so
	export ASAN_OPTIONS=verify_asan_link_order=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}
fi

# not_owned FOLDER: what the library has reported in the files of errors there
not_owned() { grep -rahsE --include='*err' '^ptcp, process [0-9]+: descriptor [0-9]+ is ' "$1"; }

pids=$tmp/pids
: >"$pids"
mkfifo -m 666 "$tmp/never" # for all users
census=$tmp/census # a file for each server, see "Descriptors of servers"
mkdir "$census"

# Measures the factor for limits of waiting (tests/e2e/patience.c), for our programs, too.
measure_patience() {
	PTCP_PATIENCE=$("$BUILD/tests/e2e/patience" 2>/dev/null || echo 1)
	export PTCP_PATIENCE
	[ "$PTCP_PATIENCE" -le "$most_patience" ] || most_patience=$PTCP_PATIENCE
	measured_us=${EPOCHREALTIME/./}
}
most_patience=1 # the largest factor so far

now_ms() { echo $((${EPOCHREALTIME/./} / 1000)); }

# nap SECONDS, without starting a process: 50 of them in each second of waiting would take the processor from the event
nap() { read -rt "$1" <>"$tmp/never" || :; }

# overdue SINCE_MS SECONDS: whether more than SECONDS have passed, in seconds of a quiet machine without sanitizers.
# Other load may have begun since the last measurement. After other load has ended, the largest factor counts still: a
# server that was started with "--timeout $((3 * PTCP_PATIENCE))s" takes so long.
overdue() {
	local passed_ms=$((${EPOCHREALTIME/./} / 1000 - $1)) before=$PTCP_PATIENCE
	[ "$passed_ms" -gt $(($2 * 1000 * most_patience)) ] || return 1
	measure_patience
	[ "$PTCP_PATIENCE" -gt "$before" ] || PTCP_PATIENCE=$before
	[ "$passed_ms" -gt $(($2 * 1000 * most_patience)) ]
}

# until_true SECONDS COMMAND...: waits for an event at most so long (see overdue). Scripts wait for nothing but events: no
# other line of theirs rests (tests/shape).
until_true() {
	local limit=$1 since=$((${EPOCHREALTIME/./} / 1000)) rest_ms
	shift
	until "$@"; do
		! overdue "$since" "$limit" || return
		# the commands that look 50 times a second take a tenth of a processor: what takes seconds is seen a fiftieth later
		rest_ms=$(((${EPOCHREALTIME/./} / 1000 - since) / 50))
		nap 0.0$((rest_ms < 20 ? 20 : rest_ms < 99 ? rest_ms : 99))
	done
	came_after $((${EPOCHREALTIME/./} / 1000 - since)) "$limit" "$@"
}

# came_after MS SECONDS COMMAND...: an event that takes most of its limit is too late for some other machine: done_testing
# prints it
came_after() {
	[ "$2" -eq 0 ] || [ $(($1 * 3)) -le $(($2 * 2000 * most_patience)) ] ||
		echo "$1 of $(($2 * 1000 * most_patience)) ms: ${*:3}" >>"$tmp/came.late"
}

# await SECONDS COMMAND...: the same, and fails if it does not come
await() { until_true "$@" || fail "never: ${*:2}"; }

# holds SECONDS COMMAND...: whether it is true for so long. On a busy machine it sees less, and is wrong about nothing.
holds() {
	local until_ms
	until_ms=$(awk -v ms="$(now_ms)" -v s="$1" 'BEGIN { printf "%.0f", ms + s * 1000 }')
	while [ $((${EPOCHREALTIME/./} / 1000)) -lt "$until_ms" ]; do
		"${@:2}" || return
		nap 0.05
	done
}

# stall PID...: of the time for which the threads of the processes wanted a processor, the percentage without one
stall() {
	local pid
	for pid in "$@"; do cat /proc/"$pid"/task/[0-9]*/schedstat 2>/dev/null; done |
		awk '{ ran += $1; waited += $2 } END { printf "%d\n", ran + waited > 0 ? 100 * waited / (ran + waited) : 0 }'
}

is_over() { ! kill -0 "$1" 2>/dev/null; }

# at_least N COMMAND...: whether the command prints so large a number
at_least() { [ "$("${@:2}")" -ge "$1" ] 2>/dev/null; }

# ours PID: whether the process, or one of the group -PID, is of this script: the number of an ended one may be another's
ours() {
	local p
	for p in $([[ $1 == -* ]] && pgrep -g "${1#-}" || echo "$1"); do
		! grep -qsF "$tmp" "/proc/$p/environ" "/proc/$p/cmdline" || return 0
		[[ $(readlink "/proc/$p/cwd") != "$tmp"* ]] || return 0
	done
	return 1
}

cleanup() {
	local pid
	trap '' INT TERM HUP # the second of two signals must not end this halfway
	exec 2>/dev/null # the shell's remarks on what is killed
	while read -r pid; do
		ours "$pid" || continue
		kill -CONT "$pid" 2>/dev/null
		kill -KILL "$pid" 2>/dev/null
	done <"$tmp/pids"
	awk -v top="$tmp/" 'index($2, top) == 1 { print $2 }' /proc/mounts | xargs -r umount -l
	chmod -R u+rwX "$tmp" 2>/dev/null
	rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP

measure_patience

# ---- Cases

wanted() { [[ $1 == *"${CASE-}"* ]]; }

test_case() {
	local name=$1 rc
	wanted "$name" || return 0
	cases=$((cases + 1))
	[ $((${EPOCHREALTIME/./} - measured_us)) -lt 1000000 ] || measure_patience
	dir=$tmp/case$cases
	mkdir "$dir"
	(
		cd "$dir" || exit 1
		[ "${besides[*]}" != itself ] || apart
		"$2" && census_all "$dir"
	) >"$dir.log" 2>&1
	rc=$?
	not_owned "$dir" >>"$dir.log" && rc=1
	if [ $rc -eq 77 ]; then
		echo "ok $name # SKIP $(tail -n 1 "$dir.log")"
	elif [ $rc -eq 0 ]; then
		echo "ok $name"
	else
		failures=$((failures + 1))
		echo "not ok $name${measures-}"
		for f in "$tmp"/*.serve.err "$dir"/*.serve.err "$dir"/out "$dir"/err; do # tests/run prints the last lines
			[ -s "$f" ] && report "$f" "${f##*/}"
		done
		report "$dir.log" log 12
		# of a sanitizer, the beginning of its report, whose end says little
		grep -shm 1 -A 8 -E 'ERROR: [A-Za-z]*Sanitizer: |: runtime error: ' "$tmp"/*.serve.err "$dir"/*err "$dir.log" | sed 's/^/#   /'
	fi
	chmod -R u+rwX "$dir" 2>/dev/null
	rm -rf "$dir" 2>/dev/null
	after_case
}

# Cases that run beside others may call their transfers and servers as others do.
apart() {
	export XDG_RUNTIME_DIR=$dir.run
	mkdir -m 700 "$XDG_RUNTIME_DIR"
}

timed() {
	local measures=' # measures time'
	"$@"
}

beside() {
	wanted "${@: -2:1}" || return 0
	(
		besides=(itself)
		"$@"
	) >"$tmp/beside$cases" &
	besides+=("$! $tmp/beside$cases")
	cases=$((cases + 1))
}

all_beside() {
	local job
	for job in "${besides[@]}"; do
		wait "${job%% *}"
		cat "${job#* }"
		failures=$((failures + $(grep -c '^not ok' "${job#* }")))
	done
	besides=()
}

after_case() { :; }

# Leaves nothing in a folder that a server may hold open.
empty() {
	chmod -R u+rwX "$1" 2>/dev/null
	find "$1" -mindepth 1 -delete
}

report() {
	echo "# ---- $2"
	tail -n "${3-30}" "$1" | cat -v | sed 's/^/#   /'
}

fail() {
	echo "FAILED: $*"
	exit 1
}

skip() {
	echo "$*"
	exit 77
}

done_testing() {
	all_beside
	if ! (census_all none) >"$tmp/owners.log" || not_owned "$tmp" >>"$tmp/owners.log"; then # servers of several cases
		cases=$((cases + 1)) failures=$((failures + 1))
		echo "not ok each descriptor has one owner"
		report "$tmp/owners.log" log
	fi
	[ ! -e "$census/compared" ] || echo "# the descriptors of $(sort -u "$census/compared" | wc -l) idle servers were compared," \
		"$(find "$census" -name '[0-9]*' | wc -l) have run"
	[ ! -e "$tmp/came.late" ] || sort -u "$tmp/came.late" | sed 's/^/#> more than two thirds of the limit of a wait: /'
	echo "1..$cases"
	[ "$failures" -eq 0 ]
	exit
}

# ---- Sides: each has its own identity and state in $tmp/SIDE

as() {
	local side=$1
	shift
	[ -d "$tmp/$side" ] || mkdir -p "$tmp/$side"
	LD_PRELOAD=$examiner${LD_PRELOAD:+:$LD_PRELOAD} HOME=$tmp/$side XDG_CONFIG_HOME=$tmp/$side/config \
		XDG_STATE_HOME=$tmp/$side/state "$@"
}

config() { echo "$tmp/$1/config/ptcp"; }

fingerprint() { as "$1" "$PTCP" key show; }

# authorize SERVER CLIENT [OPTION...]
authorize() {
	local server=$1 client=$2
	shift 2
	as "$server" "$PTCP" key authorize "$(fingerprint "$client")" "$@" ||
		fail "key authorize ended with $?"
}

# serve SIDE [OPTION...]: starts a server, sets $pid, $port, $addr, $fp and $url. The case's
# folder (or $tmp outside a case) gets SIDE.serve.out and SIDE.serve.err.
serve() {
	local side=$1 line log
	shift
	log=$PWD/$side.serve
	case $PWD in "$tmp"*) ;; *) log=$tmp/$side.serve ;; esac
	case " $* " in *" --listen"*) ;; *) set -- --listen 127.0.0.1:0 "$@" ;; esac
	: >"$log.out"
	mkdir -p "$tmp/$side"
	HOME=$tmp/$side XDG_CONFIG_HOME=$tmp/$side/config XDG_STATE_HOME=$tmp/$side/state \
		LD_PRELOAD=$examiner${LD_PRELOAD:+:$LD_PRELOAD} "$PTCP" serve "$@" >"$log.out" 2>"$log.err" </dev/null &
	pid=$!
	echo "$pid" >>"$pids"
	until_true 5 eval 'grep -q . "$log.out" || is_over "$pid"'
	read -r line <"$log.out"
	if ! [[ $line =~ ^listening\ (.*):([0-9]+)\ (SHA256:[A-Za-z0-9+/]{43})$ ]]; then
		cat "$log.err"
		fail "serve $* is not ready: '$line'"
	fi
	addr=${BASH_REMATCH[1]} port=${BASH_REMATCH[2]} fp=${BASH_REMATCH[3]}
	url=ptcp://$addr:$port
	case " $* " in
	*" --mover"*) ;; # movers join and leave: which descriptors it has is not known
	*) (echo "$(began "$pid") $PWD" "$log.err" && kinds "$pid") >"$census/$pid" ;;
	esac
}

# slow_link SIDE BYTES: $port and $url become those of a link to the server there that carries so many a second; what
# measures paths floods loopback for nothing, at the speed of processors
slow_link() {
	"$BUILD/tests/campaign/chaos" --to "$1.serve.out" --modes clean --rate "$2" >"$1.link" &
	echo $! >>"$pids"
	until_true 5 grep -q . "$1.link" || fail "no link to $1"
	read -r port _ <"$1.link"
	url=ptcp://127.0.0.1:$port
}

stop() {
	census "$1" 0
	kill -TERM "$1" 2>/dev/null
	wait "$1"
}

# ---- Descriptors of servers: an idle one has those that it had when it began to serve

# began PID: when the process began; another process may have the number of an ended one
began() { cut -d ' ' -f 22 "/proc/$1/stat" 2>/dev/null; }

# kinds PID: a line for each descriptor of a process; an inherited file may have been removed since
kinds() { find "/proc/$1/fd" -type l -printf '%l\n' 2>/dev/null | sed -E 's/:\[[0-9]+\]$/:/; s/ \(deleted\)$//' | sort; }

# A server keeps the loop for handshakes, which begins with the third handshake at the same time (conn/context.c).
cached=$'anon_inode:[eventfd]\nanon_inode:[eventpoll]\npipe:\npipe:'

# state PID LOG: the server's state of this moment, from its log; fails if there is none
state() {
	local before
	before=$(grep -c ' event=state ' "$2")
	kill -USR1 "$1" || return
	until_true 2 at_least $((before + 1)) grep -c ' event=state ' "$2" || return
	grep ' event=state ' "$2" | tail -n 1
}

# new_ones PID: the descriptors that the server had not at first, but for those that it keeps; none if it has fewer: a client
# may have connected at once, and then some of those that it keeps were there already
new_ones() {
	local new
	new=$(comm -13 <(tail -n +2 "$census/$1") <(kinds "$1"))
	comm -23 <(echo "$new") <(echo "$cached")
}

# census PID SECONDS [SECONDS]: compares the descriptors of a server, which has so many seconds to become idle, and as an idle
# one so many (15) to end connections of strangers. A server that is asleep, or does not say that it is idle, is not compared.
census() {
	local pid=$1 since log limit new
	[ -n "$(tail -n +2 "$census/$pid" 2>/dev/null)" ] && grep -q '^State:.*[RSD] ' "/proc/$pid/status" 2>/dev/null || return 0
	read -r since _ log <"$census/$pid"
	[ "$since" = "$(began "$pid")" ] || return 0
	for limit in "$2" "${3-15}"; do
		if until_true "$limit" eval 'new=$(new_ones "$pid"); [ -z "$new" ]'; then
			echo "$pid" >>"$census/compared"
			return 0
		fi
		state "$pid" "$log" | grep -q ' sessions=0 waiting=0 streams=0 relayed=0 shared=0 ' || return 0
	done
	fail "descriptors that the idle server $pid had not at first:"$'\n'"$new"
}

# census_all FOLDER: of the servers that were started there (none: in no folder of a case), and of those of all cases if no
# other case runs
census_all() {
	local f folder
	for f in "$census"/[0-9]*; do
		[ -e "$f" ] || continue
		read -r _ folder _ <"$f"
		case $folder in
		"$1"*) ;;
		"$tmp"/*) continue ;;
		*) [ ${#besides[@]} -eq 0 ] || continue ;;
		esac
		census "${f##*/}" 2
	done
}

# few N COMMAND...: with programs that may open N files; the command is one of those here
few() {
	local PTCP=$PTCP dir
	dir=$(mktemp -d "$tmp/few.XXXXXX")
	printf '#!/bin/sh\nulimit -n %s\nexec "%s" "$@"\n' "$1" "$PTCP" >"$dir/ptcp"
	chmod +x "$dir/ptcp"
	PTCP=$dir/ptcp
	shift
	"$@"
}

# The limit on open files that the last sentence asks for
needed_files() { grep -oE 'ulimit -n [0-9]+' err | grep -oE '[0-9]+'; }

# run ARGUMENT...: the tool as the side "client", trusting $fp when there is one. Sets $status;
# its output is in the files out and err of the current folder.
run() {
	run_as client ${fp:+--fingerprint "$fp"} -- "$@"
}

# run_as SIDE [OPTION...] -- COMMAND ARGUMENT...: the options go behind the command's name
run_as() {
	local side=$1 options=() command
	shift
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	command=$2
	shift 2
	as "$side" timeout -k 5 $((${LIMIT:-60} * PTCP_PATIENCE)) "$PTCP" "$command" "${options[@]}" "$@" \
		>out 2>err </dev/null
	status=$?
	echo "ptcp $command $* -> $status"
	[ "$status" -ne 124 ] || fail "hung"
}

# The status of the last run, and what goes with each that is not 0: one line, the last, that is
# neither a warning nor anything else.
expect() {
	local line lines=()
	[ "$status" -eq "$1" ] || fail "status $status instead of $1: $(cat -v err)"
	[ "$1" -eq 0 ] && return
	mapfile -t lines <err
	line=${lines[*]: -1}
	[[ $line == "ptcp: "*:* && $line != "ptcp: warning:"* ]] || fail "no sentence: $(cat -v err)"
	for line in "${lines[@]}"; do
		[[ $line == "ptcp: "* || $line == *" event=patience "* ]] || fail "a line that is not ours: $(cat -v err)"
	done
}

# As expect, and no other line on stderr.
expect_one_line() {
	local lines=()
	expect "$1"
	mapfile lines <err
	[[ ${#lines[@]} -eq 1 && ${lines[0]} == *$'\n' ]] || fail "not exactly one line: $(cat -v err)"
}

says() { grep -qiE -- "$1" err || fail "stderr does not say /$1/: $(cat -v err)"; }

json() { "$BUILD/tests/e2e/jsonget" "$@"; }

# json_is FILE KEY VALUE: of the last object
json_is() {
	local got
	got=$(json "$1" last "$2") || fail "no JSON lines in $1"
	[ "$got" = "$3" ] || fail "$2 is $got instead of $3"
}

# ---- Background transfers

# start_transfer COMMAND ARGUMENT...: with --json, trusting $fp; sets $job, output in out and err
start_transfer() {
	local command=$1
	shift
	: >out
	HOME=$tmp/client XDG_CONFIG_HOME=$tmp/client/config XDG_STATE_HOME=$tmp/client/state \
		LD_PRELOAD=$examiner${LD_PRELOAD:+:$LD_PRELOAD} "$PTCP" "$command" --json --fingerprint "$fp" "$@" >out 2>err </dev/null &
	job=$!
	echo "$job" >>"$pids"
}

# Until bytes have moved; fails if the transfer is over before.
wait_moving() {
	until_true 8 grep -qE '"event":"(progress","bytes":[1-9]|end")' out || fail "nothing moved: $(cat -v err)"
	grep -q '"event":"progress","bytes":[1-9]' out || fail "over before it could be disturbed"
}

# moved BYTES: waits until so many have moved
moved() { until_true 15 at_least "$1" bytes_moved || fail "too little has moved: $(bytes_moved) bytes: $(cat -v err)"; }
bytes_moved() { sed -n 's/.*"event":"progress","bytes":\([0-9]*\).*/\1/p' out | tail -n 1; }

# lift_when SECONDS COMMAND...: ends the rate limit of a transfer once that is true: a transfer that began slowly cannot end
# before a fact that needs time, and does not wait afterwards
lift_when() {
	true_or_over() { "$@" || is_over "$job"; }
	until_true "$1" true_or_over "${@:2}" && "${@:2}" || fail "never: ${*:2}: $(cat -v err)"
	kill -USR2 "$job" || fail "the transfer is over: $(cat -v err)"
}

# end_transfer SECONDS: waits for it at most so long (see overdue), sets $status
end_transfer() {
	if ! until_true "$1" is_over "$job"; then
		kill -KILL "$job"
		fail "still there after $1 s"
	fi
	wait "$job"
	status=$?
	echo "transfer -> $status"
}

# ---- Trees

# bytes N FILE: N bytes that do not compress and differ from file to file
bytes() {
	openssl enc -aes-128-ctr -nosalt -pass "pass:$2" -in /dev/zero 2>/dev/null | head -c "$1" >"$2"
}

long_name() { printf '%0255d' 7; }

# Names that scripts and protocols trip over, as files in folder $1.
odd_names() {
	local name
	for name in $'new\nline' $'\nleading' $'tab\there' '-rf' '--' '--json' ' lead' 'trail ' '*' '?' \
		'[a]' '\' 'back\slash' "quote'" 'dquote"' '$HOME' '`id`' ';' '&' '|' '#x' '%41' 'a%2Fb' \
		'a:b' 'user@host:x' '~' '...' '..x' '.hidden' $'\xff\xfe' $'gr\xc3\xbc\xc3\x9f' \
		$'\xed\xa0\x80' $'\xe2\x80\xae' $'\033[31m' $'\177' $'\001' "$(long_name)" CON 'x.part'; do
		echo "$name" >"$1/$name" || fail "cannot make that name here"
	done
}

# A tree with all kinds of things in it.
make_tree() {
	mkdir -p "$1"/deep/{1,2}/{3,4} "$1/empty dir" "$1/odd"
	: >"$1/empty"
	bytes 1 "$1/one"
	bytes 4096 "$1/page"
	bytes 65537 "$1/deep/1/odd size"
	bytes 1048576 "$1/deep/1/3/MiB"
	bytes 5000011 "$1/deep/2/large"
	odd_names "$1/odd"
	mkdir "$1/odd/"$'dir\n\xff' && echo x >"$1/odd/"$'dir\n\xff/x'
	ln -s one "$1/link"
	ln -s /nowhere/at/all "$1/dangling"
	ln -s .. "$1/deep/up"
	ln -s deep "$1/to dir"
	chmod 600 "$1/one"
	chmod 755 "$1/page"
	chmod 444 "$1/deep/1/odd size"
	chmod 700 "$1/deep/2"
	chmod 775 "$1/deep/1"
	touch -d '2001-02-03 04:05:06.789012345Z' "$1/one" "$1/link"
	touch -d '1969-12-31 23:59:58Z' "$1/page"
	touch -d '2038-01-19 03:14:08.5Z' "$1/empty"
	touch -d '2011-11-11 11:11:11.111Z' "$1/deep/1" "$1/empty dir" "$1/deep"
	chmod 555 "$1/deep/1/3"
	touch -d '2010-10-10 10:10:10Z' "$1"
}

# One NUL-ended record for everything below a folder: type, mode and time (a link's mode means
# nothing and its time need not be kept), size of files, target of links.
listing() {
	(cd "$1" && find . -mindepth 1 \
		\( -type l -printf 'l %l %P\0' \) -o \
		\( -type d -printf 'd %m %T@ %P\0' \) -o \
		-printf '%y %m %T@ %s %P\0') | sort -z
}

# same A B: the same things with the same contents, modes and times, and nothing else
same() {
	cmp -s <(listing "$1") <(listing "$2") ||
		fail "not the same: $(diff <(listing "$1" | tr '\n\0' '?\n' | cat -v) \
			<(listing "$2" | tr '\n\0' '?\n' | cat -v) | head -n 10)"
	diff -r --no-dereference "$1" "$2" >/dev/null ||
		fail "contents differ: $(diff -rq --no-dereference "$1" "$2" | head -n 5 | cat -v)"
}

same_file() {
	[ -f "$2" ] || fail "$2 is not there"
	cmp -s "$1" "$2" || fail "$1 and $2 differ"
}

absent() { [ ! -e "$1" ] && [ ! -L "$1" ] || fail "$1 is there"; }

# Free bytes where the cases run
free_bytes() { df -P -B1 "$tmp" | awk 'NR == 2 { print $4 }'; }
