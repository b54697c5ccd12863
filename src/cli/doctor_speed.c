#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "cli/doctor.h"
#include "core/clock.h"
#include "core/err.h"
#include "core/text.h"
#include "core/units.h"

#define SECONDS 0.2              /* for each cipher, and the hash */
#define CORE_GOOD_BPS 4e9        /* a core that does less slows 10 Gbit/s on the usual number of cores */
#define DISK_BYTES (512u << 20)
#define DISK_SECONDS 2.0         /* for each of writing and reading */
#define DISK_BLOCK (4u << 20)
#define DISK_GOOD_BPS 1e9
#define DISK_BAD_BPS 2e8

/* ---- Processor ---- */

static struct finding *add_rate(struct doctor *d, const char *name, double bps, double good, double bad,
    const char *more)
{
	char rate[UNITS_TEXT_BYTES];

	return doctor_add(d, name, bps >= good ? VERDICT_OK : bps >= bad ? VERDICT_WARN : VERDICT_BAD, bps, "bps",
	    "%s%s", units_rate_text(rate, bps), more);
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
	f = add_rate(d, "aes128gcm", aes, CORE_GOOD_BPS, 0, " a core");
	if (f->verdict != VERDICT_OK && chacha > aes)
		doctor_mend(f, "ptcp send --cipher chacha20 .. (it is faster here)");
	else if (f->verdict != VERDICT_OK)
		doctor_mend(f, "look for what else uses the processor (top); where grep -w aes /proc/cpuinfo finds nothing, "
		    "a virtual machine may hide the instructions for AES");
	add_rate(d, "chacha20", chacha, 0, 0, " a core");
	f = add_rate(d, "xxh3", hash, 2 * CORE_GOOD_BPS, 0, " a core");
	if (f->verdict != VERDICT_OK)
		doctor_mend(f, "look for what else uses the processor (top), and at its governor");
	return 0;
}

/* ---- Disk ---- */

static double seconds_since(struct mono start)
{
	return (double)mono_diff_ns(mono_now(), start) / 1e9;
}

/* Bytes of the file that were written and are on the disk, and how fast. */
static int write_some(int fd, char *block, uint64_t most, uint64_t *bytes, double *bps)
{
	struct mono start = mono_now();
	ssize_t r;

	for (*bytes = 0; *bytes < most && seconds_since(start) < DISK_SECONDS; *bytes += (uint64_t)r) {
		memcpy(block, bytes, sizeof *bytes); /* no two blocks are the same */
		if ((r = write(fd, block, DISK_BLOCK)) < 0)
			return -1;
	}
	if (fdatasync(fd) < 0)
		return -1;
	*bps = (double)*bytes * 8 / seconds_since(start);
	return 0;
}

static int read_some(int fd, char *block, double *bps)
{
	struct mono start;
	uint64_t bytes = 0;
	ssize_t r = 0;

	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); /* it is on the disk; let it be read from there */
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -1;
	for (start = mono_now(); seconds_since(start) < DISK_SECONDS && (r = read(fd, block, DISK_BLOCK)) > 0;)
		bytes += (uint64_t)r;
	if (r < 0)
		return -1;
	*bps = (double)bytes * 8 / seconds_since(start);
	return 0;
}

/* A file that is gone whatever happens, with most bytes that it may have. */
static int open_temp(const char *dir, uint64_t *most)
{
	char path[PTCP_PATH_BYTES + 32];
	struct statvfs v;
	int fd;

	if (statvfs(dir, &v) < 0)
		return -1;
	*most = (uint64_t)v.f_bavail * v.f_frsize / 8;
	*most = *most < DISK_BYTES ? *most / DISK_BLOCK * DISK_BLOCK : DISK_BYTES;
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

int doctor_disk(struct doctor *d, const char *dir, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES], *block = malloc(DISK_BLOCK);
	double in, out;
	uint64_t most, bytes;
	struct finding *f;
	int fd = -1, r = 0;

	text_escape(shown, sizeof shown, dir);
	if (block == NULL)
		return err_nomem(e);
	memset(block, 0x5a, DISK_BLOCK);
	if ((fd = open_temp(dir, &most)) < 0 && (errno == EACCES || errno == EPERM || errno == EROFS)) {
		f = doctor_add(d, "disk-write", VERDICT_WARN, 0, NULL, "not measured: writing in %.100s: %s", shown,
		    strerror(errno));
		doctor_mend(f, "name the directory that files go to with --dir");
	} else if (fd < 0) {
		r = err_sys(e, PTCP_EIO, "a temporary file in %s", shown);
	} else if (most == 0) {
		f = doctor_add(d, "disk-write", VERDICT_BAD, 0, NULL, "no room in %.100s", shown);
		doctor_mend(f, "make room, or name another directory with --dir");
	} else if (write_some(fd, block, most, &bytes, &in) < 0 || read_some(fd, block, &out) < 0) {
		r = err_sys(e, PTCP_EIO, "a temporary file in %s", shown);
	} else {
		f = add_rate(d, "disk-write", in, DISK_GOOD_BPS, DISK_BAD_BPS, "");
		if (f->verdict != VERDICT_OK)
			doctor_mend(f, "iostat -x 1 while it is written; files cannot arrive faster than this");
		f = add_rate(d, "disk-read", out, DISK_GOOD_BPS, DISK_BAD_BPS, "");
		if (f->verdict != VERDICT_OK)
			doctor_mend(f, "blockdev --setra 16384 DEVICE; files cannot leave faster than this");
	}
	if (fd >= 0)
		close(fd);
	free(block);
	return r;
}
