#!/bin/bash
# A site of three hosts: nftables lets only ports 22 and 7811 in, on each host. Two users of host b send to
# it and receive from it, from hosts a and c at the same time, through a real sshd and the shared port of the
# service, beside a client of the service itself and a measurement. The service is restarted in between, and a third
# local user attacks
# socket, labels and descriptors. Users are made for the test, in the password file of a mount namespace of its own.
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
cp "$BUILD/ptcp" "$dir/bin/ptcp" 

cat >"$dir/site.yaml" <<-'YAML'
	# Two hosts of users and a host of the site.
	hosts: { a: , b: , c: }
	routers: [middle]
	links:
	  a: { between: [a, middle], rate: 100Mbit/s, delay: 1ms }
	  b: { between: [middle, b], rate: 100Mbit/s, delay: 1ms }
	  c: { between: [c, middle], rate: 100Mbit/s, delay: 1ms }
YAML
up "$dir/site.yaml"
b=$("$lab" addr b)

# ---- Users: ann and ben have accounts on b, eve as well, and the service is svc

cp /etc/passwd /etc/group /etc/shadow "$dir/" 2>/dev/null
n=0
for user in ann ben eve svc; do
	n=$((n + 1))
	echo "lab-$user:x:$((61230 + n)):$((61230 + n))::$dir/home-$user:/bin/bash" >>"$dir/passwd"
	echo "lab-$user:x:$((61230 + n)):" >>"$dir/group"
	echo "lab-$user:*:19000::::::" >>"$dir/shadow"
	mkdir -p "$dir/home-$user/.ssh" "$dir/keys"
	eval "$user=$((61230 + n))"
	for host in a c; do
		ssh-keygen -q -t ed25519 -N '' -f "$dir/keys/$user-$host" && cat "$dir/keys/$user-$host.pub" >>"$dir/home-$user/.ssh/authorized_keys"
	done
	chown -R $((61230 + n)):$((61230 + n)) "$dir/home-$user"
	chmod -R go= "$dir/home-$user"
done
chmod 644 "$dir/passwd" "$dir/group"
for file in passwd group shadow; do
	mount --bind "$dir/$file" /etc/$file || skip "/etc/$file cannot be replaced here"
done

# ---- sshd on b, the service, and a firewall on each host

mkdir -p /run/sshd "$dir/share" "$dir/files"
chown $svc:$svc "$dir/share" "$dir/files"
ssh-keygen -q -t ed25519 -N '' -f "$dir/keys/host"
cat >"$dir/sshd_config" <<-E
	Port 22
	HostKey $dir/keys/host
	PidFile none
	UsePAM no
	StrictModes no
	PasswordAuthentication no
	AuthorizedKeysFile .ssh/authorized_keys
	AcceptEnv PTCP_SHARE_SOCKET
	SetEnv PTCP_SHARE_SOCKET=$dir/share/share.sock
	MaxStartups 100
E
"$lab" exec b "$sshd" -D -e -f "$dir/sshd_config" 2>"$dir/sshd.err" &
sshd_pid=$!
for host in a b c; do
	"$lab" exec $host "$nft" -f - <<-'NFT' || skip "nftables cannot be used here"
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
dropped() { for host in a b c; do "$lab" exec $host "$nft" list counter inet site dropped; done | grep -oE 'packets [0-9]+' | awk '{ n += $2 } END { print n }'; }

service() {
	local i
	: >"$dir/svc.out"
	"$lab" exec b setpriv --reuid $svc --regid $svc --clear-groups env HOME="$dir/home-svc" XDG_CONFIG_HOME="$dir/home-svc/config" \
		XDG_STATE_HOME="$dir/home-svc/state" PTCP_SHARE_SOCKET="$dir/share/share.sock" "$ptcp" serve --root "$dir/files" \
		--share-port --log-level info --metrics "$dir/share/ptcp.prom" >"$dir/svc.out" 2>>"$dir/svc.err" </dev/null &
	service_pid=$!
	for ((i = 0; i < 200; i++)); do
		read -r _ _ fp <"$dir/svc.out" && return
		sleep 0.05
	done
	echo "not ok the service starts: $(cat "$dir/svc.err")"
	exit 1
}
service_key() { setpriv --reuid $svc --regid $svc --clear-groups env HOME="$dir/home-svc" XDG_CONFIG_HOME="$dir/home-svc/config" "$ptcp" key "$@"; }
for host in a c; do service_key authorize "$(as $host "$ptcp" key show)" --name client-$host; done
chown -R $svc:$svc "$dir/home-svc"
service

