# Servers of other programs, for benchmarks beside them; sourced. The caller sets before:
#   tmp       a temporary folder; the file $tmp/pids collects the processes to end
#   address   IPv4 address that the servers listen on
#   beside    array: command that runs a program on the servers' host (empty: this host)
#   meter     tests/bench/meter
#   memory, disk   folders that rsync serves as its modules
#   fail      function that prints its argument and ends the script
declare -A daemon # process IDs by name
missing=          # programs that are not installed

# launch NAME COMMAND...: in the background, to be ended with us
launch() {
	local name=$1
	shift
	"${beside[@]}" "$@" >"$tmp/$name.log" 2>&1 </dev/null &
	daemon[$name]=$!
	echo $! >>"$tmp/pids"
}

# await NAME PORT: until it takes connections
await() {
	local i
	for ((i = 0; i < 200; i++)); do
		"${beside[@]}" bash -c ': <>"/dev/tcp/$0/$1"' "$address" "$2" 2>/dev/null && return
		kill -0 "${daemon[$1]}" 2>/dev/null || break
		sleep 0.05
	done
	cat "$tmp/$1.log" >&2
	fail "the daemon for $1 does not start"
}

# have NAME PACKAGES COMMAND...: are they all there?
have() {
	local name=$1 packages=$2 c
	shift 2
	for c; do
		command -v "$c" >/dev/null && continue
		missing+="$name (Debian: $packages) "
		return 1
	done
}

start_scp() {
	have scp "openssh-client openssh-server" scp ssh sshd ssh-keygen || return
	local d=$tmp/ssh
	mkdir "$d"
	ssh-keygen -q -t ed25519 -N '' -f "$d/host" && ssh-keygen -q -t ed25519 -N '' -f "$d/user" ||
		fail "ssh-keygen"
	ssh_port=$("${beside[@]}" "$meter" port)
	cat >"$d/config" <<-END
		Port $ssh_port
		ListenAddress $address
		HostKey $d/host
		AuthorizedKeysFile $d/user.pub
		PidFile none
		StrictModes no
		UsePAM no
		PasswordAuthentication no
		PermitRootLogin prohibit-password
		Subsystem sftp internal-sftp
	END
	cat >"$d/client" <<-END
		Host *
		Port $ssh_port
		IdentityFile $d/user
		IdentitiesOnly yes
		IdentityAgent none
		UserKnownHostsFile /dev/null
		GlobalKnownHostsFile /dev/null
		StrictHostKeyChecking no
		LogLevel ERROR
	END
	# sshd insists on this one when it is root's
	if [ "$(id -u)" -eq 0 ] && mkdir -m 755 /run/sshd 2>/dev/null; then
		made_run_sshd=1
	fi
	launch scp "$(command -v sshd)" -D -e -f "$d/config"
	await scp "$ssh_port"
}

start_rsync() {
	have rsync rsync rsync || return
	rsync_port=$("${beside[@]}" "$meter" port)
	cat >"$tmp/rsyncd.conf" <<-END
		use chroot = no
		pid file = $tmp/rsyncd.pid
		read only = no
		uid = $(id -u)
		gid = $(id -g)
		[memory]
		path = $memory
		[disk]
		path = ${disk:-$memory}
	END
	launch rsync rsync --daemon --no-detach --address="$address" --port="$rsync_port" \
		--config="$tmp/rsyncd.conf"
	await rsync "$rsync_port"
}

# certificate NAME SUBJECT: signed by the throw-away CA
certificate() {
	openssl req -newkey rsa:2048 -nodes -keyout "$1.key" -subj "$2" -out "$1.csr" 2>/dev/null &&
		openssl x509 -req -in "$1.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \
			-out "$1.pem" 2>/dev/null && chmod 600 "$1.key" || fail "openssl"
}

start_globus() {
	have globus-url-copy "globus-gass-copy-progs globus-gridftp-server-progs" \
		globus-url-copy globus-gridftp-server || return
	local d=$tmp/globus hash root=()
	mkdir -p "$d/ca"
	cd "$d" || fail "$d"
	openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 \
		-subj "/O=ptcp bench/CN=CA" -addext basicConstraints=critical,CA:TRUE 2>/dev/null ||
		fail "openssl"
	certificate host "/O=ptcp bench/CN=localhost"
	certificate user "/O=ptcp bench/CN=user"
	hash=$(openssl x509 -in ca.pem -noout -hash)
	cp ca.pem "ca/$hash.0"
	cat >"ca/$hash.signing_policy" <<-END
		access_id_CA X509 '/O=ptcp bench/CN=CA'
		pos_rights globus CA:sign
		cond_subjects globus '"/O=ptcp bench/*"'
	END
	echo "\"/O=ptcp bench/CN=user\" $(id -un)" >gridmap
	: >config
	globus_port=$("${beside[@]}" "$meter" port)
	[ "$(id -u)" -eq 0 ] && root=(-allow-root)
	launch globus env GLOBUS_HOSTNAME="$address" X509_CERT_DIR="$d/ca" X509_USER_CERT="$d/host.pem" X509_USER_KEY="$d/host.key" \
		GRIDMAP="$d/gridmap" globus-gridftp-server -no-detach -c "$d/config" "${root[@]}" \
		-p "$globus_port" -control-interface "$address" -data-interface "$address" \
		-disable-usage-stats -log-level error
	await globus "$globus_port"
	cd - >/dev/null
}
