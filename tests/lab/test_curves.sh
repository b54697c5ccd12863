#!/bin/bash
# lab-curves: medians over runs, marked runs left out, rows not measured twice.
. "$(dirname "$0")/lib.sh"
export OUT=$dir/out BUILD
curve() { grep "^$1," "$OUT/curves.csv"; }

mkdir "$OUT"
cat >"$OUT/runs.csv" <<-CSV
	scenario,cc,m,n,run,ours_mbps,ours_retrans,ours_fairness,cross_mbps,cross_retrans,cross_fairness,seconds,stalled_percent,late_percent,missed,mark
	2,reno,5,1,3,30,0,1,60,0,1,45,0.1,0.1,0,
	2,reno,5,1,1,10,0,1,80,0,1,45,0.1,0.1,0,
	2,reno,5,1,2,12,0,1,78,0,1,45,0.1,0.1,0,
	2,reno,5,2,1,99,0,1,1,0,1,45,9.0,0.1,0,marked
	2,reno,5,2,2,20,0,1,70,0,1,45,0.1,0.1,0,
	2,reno,5,2,3,24,0,1,66,0,1,45,0.1,0.1,0,
	2,reno,5,10,1,55,0,1,30,0,1,45,0.1,7.0,0,marked
CSV
"$here/curves" summary >"$dir/log" 2>&1
ok "the median of three, least and most" [ "$(curve 2,reno,5,1)" = 2,reno,5,1,3,12,10,30,78,60,80, ]
ok "a marked run does not count beside others" [ "$(curve 2,reno,5,2)" = 2,reno,5,2,2,22,20,24,68,66,70, ]
ok "alone it does, and is marked" [ "$(curve 2,reno,5,10)" = 2,reno,5,10,1,55,55,55,30,30,30,marked ]
ok "levels come in the order of numbers" [ "$(cut -d, -f4 "$OUT/curves.csv" | tr '\n' ' ')" = 'n 1 2 10 ' ]
if command -v gnuplot >/dev/null; then
	ok "there is a picture" grep -q '</svg>' "$OUT/scenario-2-m-5.svg"
else
	echo "ok there is a picture # SKIP no gnuplot"
fi

rm -rf "$OUT"
measure() { # STALL_LIMIT N
	SCENARIOS=2 CCS=cubic MS=1 NS=$2 RUNS=1 WARM=1 TIME=1 JOBS=1 STALL_LIMIT=$1 LATE_LIMIT=100 \
		"$here/curves" >"$dir/log" 2>&1
}
"$BUILD/tests/lab/lab" up -n try -w $$ "$here/topologies/pair.yaml" >"$dir/log" 2>&1
if [ $? -eq 77 ]; then
	echo "ok a point is measured # SKIP $(cat "$dir/log")"
	exit 0
fi
measure 100 2
row=$(sed -n 2p "$OUT/runs.csv")
ok "a point is measured" awk -F, -v r="$row" 'BEGIN { split(r, f); exit !(f[1] == 2 && f[6] > 0.3 && f[9] > 0.3 && f[6] + f[9] < 97) }'
ok "no run is marked below the limit" [ "${row##*,}" = '' ]
measure -1 "2 1"
ok "what is there is not measured once more" [ "$(grep -c ^2,cubic,1,2 "$OUT/runs.csv")" = 1 ]
ok "a run above the limit is marked" grep -q '^2,cubic,1,1,.*,marked$' "$OUT/runs.csv"
ok "its labs are down" [ "$("$BUILD/tests/lab/lab" list | cut -d' ' -f1)" = try ]
