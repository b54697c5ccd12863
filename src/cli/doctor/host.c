/* Examinations of this host: kernel settings, clock, descriptors, processor, disk. */
#include "cli/doctor/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/timex.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/err.h"
#include "core/fd.h"
#include "core/text.h"
#include "core/units.h"

#define SYSCTL "/proc/sys/net/"
#define CLOCKSOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"
#define BUFFER_GOOD (32u << 20) /* recommended by ESnet, for 10 Gbit/s, 100 ms and parallel streams */
#define BUFFER_ADVISED (64u << 20)
#define BUFFER_BAD (1u << 20)
#define FDS_GOOD 4096           /* several transfers of 128 streams and 128 files */
#define FDS_BAD 512
#define SECONDS 0.2              /* per cipher, and for the hash */
#define CORE_GOOD_BPS 4e9        /* below, few cores do not reach 10 Gbit/s */
#define DISK_BYTES (512u << 20)
#define DISK_SECONDS 2.0         /* per direction */
#define DISK_BLOCK (4u << 20)
#define DISK_GOOD_BPS 1e9
#define DISK_BAD_BPS 2e8

/* ---- Findings ---- */

const char *verdict_name(enum verdict v)
{
	static const char *const names[] = { "ok", "warn", "bad" };

	return names[v];
}

struct finding *doctor_add(struct doctor *d, const char *name, enum verdict v, double value,
    const char *unit, const char *fmt, ...)
{
	static struct finding beyond; /* never printed: FINDINGS_MAX is large enough */
	struct finding *f = d->n < FINDINGS_MAX ? &d->of[d->n++] : &beyond;
	va_list ap;

	*f = (struct finding){ .name = name, .verdict = v, .value = value, .unit = unit };
	va_start(ap, fmt);
	vsnprintf(f->found, sizeof f->found, fmt, ap);
	va_end(ap);
	return f;
}

void doctor_fix(struct finding *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(f->fix, sizeof f->fix, fmt, ap);
	va_end(ap);
}

bool doctor_read(const struct doctor *d, char *out, size_t cap, const char *fmt, ...)
{
	char path[512];
	size_t n;
	va_list ap;
	bool got;
	FILE *f;

	n = (size_t)snprintf(path, sizeof path, "%s", d->root);
	if (n >= sizeof path)
		return false;
	va_start(ap, fmt);
	vsnprintf(path + n, sizeof path - n, fmt, ap);
	va_end(ap);
	if ((f = fopen(path, "re")) == NULL)
		return false;
	got = fgets(out, (int)cap, f) != NULL;
	fclose(f);
	if (got)
		out[strcspn(out, "\n")] = '\0';
	return got;
}

/* ---- Kernel settings ---- */

uint64_t doctor_max_buffer(const struct doctor *d, const char *sysctl)
{
	char line[128];
	uint64_t max = 0;

	/* min, default, max */
	if (!doctor_read(d, line, sizeof line, SYSCTL "ipv4/%s", sysctl) || sscanf(line, "%*u %*u %" SCNu64, &max) != 1)
		return 0;
	return max;
}

static void examine_buffer(struct doctor *d, const char *name, const char *sysctl, unsigned usual)
{
	uint64_t max = doctor_max_buffer(d, sysctl);
	char size[UNITS_TEXT_BYTES];
	struct finding *f;

	if (max == 0)
		return;
	f = doctor_add(d, name, max >= BUFFER_GOOD ? VERDICT_OK : max >= BUFFER_BAD ? VERDICT_WARN : VERDICT_BAD,
	    (double)max, "bytes", "at most %s per stream", units_size_text(size, max));
	if (f->verdict != VERDICT_OK)
		doctor_fix(f, "sysctl -w net.ipv4.%s='4096 %u %u'", sysctl, usual, BUFFER_ADVISED);
}