# from HOST USER NAME COMMAND ARGUMENT...: that user's command there, in the background; NAME.out and NAME.err
from() {
	local host=$1 user=$2 name=$3
	shift 3
	mkdir -p "$dir/$name" && (cd "$dir/$name" && on "$host" timeout 100 "$ptcp" "$1" \
		--ssh "ssh -q -i $dir/keys/$user-$host -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -l lab-$user" \
		--remote-ptcp "$ptcp" "${@:2}" >"$dir/$name.out" 2>"$dir/$name.err"; echo $? >"$dir/$name.status") &
	jobs+=($!)
}
status() {
	local job
	for job; do
		[ "$(cat "$dir/$job.status")" = 0 ] || { echo "# $job: $(tail -n 1 "$dir/$job.err")" && return 1; }
	done
}

for name in one two; do head -c 20000000 /dev/urandom >"$dir/$name"; done
cp "$dir/one" "$dir/home-ben/one" && chown $ben:$ben "$dir/home-ben/one"

# ---- Two users on each host at the same time; the service is restarted in between

attack() { # for as long as the transfers run: registrations of eve's own, garbage, and a flood of connections
	setpriv --reuid $eve --regid $eve --clear-groups /usr/bin/python3 - "$dir/share/share.sock" "$dir/stop" <<-'PY'
		import array, os, socket, sys, time
		path, stop = sys.argv[1:]
		fds = array.array("i", [0, 1])
		got = 0
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
		    time.sleep(0.002)
		print(got)
	PY
}

registered() { grep -cE "share: event=registered user=($ann|$ben) " "$dir/svc.err"; }

at_once() {
	local job jobs=() i
	from a ann send-a send --rate 25Mbit/s --streams 3 "$dir/one" "$b:sent-a"
	from c ann send-c send --rate 25Mbit/s --streams 3 "$dir/two" "$b:sent-c"
	from a ben recv-a recv --rate 25Mbit/s --streams 3 "$b:one" got
	from c ben recv-c recv --rate 25Mbit/s --streams 3 "$b:one" got
	(on a timeout 100 "$ptcp" send --rate 25Mbit/s --fingerprint "$fp" "$dir/one" "ptcp://$b/own" >"$dir/own.out" \
		2>"$dir/own.err"; echo $? >"$dir/own.status") &
	jobs+=($!)
	for ((i = 0; i < 200; i++)); do
		[ "$(registered)" -ge 4 ] && break
		sleep 0.05
	done
	ok "each session through SSH shares the port" [ "$(registered)" -ge 4 ]
	attack >"$dir/eve.out" 2>"$dir/eve.err" &
	on c timeout 60 "$ptcp" measure --fingerprint "$fp" --streams 2 --rounds 1 --bytes-per-stream 500kB "$b" \
		>"$dir/measure.out" 2>"$dir/measure.err"
	echo $? >"$dir/measure.status"
	kill -TERM $service_pid && wait $service_pid
	service
	for job in "${jobs[@]}"; do wait "$job"; done
	touch "$dir/stop"
	ok "ann sends from two hosts, ben receives on two, at the same time, with a restart of the service" status send-a send-c recv-a recv-c
	ok "a client of the service itself survives the restart" status own
	ok "host c measures beside them" status measure
	ok "nothing is lost" cmp "$dir/one" "$dir/home-ann/sent-a"
	ok "nor of the other host's" cmp "$dir/two" "$dir/home-ann/sent-c"
	ok "nor of what is received" cmp "$dir/one" "$dir/recv-a/got"
	ok "nor on the other host" cmp "$dir/one" "$dir/recv-c/got"
	ok "nor of the service's own client" cmp "$dir/one" "$dir/files/own"
	ok "files belong to the users who sent them" [ "$(stat -c %u "$dir/home-ann/sent-a" "$dir/home-ann/sent-c" "$dir/files/own" | tr '\n' ' ')" = "$ann $ann $svc " ]
}

attacked() {
	sleep 0.5
	ok "no descriptor and no connection reached the third user ($(cat "$dir/eve.out"))" [ "$(tail -n 1 "$dir/eve.out")" = 0 ]
	ok "the attacks were refused, and logged" grep -qE "share: event=refused user=$eve " "$dir/svc.err"
	ok "the service still serves" on a timeout 20 "$ptcp" recv --quiet --fingerprint "$fp" "ptcp://$b/own" "$dir/again"
	sleep 1.5
	ok "the metrics count registrations" grep -qE '^ptcp_shared_refused_total [1-9]' "$dir/share/ptcp.prom"
}

at_once
attacked
before=$(dropped)
"$lab" exec a timeout 1 bash -c "echo >/dev/tcp/$b/7812" 2>/dev/null
ok "the firewalls drop all else" [ "$(dropped)" -gt "$before" ]
kill -TERM $service_pid $sshd_pid 2>/dev/null
