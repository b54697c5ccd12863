# Completion of ptcp for bash. Commands and options are read from ptcp help.

_ptcp_commands() { ptcp help 2>/dev/null | sed -n 's/^  \([a-z]*\)  .*/\1/p'; }

# "--option" or "--option=VALUE" for each option of a command
_ptcp_options() {
	ptcp help "$1" 2>/dev/null | sed -n 's/^  [ -][^-]*\(--[a-z0-9-]*\)\( \([^ ]\{1,\}\)\)\{0,1\}\(  .*\)\{0,1\}$/\1=\3/p'
}

# known servers
_ptcp_hosts() {
	sed -n 's/^\([^# ]*\) .*/\1/p' "${XDG_CONFIG_HOME:-$HOME/.config}/ptcp/known_hosts" 2>/dev/null
}

_ptcp_running() { ptcp status -q 2>/dev/null | sed 's/  .*//'; }

_ptcp_values() {
	case $1 in
	--cipher) echo aes128gcm aes256gcm chacha20 none ;;
	--congestion) echo auto system cubic bbr reno ;;
	--log-level) echo error warn info debug ;;
	--fsync) echo none group file ;;
	--model) echo auto partial-quadratic fair-share quadratic linear ;;
	--method) echo direct best-path coordinated pipelined ;;
	--preserve) echo times mode links owner xattr setid all none ;;
	--streams) echo auto ;;
	esac
}

_ptcp() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} taker
	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ]; then
		COMPREPLY=($(compgen -W "$(_ptcp_commands) --help --version" -- "$cur"))
		return
	fi
	case $prev in
	--*)
		taker=$(_ptcp_options "$command" | grep -x -- "$prev=.\{1,\}")
		case $taker in
		*=DIR) COMPREPLY=($(compgen -d -- "$cur")) && return ;;
		*=*FILE* | *=CMD) COMPREPLY=($(compgen -f -- "$cur")) && return ;;
		?*) COMPREPLY=($(compgen -W "$(_ptcp_values "$prev")" -- "$cur")) && return ;;
		esac
		;;
	esac
	case $cur in
	-*)
		COMPREPLY=($(compgen -W "$(_ptcp_options "$command" | sed 's/=.*//') --help" -- "$cur"))
		return
		;;
	esac
	case $command in
	help) COMPREPLY=($(compgen -W "$(_ptcp_commands)" -- "$cur")) ;;
	key) COMPREPLY=($(compgen -W "show generate list install authorize revoke sign" -- "$cur")) ;;
	overlay) COMPREPLY=($(compgen -W "make $(_ptcp_hosts)" -- "$cur")) ;;
	rate) COMPREPLY=($(compgen -W "$(_ptcp_running)" -- "$cur")) ;;
	status) COMPREPLY=($(compgen -W "$(_ptcp_running) $(_ptcp_hosts)" -- "$cur")) ;;
	advise | measure | doctor) COMPREPLY=($(compgen -W "$(_ptcp_hosts)" -- "${cur#ptcp://}")) ;;
	send | recv | ls | du | mkdir | rm | mv)
		case $cur in
		# bash breaks words at colons: complete the part before the colon only
		ptcp) COMPREPLY=("ptcp://") ;;
		*) COMPREPLY=($(compgen -f -- "$cur") $(compgen -W "$(_ptcp_hosts | sed 's|.*|ptcp://&/|')" -- "$cur")) ;;
		esac
		;;
	*) COMPREPLY=($(compgen -f -- "$cur")) ;;
	esac
}

complete -o filenames -o nospace -F _ptcp ptcp
