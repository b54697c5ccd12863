# Completion of ptcp for bash.

# COMMAND~OPTION~LETTER~VALUE~HELP (contrib/completions/table.c)
_ptcp_table() {
	cat <<'END'
@TABLE@
END
}

_ptcp_commands() { _ptcp_table | sed -n 's/^\([^~]*\)~~.*/\1/p'; }
_ptcp_options() { _ptcp_table | sed -n "s/^$1~\([^~]\{1,\}\)~.*/--\1/p"; }

# _ptcp_value_of COMMAND OPTION: the value that a long or short option takes, as the help shows the value
_ptcp_value_of() {
	case $2 in
	--*) _ptcp_table | sed -n "s/^$1~${2#--}~[^~]*~\([^~]*\)~.*/\1/p" ;;
	-?) _ptcp_table | sed -n "s/^$1~[^~]*~${2#-}~\([^~]*\)~.*/\1/p" ;;
	esac
}

# Known servers.
_ptcp_hosts() {
	sed -n 's/^\([^# ]*\) .*/\1/p' "${XDG_CONFIG_HOME:-$HOME/.config}/ptcp/known_hosts" 2>/dev/null
}

# Names that the settings of ssh mention, but patterns.
_ptcp_ssh_hosts() {
	sed -n 's/^[[:space:]]*[Hh]ost[ =]\{1,\}//p' ~/.ssh/config 2>/dev/null | tr -s ' ' '\n' | grep -v '[*?!]'
}

_ptcp_running() { ptcp status -q 2>/dev/null | sed 's/  .*//'; }

# The words of a value such as "N|auto", and names where the value is a host.
_ptcp_words() {
	local part parts
	IFS='|' read -ra parts <<<"${1%,..}"
	for part in "${parts[@]}"; do
		case $part in
		[[:lower:]]*) echo "$part" ;;
		HOST) _ptcp_hosts && _ptcp_ssh_hosts ;;
		RELAY*) echo direct && _ptcp_hosts ;;
		esac
	done
}

# _ptcp_files compgen-option TEXT: files for which readline appends slashes to folders
_ptcp_files() {
	compopt -o filenames 2>/dev/null
	mapfile -t COMPREPLY < <(compgen "$1" -- "$2")
}

# _ptcp_value VALUE TEXT
_ptcp_value() {
	local before=
	case $1 in
	DIR) _ptcp_files -d "$2" ;;
	FILE* | PATH) _ptcp_files -f "$2" ;;
	CMD | COMMAND) mapfile -t COMPREPLY < <(compgen -c -- "$2" | sort -u) ;;
	*,..*)
		[[ $2 == *,* ]] && before=${2%,*},
		compopt -o nospace 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -P "$before" -W "$(_ptcp_words "$1")" -- "${2##*,}")
		;;
	*) mapfile -t COMPREPLY < <(compgen -W "$(_ptcp_words "$1")" -- "$2") ;;
	esac
}

_ptcp_operand() {
	local words=
	case $1 in
	help) words=$(_ptcp_commands) ;;
	key) words="show generate list install authorize revoke sign" ;;
	overlay) words="make $(_ptcp_hosts)" ;;
	rate) words=$(_ptcp_running) ;;
	status) words="$(_ptcp_running) $(_ptcp_hosts)" ;;
	advise | measure | doctor) words="$(_ptcp_hosts) $(_ptcp_ssh_hosts)" ;;
	send | recv | ls | du | mkdir | rm | mv)
		words="$(_ptcp_hosts | sed 's|.*|ptcp://&/|') $(_ptcp_ssh_hosts | sed 's|$|:|')"
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$2")
		if [ ${#COMPREPLY[@]} -gt 0 ]; then
			compopt -o nospace 2>/dev/null
			COMPREPLY+=($(compgen -f -- "$2"))
			return
		fi
		;;
	esac
	if [ -n "$words" ]; then
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$2")
		[ ${#COMPREPLY[@]} -gt 0 ] && return
	fi
	_ptcp_files -f "$2"
}

_ptcp() {
	local line=${COMP_LINE:0:COMP_POINT} words command text option value broken i
	COMPREPLY=()
	# bash breaks words at : and = (COMP_WORDBREAKS): read the words of the line instead
	read -ra words <<<"$line"
	[[ $line == *[[:space:]] ]] && words+=('')
	command=${words[1]} text=${words[${#words[@]} - 1]} option=${words[${#words[@]} - 2]}
	broken=$text
	if [ ${#words[@]} -le 2 ]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_ptcp_commands) --help --version" -- "$text")
		return
	fi
	case $text in
	--*=*) option=${text%%=*} text=${text#*=} ;;
	esac
	value=$(_ptcp_value_of "$command" "$option")
	case $broken in
	--*=*) _ptcp_value "$value" "$text" ;;
	*)
		if [ -n "$value" ]; then
			_ptcp_value "$value" "$text"
		elif [[ $text == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W "$(_ptcp_options "$command")" -- "$text")
		else
			_ptcp_operand "$command" "$text"
		fi
		;;
	esac
	# bash replaces only what is behind the last break
	for ((i = 0; i < ${#COMPREPLY[@]}; i++)); do
		[[ $text == *:* ]] && COMPREPLY[i]=${COMPREPLY[i]#"${text%"${text##*:}"}"}
	done
}

complete -F _ptcp ptcp
