#!/bin/bash
# A site of three hosts: nftables lets only ports 22 and 7811 in, on each host. Two users of each host send, receive,
# collect and measure at the same time, through a real sshd and the shared port of the services, beside a client of a
# service itself. The services are restarted in between, and a third local user attacks socket, labels and descriptors.
# Users are made for the test, in the password file of a mount namespace of its own.
if [ -z "${OWN_MOUNTS:-}" ] && [ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null; then
	OWN_MOUNTS=1 exec unshare -m "$0" "$@"
fi
. "$(dirname "$0")/lib.sh"

case $BUILD in /*) ;; *) BUILD=$PWD/$BUILD lab=$PWD/$lab bin=$PWD/$bin ;; esac
ptcp=$dir/bin/ptcp
skip() { echo "ok a site # SKIP $*" && exit 0; }
sshd=$(PATH=$PATH:/usr/sbin command -v sshd) || skip "sshd is not installed"
[ -x /usr/bin/python3 ] || skip "python3 is not installed"
nft=$(PATH=$PATH:/usr/sbin command -v nft) || skip "nft is not installed"
[ -n "${OWN_MOUNTS:-}" ] || skip "no mount namespace can be made here"
chmod 755 "$dir"
mkdir "$dir/bin"
cp "$BUILD/ptcp" "$BUILD/tests/e2e/launch" "$dir/bin/"

cat >"$dir/site.yaml" <<-'YAML'
	# Three hosts with users of their own.
	hosts: { a: , b: , c: }
	routers: [middle]
	links:
	  a: { between: [a, middle], rate: 200Mbit/s, delay: 1ms }
	  b: { between: [middle, b], rate: 200Mbit/s, delay: 1ms }
	  c: { between: [middle, c], rate: 200Mbit/s, delay: 1ms }
YAML
up "$dir/site.yaml"
hosts=(a b c)
declare -A addr fp service
for host in "${hosts[@]}"; do addr[$host]=$("$lab" addr "$host"); done

# ---- Users: ann and ben have accounts on each host, eve as well, and the services are svc's

cp /etc/passwd /etc/group /etc/shadow "$dir/" 2>/dev/null
declare -A uid
n=61230
for user in ann ben eve svc; do
	uid[$user]=$((n += 1))
	home=$dir/home-$user
	echo "lab-$user:x:$n:$n::$home:/bin/bash" >>"$dir/passwd"
	echo "lab-$user:x:$n:" >>"$dir/group"
	echo "lab-$user:*:19000::::::" >>"$dir/shadow"
	mkdir -p "$home/.ssh"
	ssh-keygen -q -t ed25519 -N '' -f "$home/.ssh/key" && cp "$home/.ssh/key.pub" "$home/.ssh/authorized_keys"
	chown -R $n:$n "$home"
	chmod -R go= "$home"
done
chmod 644 "$dir/passwd" "$dir/group"
for file in passwd group shadow; do
	mount --bind "$dir/$file" /etc/$file || skip "/etc/$file cannot be replaced here"
done

# by USER HOST COMMAND...: as that user there; EXEC=exec in the background: $! is the command
by() {
	local user=$1 host=$2
	shift 2
	${EXEC-} "$lab" exec "$host" setpriv --reuid "${uid[$user]}" --regid "${uid[$user]}" --clear-groups \
		env -C "$dir/home-$user" HOME="$dir/home-$user" XDG_CONFIG_HOME="$dir/home-$user/config-$host" \
		XDG_STATE_HOME="$dir/home-$user/state-$host" XDG_RUNTIME_DIR= "$@"
}

# ---- sshd, the service and a firewall on each host

mkdir -p /run/sshd
for host in "${hosts[@]}"; do
	mkdir -p "$dir/share-$host" "$dir/files-$host"
	chown "${uid[svc]}:${uid[svc]}" "$dir/share-$host" "$dir/files-$host"
	ssh-keygen -q -t ed25519 -N '' -f "$dir/host-$host"
	cat >"$dir/sshd_config-$host" <<-E
		Port 22
		HostKey $dir/host-$host
		PidFile none
		UsePAM no
		StrictModes no
		PasswordAuthentication no
		AuthorizedKeysFile .ssh/authorized_keys
		SetEnv PTCP_SHARE_SOCKET=$dir/share-$host/share.sock
		MaxStartups 100
	E
	"$lab" exec "$host" "$sshd" -D -e -f "$dir/sshd_config-$host" 2>"$dir/sshd-$host.err" &
	"$lab" exec "$host" "$nft" -f - <<-'NFT' || skip "nftables cannot be used here"
		table inet site {
			chain in {
				type filter hook input priority 0; policy drop;
				ct state established,related accept
				iifname lo accept
				icmp type { echo-request, destination-unreachable } accept
				tcp dport { 22, 7811 } accept
				counter name dropped drop
			}
			counter dropped { }
		}
	NFT
done
dropped() {
	for host in "${hosts[@]}"; do "$lab" exec "$host" "$nft" list counter inet site dropped; done |
		grep -oE 'packets [0-9]+' | awk '{ n += $2 } END { print n }'
}

# The service of a host, with a manager that keeps its socket, as ptcp.socket does.
for host in "${hosts[@]}"; do
	by svc "$host" "$ptcp" key authorize "$(as a "$ptcp" key show)" --name client
	EXEC=exec by svc "$host" env PTCP_SHARE_SOCKET="$dir/share-$host/share.sock" "$dir/bin/launch" -p 7811 -r 9 \
		"$dir/share-$host/notified" "$ptcp" serve --root "$dir/files-$host" --share-port --drain 2s --log-level info \
		--metrics "$dir/share-$host/ptcp.prom" >"$dir/svc-$host.where" 2>>"$dir/svc-$host.err" </dev/null &
	service[$host]=$!
done
ready() { grep -c 'READY=1' "$dir/share-$1/notified" 2>/dev/null; }
await_ready() { # TIMES
	local host i
	for host in "${hosts[@]}"; do
		for ((i = 0; i < 400; i++)); do
			[ "$(ready "$host")" = "$1" ] && continue 2
			sleep 0.05
		done
		echo "not ok the service of $host starts ($(tail -n 1 "$dir/svc-$host.err"))"
		exit 1
	done
}
await_ready 1
for host in "${hosts[@]}"; do read -r _ _ fp[$host] <"$dir/svc-$host.where"; done

# ---- Data: each user has some on each host

for user in ann ben; do
	for host in "${hosts[@]}"; do
		head -c 6000000 /dev/urandom >"$dir/home-$user/of-$host"
	done
	chown "${uid[$user]}" "$dir/home-$user"/of-*
done

next_of() { case $1 in a) echo b ;; b) echo c ;; c) echo a ;; esac; }

ssh_of() { # USER
	echo "ssh -q -i $dir/home-$1/.ssh/key -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -l lab-$1"
}

# start NAME USER HOST COMMAND ARGUMENT...: that user's command there, in the background; NAME.out, NAME.err, NAME.status
start() {
	local name=$1 user=$2 host=$3 command=$4 ssh=()
	shift 4
	[ "$command" = collect ] || ssh=(--ssh "$(ssh_of "$user")")
	(
		by "$user" "$host" timeout 100 "$ptcp" "$command" -v "${ssh[@]}" --remote-ptcp "$ptcp" "$@" >"$dir/$name.out" 2>"$dir/$name.err"
		echo $? >"$dir/$name.status"
	) &
	jobs+=($!)
	names+=("$name")
}

overlay() { # USER HOST: of the other two hosts
	local one other
	one=$(next_of "$2") other=$(next_of "$one")
	cat <<-YAML
		destination: $2
		hosts:
		  $2: {}
		  $one: {address: ${addr[$one]}, path: $dir/home-$1/of-$one, data: 6MB}
		  $other: {address: ${addr[$other]}, path: $dir/home-$1/of-$other, data: 6MB}
		links:
		  - {from: $one, to: $2, rate: 12Mbit/s}
		  - {from: $other, to: $2, rate: 12Mbit/s}
		launch: "$(ssh_of "$1") {host}"
	YAML
}

attack() { # for as long as transfers run: registrations of eve's own, garbage, stolen descriptors, labels of others
	by eve b /usr/bin/python3 - "$dir/share-b/share.sock" "$dir/stop" <<-'PY'
		import array, glob, os, re, socket, ssl, sys, time
		path, stop = sys.argv[1:]
		fds = array.array("i", [0, 1])
		got = seen = answers = 0
		context = ssl.create_default_context()
		context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
		context.set_alpn_protocols(["ptcp/1"])
		def guess(label):
		    try:
		        with socket.create_connection(("127.0.0.1", 7811), 2) as s, context.wrap_socket(s, server_hostname=label) as t:
		            return t.getpeercert(True)
		    except (OSError, ValueError):
		        return None
		while not os.path.exists(stop):
		    some = []
		    for text in (b"ptcp-share 1 " + b"0" * 64 + b"\n", b"\0" * 4096, b"ptcp-share 1 x\n", b"connection\n"):
		        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
		        s.settimeout(0.05)
		        try:
		            s.connect(path)
		            s.sendmsg([text], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
		            data, extra, _, _ = s.recvmsg(200, socket.CMSG_SPACE(64))
		            got += len(extra)
		        except OSError:
		            pass
		        some.append(s)
		    for s in some:
		        s.close()
		    for file in glob.glob("/proc/[0-9]*/cmdline") + glob.glob("/proc/[0-9]*/environ"):
		        try:
		            text = open(file, "rb").read()
		        except OSError:
		            continue
		        if b"ptcp" in text and b"python" not in text:
		            seen += len(re.findall(rb"\b[0-9a-f]{32}\b", text))
		    answers += guess("0123456789abcdef" * 2) != guess("fedcba9876543210" * 2)
		    time.sleep(0.01)
		print(got, seen, answers)
	PY
}
descriptors() { ls "/proc/$(pgrep -P "${service[b]}" -x ptcp)/fd" | wc -l; }

