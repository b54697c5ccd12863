#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/timex.h>

#include "cli/doctor.h"
#include "core/units.h"

#define SYSCTL "/proc/sys/net/"
#define BUFFER_GOOD (32u << 20) /* of ESnet for 10 Gbit/s, 100 ms and parallel streams */
#define BUFFER_ADVISED (64u << 20)
#define BUFFER_BAD (1u << 20)
#define FDS_GOOD 4096           /* 128 streams and as many files, several times over */
#define FDS_BAD 512

/* min, default and max in one line; what autotuning may take is the last. */
static void look_buffer(struct doctor *d, const char *name, const char *sysctl, unsigned usual)
{
	uint64_t min, usually, most;
	char line[128], size[UNITS_TEXT_BYTES];
	struct finding *f;

	if (!doctor_read(d, line, sizeof line, SYSCTL "ipv4/%s", sysctl) ||
	    sscanf(line, "%" SCNu64 " %" SCNu64 " %" SCNu64, &min, &usually, &most) != 3)
		return;
	f = doctor_add(d, name, most >= BUFFER_GOOD ? VERDICT_OK : most >= BUFFER_BAD ? VERDICT_WARN : VERDICT_BAD,
	    (double)most, "bytes", "a stream may have %s", units_size_text(size, most));
	if (f->verdict != VERDICT_OK)
		doctor_mend(f, "sysctl -w net.ipv4.%s='4096 %u %u'", sysctl, usual, BUFFER_ADVISED);
}

/* What TCP cannot do without on any long path. */
static void look_options(struct doctor *d)
{
	static const char *const needed[] = { "tcp_window_scaling", "tcp_sack", "tcp_timestamps" };
	char line[32];
	struct finding *f;
	size_t i, n = 0;

	for (i = 0; i < 3; i++) {
		if (!doctor_read(d, line, sizeof line, SYSCTL "ipv4/%s", needed[i]))
			continue;
		n++;
		if (line[0] != '0')
			continue;
		f = doctor_add(d, "tcp-options", VERDICT_BAD, 0, NULL, "%s is off", needed[i]);
		doctor_mend(f, "sysctl -w net.ipv4.%s=1", needed[i]);
		return;
	}
	if (n == 3)
		doctor_add(d, "tcp-options", VERDICT_OK, 0, NULL, "window scaling, SACK and timestamps are on");
}

static void look_congestion(struct doctor *d)
{
	char line[32];
	struct finding *f;
	bool good;

	if (!doctor_read(d, line, sizeof line, SYSCTL "ipv4/tcp_congestion_control"))
		return;
	good = strcmp(line, "cubic") == 0 || strcmp(line, "bbr") == 0 || strcmp(line, "htcp") == 0;
	f = doctor_add(d, "congestion-control", good ? VERDICT_OK : VERDICT_WARN, 0, NULL, "%s", line);
	if (!good)
		doctor_mend(f, "sysctl -w net.ipv4.tcp_congestion_control=cubic");
}

static void look_qdisc(struct doctor *d)
{
	char line[32];
	struct finding *f;
	bool good;

	if (!doctor_read(d, line, sizeof line, SYSCTL "core/default_qdisc"))
		return;
	good = strcmp(line, "fq") == 0 || strcmp(line, "fq_codel") == 0 || strcmp(line, "cake") == 0;
	f = doctor_add(d, "default-qdisc", good ? VERDICT_OK : VERDICT_WARN, 0, NULL, "%s", line);
	if (!good)
		doctor_mend(f, "sysctl -w net.core.default_qdisc=fq (for interfaces that come up afterwards)");
}

static void look_fds(struct doctor *d)
{
	struct rlimit r;
	struct finding *f;

	if (getrlimit(RLIMIT_NOFILE, &r) < 0)
		return;
	f = doctor_add(d, "descriptors", r.rlim_max >= FDS_GOOD ? VERDICT_OK : r.rlim_max >= FDS_BAD ?
	    VERDICT_WARN : VERDICT_BAD, (double)r.rlim_max, "count", "%llu files and connections at most",
	    (unsigned long long)r.rlim_max);
	if (f->verdict != VERDICT_OK)
		doctor_mend(f, "ulimit -Hn 65536, as root before starting it; LimitNOFILE=65536 in a unit");
}

static void look_clock(struct doctor *d)
{
	static const char *const slow[] = { "hpet", "acpi_pm", "jiffies" };
	struct timex t = { .modes = 0 };
	char line[64];
	struct finding *f;
	size_t i;
	int r = adjtimex(&t);

	if (r >= 0) {
		f = doctor_add(d, "clock", r == TIME_ERROR ? VERDICT_WARN : VERDICT_OK, 0, NULL, "%s",
		    r == TIME_ERROR ? "not synchronised: times of files and logs may be wrong" : "synchronised");
		if (r == TIME_ERROR)
			doctor_mend(f, "timedatectl set-ntp true");
	}
	if (!doctor_read(d, line, sizeof line, "/sys/devices/system/clocksource/clocksource0/current_clocksource"))
		return;
	f = doctor_add(d, "clock-source", VERDICT_OK, 0, NULL, "%s", line);
	for (i = 0; i < sizeof slow / sizeof *slow; i++)
		if (strcmp(line, slow[i]) == 0) {
			f->verdict = VERDICT_WARN;
			doctor_mend(f, "echo tsc >/sys/devices/system/clocksource/clocksource0/current_clocksource "
			    "(asking for the time takes microseconds with %s)", slow[i]);
		}
}

static void look_governor(struct doctor *d)
{
	char line[64];
	struct finding *f;
	bool slow;

	if (!doctor_read(d, line, sizeof line, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"))
		return;
	slow = strcmp(line, "powersave") == 0 || strcmp(line, "conservative") == 0;
	f = doctor_add(d, "cpu-governor", slow ? VERDICT_WARN : VERDICT_OK, 0, NULL, "%s", line);
	if (slow)
		doctor_mend(f, "cpupower frequency-set -g performance");
}

void doctor_host(struct doctor *d)
{
	look_buffer(d, "receive-buffer", "tcp_rmem", 131072);
	look_buffer(d, "send-buffer", "tcp_wmem", 65536);
	look_options(d);
	look_congestion(d);
	look_qdisc(d);
	look_fds(d);
	look_clock(d);
	look_governor(d);
}
