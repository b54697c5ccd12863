# Sourced by the tests of a shared port, behind lib.sh and with the folder $root: a service that shares its port, and
# sessions through it.

cat >"$tmp/ssh" <<-'SH'
	#!/bin/bash
	# ssh OPTION.. -l USER [--] HOST COMMAND; HOME is that of USER
	case " $* " in *" -G "*) echo hostname 127.0.0.1; exit ;; esac
	user="$*" user=${user##* -l }
	user=${user%% *}
	far=${0%/*}/home-$user
	mkdir -p "$far" && cd "$far" || exit 1
	unset XDG_CONFIG_HOME XDG_STATE_HOME
	export HOME=$far SSH_CONNECTION='127.0.0.1 1 127.0.0.1 22'
	[ ! -s change ] || exec bash -c "${*: -1} 2>>err | sed -uE -f change"
	exec ${PTCP_AS-} ${*: -1} 2>>err
SH
chmod +x "$tmp/ssh"

# over COMMAND ARGUMENT...: the tool through that ssh
over() {
	local command=$1
	shift
	fp='' run "$command" --ssh "$tmp/ssh" --remote-ptcp "$PTCP" "$@"
}

# changed USER EXPRESSION: what sed makes of the lines of that user's servers; none: nothing
changed() {
	mkdir -p "$tmp/home-$1"
	echo "${2-}" >"$tmp/home-$1/change"
}

service() {
	export PTCP_SHARE_SOCKET=$PWD/share.sock
	serve service --root "$root" --share-port --log-level info "$@"
}

registrations() { grep -c 'share: event=registered' service.serve.err; }

# Until the service has seen the end of all registrations.
all_ended() {
	until_true 5 eval '[ "$(registrations)" -eq "$(grep -c "share: event=ended" service.serve.err)" ]' ||
		fail "still registered: $(cat service.serve.err)"
}

through() { grep -oE 'event=connected through=[a-z-]+' err | tail -n 1 | cut -d= -f3; }

expect_ok() { [ "$status" -eq 0 ] || fail "status $status: $(cat -v err)"; }
