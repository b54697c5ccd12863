# Sourced by tests of documents: what a reader of a page sees at 80 columns, and the commands in it.

# page FILE: as `man` shows it, or README.md
page() {
	case $1 in
	*.md) cat "$1" ;;
	*) "${renderer:-mandoc_page}" "$1" ;;
	esac
}
mandoc_page() { mandoc -Tascii -O width=80 "$1" | col -bx; }
groff_page() { groff -mdoc -Tascii -P-c -rLL=80n "$1" 2>/dev/null | col -bx; }

# shown FILE: a record for each command with a prompt that the page shows, ended by NUL: the prompt, a tab, the line above
# (the habit, in ptcp-habits(7)), a tab, the command as it is pasted into a shell: with the lines that continue it and its
# here document. README.md shows commands without a prompt, too. With another argument: the lines of commands that have
# more than 80 columns instead.
shown() {
	page "$1" | awk -v readme="${1##*/}" -v wide="${2-}" '
		{ line = $0; sub(/^ +/, "", line); indent = length($0) - length(line) }
		here != "" { text = text "\n" (indent > margin ? substr($0, margin + 1) : line); if (line == here) { here = ""; out() }; next }
		more { text = text "\n" $0; look(line); next }
		indent >= 4 && match(line, /^[a-z]*[$#] +/) {
			start(substr(line, 1, RLENGTH), substr(line, RLENGTH + 1)); next
		}
		readme == "README.md" && indent == 4 && line ~ /^(ptcp|make) / { start("$", line); next }
		line != "" { above = line }
		function start(p, command) {
			gsub(/ /, "", p); prompt = p; text = command; margin = indent; look(command)
		}
		function look(l) {
			if (wide && length($0) > 80) print $0
			more = l ~ /(\\|\|)$/
			if (match(l, /<<.[A-Z]+.$/)) here = substr(l, RSTART + 3, RLENGTH - 4)
			else if (!more) out()
		}
		function out() { if (!wide) printf "%s\t%s\t%s%c", prompt, above, text, 0 }'
}
