#!/bin/sh
# What the shell of a remote host runs: starts the server of ptcp there, or a copy of ptcp that the client has sent. $1 is
# the version of the client. Without both, the script exchanges these lines with the client before it starts the copy:
#
#     host    ptcp-absent SYSTEM MACHINE   output of uname -sm; the host discards the first line of the client
#     client  install BYTES DIGEST         with the consent of the user: size and SHA-256, in hexadecimal digits, of an
#                                          executable for this system; or the client closes the pipe
#     host    ptcp-send                    the directory can be used; the client sends the executable, and nothing behind it
#     host    ptcp-installed               the copy runs and has its final name; the client repeats its first line
#     host    ptcp-cannot SENTENCE         instead of a line of the host: the sentence continues "the host cannot"
#
# The build joins the lines to a single one, without comments and indentation, and ssh passes that in single quotes: so
# each command ends with a semicolon, a comment has a line of its own, and the text has no single quote.
#
# The copy runs with all rights of this user. Each directory from the home on is therefore entered once, and examined as
# the working directory: another user could exchange a path between its examination and its use, and can change the name
# of nothing in a directory that only this user and root can write. `cd -P ./NAME` follows neither CDPATH nor the path by
# which the shell remembers its directory.
v=$1;
home=${HOME:-/nonexistent};
u=$(umask);
make=;
t=;
cannot() {
	echo "ptcp-cannot $*";
	exit 1;
};

# ours FILE TEXT: the file, TEXT in messages, belongs to this user or root, and no other user can change it
ours() {
	# shellcheck disable=SC2046 # fields: mode, links, owner ..
	set -- "$1" "$2" $(ls -ldn "$1");
	# shellcheck disable=SC3067 # dash, bash, busybox, ksh and zsh have it
	[ -O "$1" ] || [ "$5" = 0 ] || cannot "use $2: it belongs to another user";
	case $3 in
	?????-??-*) ;;
	*) cannot "use $2: other users can change it (chmod go-w)" ;;
	esac;
};

# no_link FILE TEXT
no_link() {
	if [ -h "$1" ]; then cannot "use $2: a symbolic link (remove it)"; fi;
};

# enter DIRECTORY TEXT: makes it the working directory
enter() {
	cd -P "$1" 2>/dev/null || cannot "enter the directory $2";
	ours . "$2";
};

# enter_all: the directory of the copy; with $make, missing directories are made. The home of some users has a link to
# another file system as its .cache.
enter_all() {
	at=$home;
	enter "$home" "$at";
	for name in .cache ptcp "$v"; do
		at=$at/$name;
		if [ "$name" != .cache ]; then no_link "./$name" "$at"; fi;
		[ -z "$make" ] || mkdir "./$name" 2>/dev/null || [ -d "./$name" ] || cannot "make the directory $at";
		enter "./$name" "$at";
	done;
};
clean() {
	rm -f "$t";
};

# `read` takes single bytes from a pipe, so that whatever follows a line remains for the next command. The first line is
# the greeting of the client, which the client repeats to an installed copy.
if command -v ptcp >/dev/null 2>&1; then exec ptcp serve --ephemeral; fi;
if [ ! -x "$home/.cache/ptcp/$v/ptcp" ]; then
	umask 077;
	echo "ptcp-absent $(uname -sm)";
	IFS= read -r go;
	read -r go size sum;
	if [ "$go" != install ]; then exit 127; fi;
	make=1;
fi;
enter_all;
if [ -n "$make" ]; then
	t=./.ptcp.$$;
	trap clean EXIT;
	trap "exit 1" HUP INT TERM;
	clean;
	: >"$t" || cannot "write to $at";
	echo ptcp-send;
	head -c "$size" >"$t" || cannot "write to $at";
	got=$({ sha256sum || shasum -a 256 || openssl dgst -sha256 -r; } <"$t" 2>/dev/null);
	got=${got%% *};
	[ -n "$got" ] || cannot "compute a SHA-256 digest: neither sha256sum, shasum nor openssl is there";
	[ "$got" = "$sum" ] || cannot "use the copy: its digest is $got, not $sum (run the same command again)";
	chmod 700 "$t" || cannot "make the copy executable";
	[ "$("$t" version 2>/dev/null)" = "ptcp $v" ] ||
		cannot "run programs in $at: not permitted, or of another architecture (is it mounted noexec?)";
	mv -f "$t" ./ptcp || cannot "rename the copy to $at/ptcp";
	trap - EXIT;
	echo ptcp-installed;
fi;
no_link ./ptcp "$at/ptcp";
ours ./ptcp "$at/ptcp";
# The server gets the umask of the user, which decides the modes of files.
umask "$u";
exec ./ptcp serve --ephemeral;