registered() { grep -hcE "share: event=registered user=(${uid[ann]}|${uid[ben]}) " "$dir"/svc-?.err | awk '{ n += $1 } END { print n }'; }

# ---- All at the same time, with a restart of the services

begin() {
	local host to
	for host in "${hosts[@]}"; do
		to=$(next_of "$host")
		start "send-$host" ann "$host" send --rate 12Mbit/s --streams 3 "$dir/home-ann/of-$host" "${addr[$to]}:sent-$host"
		start "recv-$host" ben "$host" recv --rate 12Mbit/s --streams 3 "${addr[$to]}:$dir/home-ben/of-$to" "$dir/home-ben/got-$host"
		by ben "$host" sh -c 'cat >$0 && chmod 600 $0' "overlay-$host.yaml" < <(overlay ben "$host")
		start "collect-$host" ben "$host" collect "overlay-$host.yaml" "$dir/home-ben/collected-$host"
		start "measure-$host" ann "$host" measure --streams 2 --rounds 2 --bytes-per-stream 2MB "ssh://${addr[$to]}"
	done
	(
		on a timeout 100 "$ptcp" send -v --rate 12Mbit/s --fingerprint "${fp[b]}" "$dir/home-ann/of-a" "ptcp://${addr[b]}/own" \
			>"$dir/own.out" 2>"$dir/own.err"
		echo $? >"$dir/own.status"
	) &
	jobs+=($!)
	names+=(own)
}

