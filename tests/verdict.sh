# Sourced by scripts that judge sources and documents, and print TAP.
#
#   verdict FAULTS NAME   "ok NAME" if the text FAULTS is empty, otherwise "not ok NAME" and the faults
#   judged                last line of a script, whose status is 1 after a "not ok"

faulty=0
verdict() {
	if [ -z "$1" ]; then
		echo "ok $2"
	else
		faulty=1
		echo "not ok $2"
		sed 's/^/#   /' <<<"$1"
	fi
}

judged() { exit "$faulty"; }