/* TCP options that long paths require. */
static void examine_options(struct doctor *d)
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
		doctor_fix(f, "sysctl -w net.ipv4.%s=1", needed[i]);
		return;
	}
	if (n == 3)
		doctor_add(d, "tcp-options", VERDICT_OK, 0, NULL, "window scaling, SACK and timestamps are on");
}

/* Settings with known good or bad values. */
static void examine_values(struct doctor *d)
{
	static const struct {
		const char *name, *path, *values[3];
		bool good; /* the values are good, all other values are not; else vice versa */
		const char *fix;
	} settings[] = {
		{ "congestion-control", SYSCTL "ipv4/tcp_congestion_control", { "cubic", "bbr", "htcp" }, true,
		    "sysctl -w net.ipv4.tcp_congestion_control=cubic" },
		{ "default-qdisc", SYSCTL "core/default_qdisc", { "fq", "fq_codel", "cake" }, true,
		    "sysctl -w net.core.default_qdisc=fq (for interfaces configured afterwards)" },
		{ "clock-source", CLOCKSOURCE, { "hpet", "acpi_pm", "jiffies" }, false,
		    "echo tsc >" CLOCKSOURCE " (reading the time takes microseconds with the current source)" },
		{ "cpu-governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
		    { "powersave", "conservative", "" }, false, "cpupower frequency-set -g performance" },
	};
	char line[64];
	struct finding *f;
	bool listed;
	size_t i, k;

	for (i = 0; i < sizeof settings / sizeof *settings; i++) {
		if (!doctor_read(d, line, sizeof line, "%s", settings[i].path))
			continue;
		for (listed = false, k = 0; k < 3; k++)
			listed |= strcmp(line, settings[i].values[k]) == 0;
		f = doctor_add(d, settings[i].name, listed == settings[i].good ? VERDICT_OK : VERDICT_WARN, 0, NULL,
		    "%s", line);
		if (f->verdict != VERDICT_OK)
			doctor_fix(f, "%s", settings[i].fix);
	}
}

static void examine_fds(struct doctor *d)
{
	struct rlimit r;
	struct finding *f;

	if (getrlimit(RLIMIT_NOFILE, &r) < 0)
		return;
	f = doctor_add(d, "descriptors", r.rlim_max >= FDS_GOOD ? VERDICT_OK : r.rlim_max >= FDS_BAD ?
	    VERDICT_WARN : VERDICT_BAD, (double)r.rlim_max, "count", "at most %llu files and connections",
	    (unsigned long long)r.rlim_max);
	if (f->verdict != VERDICT_OK)
		doctor_fix(f, "ulimit -Hn 65536, as root before starting ptcp; LimitNOFILE=65536 in a unit");
}

static void examine_clock(struct doctor *d)
{
	struct timex t = { .modes = 0 };
	int r = adjtimex(&t);

	if (r == TIME_ERROR)
		doctor_fix(doctor_add(d, "clock", VERDICT_WARN, 0, NULL,
		    "not synchronized: times of files and logs may be wrong"), "timedatectl set-ntp true");
	else if (r >= 0)
		doctor_add(d, "clock", VERDICT_OK, 0, NULL, "synchronized");
}

void doctor_host(struct doctor *d)
{
	examine_buffer(d, "receive-buffer", "tcp_rmem", 131072);
	examine_buffer(d, "send-buffer", "tcp_wmem", 65536);
	examine_options(d);
	examine_values(d);
	examine_fds(d);
	examine_clock(d);
}

/* ---- Processor ---- */

static struct finding *add_rate(struct doctor *d, const char *name, double bps, double good, double bad,
    const char *more)
{
	char rate[UNITS_TEXT_BYTES];

	return doctor_add(d, name, bps >= good ? VERDICT_OK : bps >= bad ? VERDICT_WARN : VERDICT_BAD, bps, "bps",
	    "%s%s", units_rate_text(rate, bps), more);
}

