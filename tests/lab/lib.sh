# Sourced by the scripts of laboratories: a lab that goes with the script, hosts with their own identity and state,
# servers on them, TAP lines, and what is measured again before it is a failure. All in the temporary folder $dir,
# which is removed at the end.

set -u
here=$(dirname "${BASH_SOURCE[0]}")
: "${BUILD:=build}"
bin=$BUILD/tests/lab lab=$BUILD/tests/lab/lab
dir=$(mktemp -d) || exit 1
export PTCP_LAB_DIR=$dir/labs # not in the way of labs that somebody works with
unset PTCP_LAB
failed=0
trap 'status=$?; "$lab" down -a >/dev/null; rm -rf "$dir"; [ $status -ne 0 ] || exit $failed' EXIT

ok() { # what happened: the rest is a command that has to succeed
	local name=$1
	shift
	if "$@"; then echo "ok $name"; else failed=1 && echo "not ok $name ($*)${measures-}" && told; fi
}
# timed ok ...: of what depends on time, and so may be repeated alone (tests/run)
timed() {
	local measures=' # measures time'
	"$@"
}
# What the last programs of this script said at their end
told() { ls -t "$dir"/*.out "$dir"/*.err 2>/dev/null | head -n 4 | xargs -r tail -qn 2 | sed 's/^/# /' | cut -c1-800; }

# Milliseconds for which emulators were kept from running
stalls() {
	local name
	for name in $("$lab" list | sed -n 's/ up .*//p'); do "$lab" stats -n "$name"; done |
		awk '/^emulator/ { for (i = 2; i <= NF; i++) if (split($i, f, "=") && f[1] == "stalled_ms") n += f[2] } END { printf "%d\n", n }'
}

# thrice FUNCTION [ARGUMENT...]: what a function measures and says of it with ok counts when all of it is as it
# should be, or the third time: neighbours take these machines away at times. Where emulators noticed that in each of
# three tries, for 3 % of the time, what is not as it should be says nothing. One at a time of each function.
thrice() {
	local lines=$dir/$1.tried try stall least=100 before began failed_before=$failed measures=' # measures time'
	for try in 1 2 3; do
		failed=$failed_before
		before=$(stalls) began=${EPOCHREALTIME/./}
		"$@" >"$lines"
		grep -q '^not ok' "$lines" || break
		stall=$((($(stalls) - before) * 100000 / (${EPOCHREALTIME/./} - began)))
		[ $stall -ge $least ] || least=$stall
		[ $try -eq 3 ] || sed -nE "s/^(#>|ok|not ok) /# try $try: &/p" "$lines"
	done
	if [ "$least" -ge 3 ]; then
		failed=$failed_before
		sed -i "s/^not \(ok .*\)/\1 # SKIP the machine was too busy (stall $least %)/" "$lines"
	fi
	cat "$lines"
}

within() { awk -v x="$1" -v a="$2" -v b="$3" 'BEGIN { exit !(x >= a && x <= b) }'; }
get() { "$BUILD/tests/e2e/jsonget" "$dir/$1.out" last "$2"; } # NAME FIELD: of the last line of NAME.out

# up TOPOLOGY|FILE [OPTION...]: a lab for as long as this script runs; without one the rest of the script is skipped
up() {
	local file=$here/topologies/$1.yaml
	[ -e "$file" ] || file=$1
	"$lab" up -w $$ "${@:2}" "$file" >"$dir/up" 2>&1
	case $? in
	0) ;;
	77) echo "ok labs # SKIP $(cat "$dir/up")" && exit 0 ;;
	*) echo "not ok labs: $(cat "$dir/up")" && exit 1 ;;
	esac
}

# as HOST COMMAND...: with that host's identity and state; on HOST COMMAND...: there, too (of lab $PTCP_LAB)
as() { env HOME="$dir/$1" XDG_CONFIG_HOME="$dir/$1" XDG_STATE_HOME="$dir/$1/state" "${@:2}"; }
on() { as "$1" "$lab" exec "$1" "${@:2}"; }
authorize() { as "$1" "$BUILD/ptcp" key authorize "$(as "$2" "$BUILD/ptcp" key show)"; } # SERVER CLIENT

# serve HOST [OPTION...]: a daemon there; sets $fp, its fingerprint
serve() {
	local log=$dir/${PTCP_LAB:-}$1 i
	: >"$log.serve"
	on "$1" "$BUILD/ptcp" serve "${@:2}" >"$log.serve" 2>"$log.serve.err" &
	for ((i = 0; i < 200; i++)); do
		read -r _ _ fp <"$log.serve" && return
		sleep 0.05
	done
	echo "not ok serve on $1: $(cat "$log.serve.err")"
	exit 1
}

# serve_relays SOURCE...: r serves $dir/root; a, b, c and d relay the sources to r. Makes $dir/large, of 1 GB, and sets
# $trusted, the options for all fingerprints, and $a, $b, $c and $d, the addresses
serve_relays() {
	local host source
	mkdir "$dir/root"
	truncate -s 1000000000 "$dir/large"
	head -c 500000000 /dev/urandom >"$dir/large"
	for host in r a b c d; do
		for source in "$@"; do authorize $host "$source"; done
	done
	serve r --root "$dir/root"
	trusted=(--fingerprint "$fp")
	for host in a b c d; do
		serve $host --relay-to "$("$lab" addr r)"
		trusted+=(--fingerprint "$fp")
		declare -g "$host=$("$lab" addr $host)"
	done
}
