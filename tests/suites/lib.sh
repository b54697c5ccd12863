# Sourced by the suites: judgments by programs of others, which not every machine has. Each suite prints TAP; what it needs and
# the machine does not have is a skip with the name of the package.
#
#   needs PROGRAM PACKAGE NAME..   skips the judgments NAME.. unless the program is installed
#   judge NAME COMMAND..           one judgment: the command's status; its output is printed after a failure only, its time always
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
: "${BUILD:=build}" "${CC:=cc}"
case $BUILD in /*) ;; *) BUILD=$PWD/$BUILD ;; esac
scratch=$BUILD/suites/$(basename "$0")
rm -rf "$scratch" && mkdir -p "$scratch" || exit 1
unset MAKEFLAGS MFLAGS MAKELEVEL T CASE SAN CFLAGS LONG JOBS TEST_TIMEOUT TIMES
jobs=-j$(nproc)
faulty=0
trap 'exit $faulty' EXIT

needs() {
	local program=$1 package=$2 name
	shift 2
	command -v "$program" >/dev/null && return
	for name; do echo "ok $name # SKIP $program is not installed (Debian: $package)"; done
	return 1
}

judge() {
	local name=$1 since=$SECONDS
	shift
	if "$@" >"$scratch/said" 2>&1 </dev/null; then
		echo "ok $name"
	else
		echo "not ok $name"
		faulty=1
		sed 's/^/# /' "$scratch/said" | tail -n 40
	fi
	echo "#> $((SECONDS - since)) s, $name"
}

# A Python of the suites with packages of PyPI, made once: python_with PACKAGE..
python=$BUILD/suites/venv/bin/python
python_with() {
	[ -x "$python" ] || python3 -m venv "${python%/bin/python}" >/dev/null 2>&1 || return
	"$python" -m pip install -q --disable-pip-version-check "$@" >/dev/null 2>&1
}