/* Whether the first processor has all instructions with which OpenSSL 3.1 encrypts AES-GCM four blocks at a time. */
static bool has_vector_aes(const struct doctor *d)
{
	static const char *const needed[] = { " vaes", " vpclmulqdq", " avx512f", " avx512dq",
		" avx512bw", " avx512vl" };
	char path[128], line[8192];
	bool has = false;
	size_t i;
	FILE *f;

	snprintf(path, sizeof path, "%.100s/proc/cpuinfo", d->root);
	if ((f = fopen(path, "re")) == NULL)
		return false;
	while (!has && fgets(line, sizeof line, f) != NULL)
		has = strncmp(line, "flags", 5) == 0;
	fclose(f);
	for (i = 0; i < sizeof needed / sizeof needed[0]; i++)
		has = has && strstr(line, needed[i]) != NULL;
	return has;
}

static void examine_openssl(struct doctor *d)
{
	const char *version = ptcp_openssl_version();
	unsigned major, minor;

	if (sscanf(version, "%u.%u", &major, &minor) != 2 || !has_vector_aes(d))
		return;
	if (major > 3 || (major == 3 && minor >= 1))
		doctor_add(d, "openssl", VERDICT_OK, 0, NULL, "%s, uses the processor's vector AES", version);
	else
		doctor_fix(doctor_add(d, "openssl", VERDICT_WARN, 0, NULL,
		    "%s encrypts AES at about half the speed of this processor: no vector AES before 3.1", version),
		    "run ptcp on a system with OpenSSL 3.1 or later, such as Debian 13 or RHEL 9.5");
}

int doctor_speed(struct doctor *d, struct ptcp_err *e)
{
	double aes, chacha, hash;
	struct finding *f;
	int r;

	if ((r = ptcp_cipher_speed(PTCP_CIPHER_AES128GCM, SECONDS, &aes, e)) < 0 ||
	    (r = ptcp_cipher_speed(PTCP_CIPHER_CHACHA20, SECONDS, &chacha, e)) < 0 ||
	    (r = ptcp_hash_speed(SECONDS, &hash, e)) < 0)
		return r;
	f = add_rate(d, "aes128gcm", aes, CORE_GOOD_BPS, 0, " per core");
	if (f->verdict != VERDICT_OK && chacha > aes)
		doctor_fix(f, "ptcp send --cipher chacha20 .. (faster on this host)");
	else if (f->verdict != VERDICT_OK)
		doctor_fix(f, "stop other processes that load the processor; give a virtual machine the AES "
		    "instructions of its host (qemu: -cpu host)");
	examine_openssl(d);
	add_rate(d, "chacha20", chacha, 0, 0, " per core");
	f = add_rate(d, "xxh3", hash, 2 * CORE_GOOD_BPS, 0, " per core");
	if (f->verdict != VERDICT_OK)
		doctor_fix(f, "stop other processes that load the processor; cpupower frequency-set -g performance");
	return 0;
}

/* ---- Disk ---- */

static double seconds_since(struct mono start)
{
	return (double)mono_diff_ns(mono_now(), start) / 1e9;
}

/* Writes and syncs up to `max` bytes. */
static int write_file(int fd, char *block, uint64_t max, double *bps)
{
	struct mono start = mono_now();
	uint64_t bytes;
	ssize_t r;

	for (bytes = 0; bytes < max && seconds_since(start) < DISK_SECONDS; bytes += (uint64_t)r) {
		memcpy(block, &bytes, sizeof bytes); /* makes each block different */
		if ((r = write(fd, block, DISK_BLOCK)) < 0)
			return -1;
	}
	if (fdatasync(fd) < 0)
		return -1;
	*bps = (double)bytes * 8 / seconds_since(start);
	return 0;
}

static int read_file(int fd, char *block, double *bps)
{
	struct mono start;
	uint64_t bytes = 0;
	ssize_t r = 0;

	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); /* read from the disk, not from the cache */
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -1;
	for (start = mono_now(); seconds_since(start) < DISK_SECONDS && (r = read(fd, block, DISK_BLOCK)) > 0;)
		bytes += (uint64_t)r;
	if (r < 0)
		return -1;
	*bps = (double)bytes * 8 / seconds_since(start);
	return 0;
}

