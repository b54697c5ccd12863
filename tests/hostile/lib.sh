# Sourced by the scripts that attack a running ptcp, after tests/e2e/lib.sh: bad peers and how they are started.

hostile=$BUILD/tests/hostile/hostile

# client PORT CASE [ARGUMENT...]: a bad client, with the identity of the side $who (bad)
client_at() {
	local port=$1 name=$2
	shift 2
	timeout $((60 * PTCP_PATIENCE)) "$hostile" client "$name" "$(config "${who:-bad}")" "$port" "$@" || fail "hostile client $name $*"
}

# hold_client PORT CASE [ARGUMENT...]: the same, beside what follows, until release_client; it has said "open"
hold_client() {
	local port=$1 name=$2
	shift 2
	: >opened # of one before
	mkfifo hold
	timeout $((60 * PTCP_PATIENCE)) "$hostile" client "$name" "$(config "${who:-bad}")" "$port" "$@" <hold >opened 2>held.err &
	holder=$!
	exec 9>hold
	rm hold
	until_true 20 eval 'grep -q open opened || is_over "$holder"'
	grep -q open opened || fail "hostile client $name $*: $(cat held.err)"
}

release_client() {
	exec 9>&-
	wait "$holder" || fail "$(cat held.err)"
}

# server CASE [ARGUMENT...]: a bad server; sets $url and $fp to it, $bad_server to its process
server() {
	: >hostile.out
	timeout $((${LIMIT:-60} * PTCP_PATIENCE)) "$hostile" server "$1" "$(config bad)" "${@:2}" >hostile.out 2>hostile.err &
	bad_server=$!
	echo $bad_server >>"$tmp/pids"
	until_true 5 eval 'grep -q . hostile.out || is_over "$bad_server"'
	read -r port fp <hostile.out || fail "no bad server: $(cat hostile.err)"
	url=ptcp://127.0.0.1:$port
}

# The bad server got what it expected.
server_content() {
	wait "$bad_server" || fail "the bad server: $(cat hostile.err)"
}

# resident PID: kB of memory in use; no use asking a sanitizer
resident() { awk '/^VmRSS/ { print $2 }' "/proc/$1/status"; }
most_resident() { awk '/^VmHWM/ { print $2 }' "/proc/$1/status"; }
memory_is_plain() { case $BUILD in *-address | *-thread) return 1 ;; esac; }

no_control_bytes() {
	local f
	for f in "$@"; do
		! LC_ALL=C grep -qP '[\x00-\x08\x0b-\x1f\x7f\x9b]' "$f" || fail "control bytes in $f: $(cat -v "$f")"
	done
}