restart() {
	local host
	for host in "${hosts[@]}"; do kill -TERM "${service[$host]}"; done
	await_ready 2
}

ended() { # KIND: all commands of this kind have ended with 0
	local name
	for name in "${names[@]}"; do
		[[ $name != $1* ]] || [ "$(cat "$dir/$name.status")" = 0 ] || { tail -n 3 "$dir/$name.err" | sed "s/^/# $name: /" && return 1; }
	done
}

same() { # FORMAT: the files sent from or received from each host
	local host to
	for host in "${hosts[@]}"; do
		to=$(next_of "$host")
		case $1 in
		sent) cmp "$dir/home-ann/of-$host" "$dir/home-ann/sent-$host" || return ;;
		received) cmp "$dir/home-ben/of-$to" "$dir/home-ben/got-$host" || return ;;
		collected)
			cmp "$dir/home-ben/of-$to" "$dir/home-ben/collected-$host/$to/of-$to" || return
			to=$(next_of "$to")
			cmp "$dir/home-ben/of-$to" "$dir/home-ben/collected-$host/$to/of-$to" || return
			;;
		esac
	done
}

owners() {
	[ "$(find "$dir/home-ann" ! -user "${uid[ann]}" | wc -l)$(find "$dir/home-ben" ! -user "${uid[ben]}" | wc -l)" = 00 ] &&
		[ "$(stat -c %u "$dir/files-b/own")" = "${uid[svc]}" ]
}