/* Opens a temporary file without a name; *max: the size limit. */
static int open_temp(const char *dir, uint64_t *max)
{
	char path[PTCP_PATH_BYTES + 32];
	struct statvfs v;
	int fd;

	if (statvfs(dir, &v) < 0)
		return -1;
	*max = (uint64_t)v.f_bavail * v.f_frsize / 8;
	*max = *max < DISK_BYTES ? *max / DISK_BLOCK * DISK_BLOCK : DISK_BYTES;
	if ((fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)) >= 0 || errno != EOPNOTSUPP)
		return fd;
	if (snprintf(path, sizeof path, "%s/.ptcp-doctor.XXXXXX", dir) >= (int)sizeof path) {
		errno = ENAMETOOLONG;
		return -1;
	}
	if ((fd = mkostemp(path, O_CLOEXEC)) >= 0)
		unlink(path);
	return fd;
}

/* Name of the device with the directory, such as "sda1". False: not on a device, such as a network file system. */
static bool find_device(const struct doctor *d, const char *dir, char out[NAME_MAX + 1])
{
	char link[512], target[512];
	struct stat st;
	ssize_t n;

	if (stat(dir, &st) < 0)
		return false;
	snprintf(link, sizeof link, "%.200s/sys/dev/block/%u:%u", d->root, major(st.st_dev), minor(st.st_dev));
	if ((n = readlink(link, target, sizeof target - 1)) < 0)
		return false;
	target[n] = '\0';
	snprintf(out, NAME_MAX + 1, "%.*s", NAME_MAX, strrchr(target, '/') != NULL ? strrchr(target, '/') + 1 : target);
	return true;
}

void doctor_fix_reading(const struct doctor *d, struct finding *f, const char *dir)
{
	char device[NAME_MAX + 1];

	if (find_device(d, dir, device))
		doctor_fix(f, "blockdev --setra 16384 /dev/%.100s", device);
	else
		doctor_fix(f, "send from a directory on a faster disk: files cannot be sent faster");
}

int doctor_disk(struct doctor *d, const char *dir, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES], *block = malloc(DISK_BLOCK);
	double in, out;
	uint64_t max;
	struct finding *f;
	int fd = -1, r = 0;

	text_escape(shown, sizeof shown, dir);
	if (block == NULL)
		return err_nomem(e);
	memset(block, 0x5a, DISK_BLOCK);
	if ((fd = open_temp(dir, &max)) < 0 && (errno == EACCES || errno == EPERM || errno == EROFS)) {
		f = doctor_add(d, "disk-write", VERDICT_WARN, 0, NULL, "not measured: writing in %.100s: %s", shown,
		    strerror(errno));
		doctor_fix(f, "name the destination directory with --dir");
	} else if (fd < 0) {
		r = err_sys(e, PTCP_EIO, "a temporary file in %s", shown);
	} else if (max == 0) {
		f = doctor_add(d, "disk-write", VERDICT_BAD, 0, NULL, "no space in %.100s", shown);
		doctor_fix(f, "free disk space, or name a different directory with --dir");
	} else if (write_file(fd, block, max, &in) < 0 || read_file(fd, block, &out) < 0) {
		r = err_sys(e, PTCP_EIO, "a temporary file in %s", shown);
	} else {
		f = add_rate(d, "disk-write", in, DISK_GOOD_BPS, DISK_BAD_BPS, "");
		if (f->verdict != VERDICT_OK)
			doctor_fix(f, "receive into a directory on a faster disk: files cannot arrive faster");
		f = add_rate(d, "disk-read", out, DISK_GOOD_BPS, DISK_BAD_BPS, "");
		if (f->verdict != VERDICT_OK)
			doctor_fix_reading(d, f, dir);
	}
	fd_close(&fd);
	free(block);
	return r;
}
