# Sourced by the scripts that measure in laboratories: programs in lab $name, and sums over the logs of flow.

# Of tests/lab/lab, with one lab's name.
lab() { "$bin/lab" "$1" -n "$name" "${@:2}"; }
exec_in() { exec "$bin/lab" exec -n "$name" "$@"; } # in the background, so that $! is the command's
value() { sed -n "s/^$1.* $2=\([0-9.]*\).*/\1/p"; }
seconds() { echo "$EPOCHREALTIME"; }

# goodput FROM UNTIL LOG..: of all flows in the logs together, Mbit/s. Times are the monotonic
# clock's. SERIES=interval: from FROM on in such steps, separated by spaces.
goodput() {
	awk -v from="$1" -v until="$2" -v step="${SERIES:-0}" '
		/^at=/ {
			split($1, t, "="); split($2, s, "="); sum = 0
			for (i = split(s[2], b, ","); i > 0; i--) sum += b[i]
			k = ++count[FILENAME]; at[FILENAME, k] = t[2]; bytes[FILENAME, k] = sum
		}
		# Bytes of one log at a time, linear between its lines; none before the first.
		function upto(f, x, k, k0) {
			k = last[f] ? last[f] : 1
			while (k < count[f] && at[f, k] < x) k++
			last[f] = k
			if (at[f, k] <= x) return bytes[f, k]
			if (k == 1) return 0
			k0 = k - 1
			return bytes[f, k0] + (bytes[f, k] - bytes[f, k0]) * (x - at[f, k0]) / (at[f, k] - at[f, k0])
		}
		function total(x, f, sum) { sum = 0; for (f in count) sum += upto(f, x); return sum }
		END {
			form = step > 0 ? "%s%.3g" : "%s%.4g"
			if (until <= from) { print 0; exit } # or the steps would never end
			if (step == 0) step = until - from
			was = total(from)
			for (x = from + step; x <= until + 0.001; x += step) {
				is = total(x)
				printf form, (x > from + step + 0.001 ? " " : ""), (is - was) * 8e-6 / step
				was = is
			}
			print ""
		}' "${@:3}"
}

# When the first of some logs began and the last ended.
span() {
	awk -F'[= ]' -v i="$INTERVAL" '/^at=/ { if (!n++ || $2 < a) a = $2; if ($2 > b) b = $2 }
		END { if (n) print a - i, b }' "$@"
}

# held FROM UNTIL LOG..: what held the streams in the logs up: seconds that they existed, and of these
# busy, waiting for the receiver's window, and for their own buffers.
held() {
	awk -F'[= ]' -v from="$1" -v until="$2" '
		/^at=/ {
			streams[FILENAME] = split($4, unused, ",")
			for (i = 1; i <= 3; i++) {
				if ($2 <= from + 0.01) was[FILENAME, i] = $(4 + 2 * i)
				if ($2 <= until + 0.01) is[FILENAME, i] = $(4 + 2 * i)
			}
		}
		END {
			for (f in streams) {
				sum[0] += streams[f] * (until - from)
				for (i = 1; i <= 3; i++) sum[i] += is[f, i] - was[f, i]
			}
			printf "%.4g %.4g %.4g %.4g", sum[0], sum[1], sum[2], sum[3]
		}' "${@:3}"
}

export -f lab exec_in value seconds goodput span held