at_once() {
	local job i jobs=() names=() before since=${EPOCHREALTIME/./}
	begin
	for ((i = 0; i < 400; i++)); do
		[ "$(registered)" -ge 12 ] && break
		sleep 0.05
	done
	ok "each session through SSH shares the port ($(registered))" [ "$(registered)" -ge 12 ]
	before=$(descriptors)
	attack >"$dir/eve.out" 2>"$dir/eve.err" &
	attacker=$!
	restart
	for job in "${jobs[@]}"; do wait "$job"; done
	echo "#> all at once took $(((${EPOCHREALTIME/./} - since) / 1000)) ms"
	ok "ann sends from each host" ended send
	ok "ben receives on each host" ended recv
	ok "ben collects on each host, from sources that ssh starts" ended collect
	ok "ann measures between all hosts" ended measure
	ok "a client of a service itself sends" ended own
	ok "nothing of what was sent is lost" same sent
	ok "nothing of what was received is lost" same received
	ok "nothing of what was collected is lost" same collected
	ok "nothing of the service's own client is lost" cmp "$dir/home-ann/of-a" "$dir/files-b/own"
	ok "files belong to the users who sent them" owners
	ok "no other port was tried" [ "$(dropped)" = 0 ]
	ok "no service has failed" [ "$(ready a)$(ready b)$(ready c)" = 222 ]
	touch "$dir/stop"
	wait $attacker
	sleep 0.5
	ok "the attacker's descriptors do not stay with the service ($before, then $(descriptors))" [ "$(descriptors)" -le $((before + 5)) ]
}

attacked() {
	ok "no descriptor, connection or label reached the third user ($(cat "$dir/eve.out"))" [ "$(cat "$dir/eve.out")" = "0 0 0" ]
	ok "the attacks were refused, and logged" grep -qE "share: event=refused user=${uid[eve]} " "$dir/svc-b.err"
	ok "the service still serves" on a timeout 20 "$ptcp" recv --quiet --fingerprint "${fp[b]}" "ptcp://${addr[b]}/own" "$dir/again"
	sleep 5.5
	ok "the metrics count refused registrations" grep -qE '^ptcp_shared_refused_total [1-9]' "$dir/share-b/ptcp.prom"
}

at_once
attacked
"$lab" exec a timeout 1 bash -c "echo >/dev/tcp/${addr[b]}/7812" 2>/dev/null
ok "the firewalls drop all else" [ "$(dropped)" -gt 0 ]
kill -KILL "${service[@]}"
wait "${service[@]}" 2>/dev/null || true
