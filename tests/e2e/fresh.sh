# Sourced by scripts, after lib.sh, that need a system which has never seen ptcp: namespaces of their own with private
# /etc, /usr/local, /srv and /var/lib/ptcp, and the loopback interface alone.

: "${CC:=cc}" "${SAN:=}"

# make in the sources, without the options of the make that runs the tests
make_here() { env -u MAKEFLAGS -u MFLAGS make -s -C "$here" "$@" BUILD="${BUILD#"$here"/}" SAN="$SAN" CC="$CC"; }

# What systemd would do: the command of the unit as its user, with its environment.
start_unit() {
	local unit=$1
	setting() { sed -n "s/^$1=//p" "$unit"; }
	install -d -o ptcp -g ptcp -m "$(setting StateDirectoryMode)" "/var/lib/$(setting StateDirectory)"
	setpriv --reuid="$(setting User)" --regid="$(setting Group)" --clear-groups --no-new-privs --bounding-set=-all \
		env -i PATH=/usr/bin:/bin $(setting Environment) $(setting ExecStart) >listening 2>serve.err &
	echo $! >>"$pids"
	until_true 10 grep -q . listening || fail "the service does not listen: $(cat serve.err)"
}

fresh_system() {
	local place
	mkdir fresh && { cp -a /etc fresh/etc 2>/dev/null || true; } # files of others may vanish meanwhile
	[ -s fresh/etc/passwd ] && mount --bind fresh/etc /etc || fail "mount"
	sed -i '/^ptcp:/d' /etc/passwd /etc/group /etc/shadow /etc/gshadow 2>/dev/null
	rm -rf /etc/ptcp /etc/ld.so.cache
	for place in /usr/local /srv /var/cache; do mount -t tmpfs -o mode=755 tmpfs $place || fail "mount $place"; done
	mkdir -m 755 fresh/lib
	[ ! -d /var/lib/ptcp ] || mount --bind fresh/lib /var/lib/ptcp
	ip link set lo up
	export PATH=/usr/local/bin:$PATH
	"$1"
}

# in_fresh_system FUNCTION: runs it there, or skips the case
in_fresh_system() {
	[ "$(id -u)" -eq 0 ] || skip "needs root for a mount namespace"
	unshare --mount --net --propagation private true 2>/dev/null || skip "no namespaces here"
	export -f $(compgen -A function)
	export tmp here BUILD PTCP pids PTCP_PATIENCE SAN CC sanitize dir
	unshare --mount --net --pid --mount-proc --fork --kill-child --propagation private bash -c "fresh_system $1" ||
		fail "status $?"
}
