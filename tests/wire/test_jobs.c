/* GRANT and the frames of errands.
 * against: arithmetic */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "check.h"

#define CHECK(cases, check) check(cases, sizeof cases / sizeof *cases)

/* ---- GRANT ---- */

static void count_up(uint8_t *out, uint8_t from, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		out[i] = (uint8_t)(from + i);
}

static const uint8_t some_certificates[] = { 1, 0, 0xff, 0xa5, 0xa5, 0xa5, 0xa5, 0xa5 };

static struct wire_grant a_grant(void)
{
	struct wire_grant g = { .mode = WIRE_GRANT_WRITE, .expiry_s = 0x6553f100, .path = text_span("in/run7"),
		.certificates = { some_certificates, sizeof some_certificates } };

	count_up(g.issuer, 0x10, sizeof g.issuer);
	count_up(g.grantee, 0x40, sizeof g.grantee);
	count_up(g.audience, 0x70, sizeof g.audience);
	count_up(g.nonce, 0xa0, sizeof g.nonce);
	count_up(g.signature, 0xc0, sizeof g.signature);
	return g;
}

static void grant_golden(void **state)
{
	const struct wire_grant g = a_grant();
	uint8_t f[WIRE_GRANT_MAX_BYTES];
	struct span in = check_golden("grant", f, wire_grant_encode(f, &g));
	struct wire_grant d;

	(void)state;
	assert_int_equal(wire_grant_decode(&d, in, NULL), 0);
	assert_memory_equal(d.issuer, g.issuer, sizeof g.issuer);
	assert_memory_equal(d.grantee, g.grantee, sizeof g.grantee);
	assert_memory_equal(d.audience, g.audience, sizeof g.audience);
	assert_int_equal(d.mode, WIRE_GRANT_WRITE);
	assert_int_equal(d.expiry_s, 0x6553f100);
	assert_memory_equal(d.nonce, g.nonce, sizeof g.nonce);
	assert_span(d.path, "in/run7");
	assert_int_equal(d.certificates.n, sizeof some_certificates);
	assert_memory_equal(d.certificates.p, some_certificates, sizeof some_certificates);
	assert_memory_equal(d.signature, g.signature, sizeof g.signature);
	drop(in);
}

/* The text that is signed: the prefix with its NUL, then the frame's fields up to the signature. */
static void grant_text(void **state)
{
	const struct wire_grant g = a_grant();
	uint8_t f[WIRE_GRANT_MAX_BYTES], text[WIRE_GRANT_TEXT_MAX_BYTES];
	size_t n = wire_grant_encode(f, &g);

	(void)state;
	assert_int_equal(wire_grant_text(text, &g), 14 + n - WIRE_HEADER_BYTES - 64);
	assert_memory_equal(text, "ptcp grant v1", 14);
	assert_memory_equal(text + 14, f + WIRE_HEADER_BYTES, n - WIRE_HEADER_BYTES - 64);
}

/* OPEN has a role from 1 to 4: a mode with the role 0 permits no session. */
static void grant_roles(void **state)
{
	unsigned mode;

	(void)state;
	assert_int_equal(wire_grant_role(WIRE_GRANT_READ), WIRE_ACCEPTOR_SENDS);
	assert_int_equal(wire_grant_role(WIRE_GRANT_WRITE), WIRE_ACCEPTOR_RECEIVES);
	assert_int_equal(wire_grant_role(WIRE_GRANT_PROBE), WIRE_ACCEPTOR_DISCARDS);
	for (mode = 0; mode <= UINT8_MAX; mode++)
		if (mode < WIRE_GRANT_READ || mode > WIRE_GRANT_PROBE)
			assert_int_equal(wire_grant_role((uint8_t)mode), 0);
}

static void grant_rules(void **state)
{
	static const struct patch cases[] = {
		{ "no mode", "grant", 96, "00", false },
		{ "reading", "grant", 96, "01", true },
		{ "measuring, with a path", "grant", 96, "03", false },
		{ "relaying", "grant", 96, "04", true },
		{ "an unknown mode", "grant", 96, "05", false },
		{ "never expires", "grant", 97, "ffffffffffffffff", true },
		{ "a path that is not there", "grant", 121, "0008", false },
		{ "a NUL in the path", "grant", 125, "00", false },
		{ "certificates that are not there", "grant", 130, "0009", false },
		{ "more certificates than a grant holds", "grant", 130, "0a71", false },
		{ "any other byte in the path", "grant", 125, "ff", true },
		{ "writing to the root itself", "grant-probe", 96, "02", true },
	};

	(void)state;
	CHECK(cases, check_patches);
}

static void grant_largest(void **state)
{
	uint8_t path[WIRE_PATH_MAX + 1], f[WIRE_GRANT_MAX_BYTES + 1];
	struct wire_grant g = a_grant();
	bool same;
	size_t n;

	(void)state;
	memset(path, 'x', sizeof path);
	memset(g.issuer, 0xff, sizeof g.issuer);
	g.expiry_s = UINT64_MAX;
	g.path = (struct span){ path, WIRE_PATH_MAX };
	g.certificates = (struct span){ path, WIRE_CERTIFICATES_MAX };
	n = wire_grant_encode(f, &g);
	assert_int_equal(n, WIRE_GRANT_MAX_BYTES);
	check_frame("largest GRANT", f, n);
	/* One byte of path more. */
	f[WIRE_HEADER_BYTES + 121] = 0x10;
	f[WIRE_HEADER_BYTES + 122] = 0x01;
	f[n] = 0;
	set_length(f, n + 1);
	assert_int_equal(recode_exact(f, n + 1, &same), PTCP_EPROTO);
}

/* ---- Errands ---- */

static const struct ptcp_progress some_progress = { 5000, 9000, 3, 7, 1, 4000, 3000, 1000, 4500, 2, 4, 8,
	PTCP_VERIFYING, true };

static void assert_progress(const struct ptcp_progress *p)
{
	assert_int_equal(p->bytes, 5000);
	assert_int_equal(p->total_bytes, 9000);
	assert_int_equal(p->files, 3);
	assert_int_equal(p->total_files, 7);
	assert_int_equal(p->failed, 1);
	assert_int_equal(p->wire_bytes, 4000);
	assert_int_equal(p->saved_bytes, 3000);
	assert_int_equal(p->resumed_bytes, 1000);
	assert_int_equal(p->file_bytes, 4500);
	assert_int_equal(p->others, 2);
	assert_int_equal(p->streams, 4);
	assert_int_equal(p->max_streams, 8);
	assert_int_equal(p->activity, PTCP_VERIFYING);
	assert_int_equal(p->total_known, 1);
}

static void job_golden(void **state)
{
	const struct wire_job e = { WIRE_JOB_DETACH | WIRE_JOB_FILES, 6, 7811, 30000, 600000, text_span("::1"),
		text_span("cubic"), 0 };
	uint8_t f[WIRE_JOB_MAX_BYTES];
	struct span in = check_golden("job", f, wire_job_encode(f, &e));
	struct wire_job d;

	(void)state;
	assert_int_equal(wire_job_decode(&d, in, NULL), 0);
	assert_int_equal(d.flags, WIRE_JOB_DETACH | WIRE_JOB_FILES);
	assert_int_equal(d.family, 6);
	assert_int_equal(d.port, 7811);
	assert_int_equal(d.timeout_ms, 30000);
	assert_int_equal(d.linger_ms, 600000);
	assert_span(d.host, "::1");
	assert_span(d.congestion, "cubic");
	drop(in);
}

static void job_with_rate(void **state)
{
	const struct wire_job e = { 0, 0, 1, 1, 0, text_span("b"), { NULL, 0 }, 20000000 };
	uint8_t f[WIRE_JOB_MAX_BYTES];
	struct span in = check_golden("job-rate", f, wire_job_encode(f, &e));
	struct wire_job d;

	(void)state;
	assert_int_equal(wire_job_decode(&d, in, NULL), 0);
	assert_int_equal(d.rate_bps, 20000000);
	drop(in);
}

static void job_rules(void **state)
{
	static const struct patch cases[] = {
		{ "an unknown flag", "job", 0, "04", false },
		{ "the least rate", "job-rate", 15, "0000000000002710", true },
		{ "one less", "job-rate", 15, "000000000000270f", false },
		{ "no limit", "job-rate", 15, "0000000000000000", true },
		{ "the largest rate", "job-rate", 15, "fffffffffffffffe", true },
		{ "a rate that means idle", "job-rate", 15, "ffffffffffffffff", false },
		{ "IPv4", "job", 1, "04", true },
		{ "any family", "job", 1, "00", true },
		{ "another family", "job", 1, "05", false },
		{ "no port", "job", 2, "0000", false },
		{ "no time", "job", 4, "00000000", false },
		{ "no host", "job-bare", 12, "00", false },
		{ "a host that is not there", "job", 12, "09", false },
		{ "a blank in the host", "job", 14, "20", false },
		{ "a control byte in the congestion control", "job", 17, "1b", false },
	};

	(void)state;
	CHECK(cases, check_patches);
}

static void started_golden(void **state)
{
	static const struct patch cases[] = {
		{ "no id", "started", 0, "0000000000000000", false },
		{ "no peer", "started", 8, "00", false },
		{ "a newline in the peer", "started", 9, "0a", false },
	};
	const struct wire_started s = { 0x0102030405060709, text_span("[::1]:7811") };
	uint8_t f[WIRE_STARTED_MAX_BYTES];
	struct span in = check_golden("started", f, wire_started_encode(f, &s));
	struct wire_started d;

	(void)state;
	assert_int_equal(wire_started_decode(&d, in, NULL), 0);
	assert_int_equal(d.id, 0x0102030405060709);
	assert_span(d.peer, "[::1]:7811");
	drop(in);
	CHECK(cases, check_patches);
}

static void progress_golden(void **state)
{
	static const struct patch cases[] = {
		{ "syncing", "progress", 84, "02", true },
		{ "an unknown activity", "progress", 84, "03", false },
		{ "known in part", "progress", 85, "02", false },
	};
	uint8_t f[WIRE_PROGRESS_MAX_BYTES];
	struct span in = check_golden("progress", f, wire_progress_encode(f, &some_progress));
	struct ptcp_progress d;

	(void)state;
	assert_int_equal(wire_progress_decode(&d, in, NULL), 0);
	assert_progress(&d);
	drop(in);
	CHECK(cases, check_patches);
}

static void event_golden(void **state)
{
	static const struct patch cases[] = {
		{ "no kind", "event-done", 0, "00", false },
		{ "an unknown kind", "event-done", 0, "06", false },
		{ "a NUL in the path", "event-done", 13, "00", false },
		{ "text that is not there", "event-done", 10, "0001", false },
	};
	const struct wire_event e = { WIRE_EVENT_FAILED, 0, 0, text_span("a/\xff"), { 13, 1, text_span("gone") } };
	const struct wire_event s = { WIRE_EVENT_STREAMS, 4, 3, { NULL, 0 }, { 0, 0, text_span("lost") } };
	uint8_t f[WIRE_EVENT_MAX_BYTES];
	struct span in = check_golden("event-failed", f, wire_event_encode(f, &e));
	struct wire_event d;

	(void)state;
	assert_int_equal(wire_event_decode(&d, in, NULL), 0);
	assert_int_equal(d.kind, WIRE_EVENT_FAILED);
	assert_int_equal(d.why.code, 13);
	assert_span(d.path, "a/\xff");
	assert_span(d.why.text, "gone");
	drop(in);
	in = check_golden("event-streams", f, wire_event_encode(f, &s));
	assert_int_equal(wire_event_decode(&d, in, NULL), 0);
	assert_int_equal(d.from, 4);
	assert_int_equal(d.to, 3);
	drop(in);
	CHECK(cases, check_patches);
}

static void status_golden(void **state)
{
	static const struct patch cases[] = {
		{ "to be ended, and which is not said", "status", 0, "0000000000000000", false },
		{ "neither yes nor no", "status", 8, "02", false },
	};
	const struct wire_status s = { 0x0102030405060709, 1 };
	uint8_t f[WIRE_STATUS_MAX_BYTES];
	struct span in = check_golden("status", f, wire_status_encode(f, &s));
	struct wire_status d;

	(void)state;
	assert_int_equal(wire_status_decode(&d, in, NULL), 0);
	assert_int_equal(d.id, 0x0102030405060709);
	assert_int_equal(d.cancel, 1);
	drop(in);
	CHECK(cases, check_patches);
}

static void clean_golden(void **state)
{
	static const struct patch cases[] = {
		{ "neither dry nor not", "clean", 8, "02", false },
		{ "a path that is not there", "clean", 9, "0004", false },
		{ "a NUL in the path", "clean", 11, "00", false },
		{ "a NUL in a leftover's path", "leftover", 23, "00", false },
		{ "any byte in its text", "leftover", 26, "1b", true },
		{ "a text without a code", "leftover", 16, "0000", false },
		{ "any cause", "leftover", 18, "ff", true },
		{ "a text that is not there", "leftover", 21, "0005", false },
		{ "neither the last nor not", "cleaned", 40, "02", false },
		{ "no leftovers", "leftovers", 0, "0000000000000000", false },
	};
	const struct wire_clean c = { 86400000, 1, text_span("in/") };
	const struct wire_leftover l = { 5000, 86400001, text_span("a/\xff"), { 13, 3, text_span("gone") } };
	const struct wire_leftovers left = { 3, 5000, 86400001 };
	struct wire_leftovers dleft;
	const struct wire_cleaned t = { 3, 5000, 2, 1, 7, 1 };
	uint8_t f[WIRE_LEFTOVER_MAX_BYTES];
	struct wire_clean dc;
	struct wire_leftover dl;
	struct wire_cleaned dt;
	struct span in;

	(void)state;
	in = check_golden("clean", f, wire_clean_encode(f, &c));
	assert_int_equal(wire_clean_decode(&dc, in, NULL), 0);
	assert_true(dc.older_ms == 86400000 && dc.dry_run == 1);
	assert_span(dc.path, "in/");
	drop(in);
	in = check_golden("leftover", f, wire_leftover_encode(f, &l));
	assert_int_equal(wire_leftover_decode(&dl, in, NULL), 0);
	assert_true(dl.bytes == 5000 && dl.age_ms == 86400001);
	assert_span(dl.path, "a/\xff");
	assert_span(dl.why.text, "gone");
	drop(in);
	in = check_golden("cleaned", f, wire_cleaned_encode(f, &t));
	assert_int_equal(wire_cleaned_decode(&dt, in, NULL), 0);
	assert_true(dt.files == 3 && dt.bytes == 5000 && dt.in_use == 2 && dt.recent == 1 &&
	    dt.failed == 7 && dt.final == 1);
	drop(in);
	in = check_golden("leftovers", f, wire_leftovers_encode(f, &left));
	assert_int_equal(wire_leftovers_decode(&dleft, in, NULL), 0);
	assert_true(dleft.files == 3 && dleft.bytes == 5000 && dleft.age_ms == 86400001);
	drop(in);
	CHECK(cases, check_patches);
}

static void manage_golden(void **state)
{
	static const struct patch cases[] = {
		{ "no operation", "manage", 0, "00", false },
		{ "an operation that is none", "manage", 0, "08", false },
		{ "flags of another operation", "manage", 0, "04", false },
		{ "a flag that is none", "manage", 1, "40", false },
		{ "no path", "manage", 2, "0000", false },
		{ "a path that is not there", "manage", 2, "0003", false },
		{ "bytes behind the paths", "manage", 2, "0001", false },
		{ "a path with a flag", "manage", 4, "01", false },
		{ "a NUL in a path", "manage", 7, "00", false },
		{ "a rename of one path", "manage-rename", 2, "0001", false },
		{ "without replacing", "manage-rename", 1, "00", true },
		{ "two paths to be made", "manage-rename", 0, "0308", true },
		{ "a type that is none", "listed", 0, "08", false },
		{ "neither a type nor a failure", "listed", 0, "00", false },
		{ "a mode that is none", "listed", 4, "1000", false },
		{ "a second of 10^9 ns", "listed", 38, "3b9aca00", false },
		{ "a NUL in a listed path", "listed", 48, "00", false },
		{ "a NUL in a target", "listed", 57, "00", false },
		{ "a text without a code", "listed-failed", 1, "0000", false },
		{ "any byte in the text", "listed-failed", 51, "1b", true },
		{ "neither the last nor not", "managed", 48, "02", false },
	};
	static const uint8_t paths[] = { 0, 0, 3, 'a', '/', 0xff, 0, 0, 0 };
	const struct wire_manage m = { WIRE_MANAGE_LIST, WIRE_MANAGE_RECURSIVE | WIRE_MANAGE_HIDDEN |
		WIRE_MANAGE_ITSELF, 2,
		{ paths, sizeof paths } };
	const struct wire_listed l = { WIRE_LISTED_SYMLINK, 07755, 5000, 8192, 0, -1, 999999999,
		text_span("a/a/b/c/\xff"), text_span("../x"), { 0, 0, { NULL, 0 } } };
	const struct wire_managed t = { 3, 5000, 8192, 7, 65536, 131072, 1 };
	uint8_t f[WIRE_LISTED_MAX_BYTES];
	struct wire_manage dm;
	struct wire_listed dl;
	struct wire_managed dt;
	struct span in;

	(void)state;
	in = check_golden("manage", f, wire_manage_encode(f, &m));
	assert_int_equal(wire_manage_decode(&dm, in, NULL), 0);
	assert_true(dm.op == WIRE_MANAGE_LIST && dm.flags == 7 && dm.n_paths == 2 && dm.paths.n == sizeof paths);
	drop(in);
	in = check_golden("listed", f, wire_listed_encode(f, &l));
	assert_int_equal(wire_listed_decode(&dl, in, NULL), 0);
	assert_true(dl.type == WIRE_LISTED_SYMLINK && dl.why.code == 0 && dl.mode == 07755 && dl.bytes == 5000 &&
	    dl.disk_bytes == 8192 && dl.entries == 0 && dl.mtime_s == -1 && dl.mtime_ns == 999999999 &&
	    dl.why.text.n == 0);
	assert_span(dl.path, "a/a/b/c/\xff");
	assert_span(dl.target, "../x");
	drop(in);
	in = check_golden("managed", f, wire_managed_encode(f, &t));
	assert_int_equal(wire_managed_decode(&dt, in, NULL), 0);
	assert_true(dt.entries == 3 && dt.bytes == 5000 && dt.disk_bytes == 8192 && dt.failed == 7 &&
	    dt.quota_used_bytes == 65536 && dt.quota_bytes == 131072 && dt.final == 1);
	drop(in);
	CHECK(cases, check_patches);
}

static void write_golden(void **state)
{
	static const struct patch cases[] = {
		{ "a flag that is none", "write", 0, "08", false },
		{ "a way of syncing that is none", "write", 1, "03", false },
		{ "a mode above 0777", "write", 2, "0200", false },
		{ "a mode without its flag", "write", 0, "00", false },
		{ "too large a file", "write", 4, "00100001", false },
		{ "a second of 10^9 ns", "write", 16, "3b9aca00", false },
		{ "seconds of the time of writing", "write", 16, "ffffffff", false },
		{ "a NUL in the path", "write", 23, "00", false },
		{ "a space in the version", "write", 26, "20", false },
		{ "a version of a new file", "write", 0, "05", false },
	};
	const struct wire_write w = { WIRE_WRITE_MODE, WIRE_FSYNC_NONE, 0644, 5, -1, 999999999, text_span("a/\xff"),
		text_span("1@0.0") };
	const struct wire_write now = { .flags = WIRE_WRITE_EXCLUSIVE, .size_bytes = WIRE_WRITE_MAX,
		.mtime_ns = WIRE_WRITE_NOW, .path = text_span("a") };
	uint8_t f[WIRE_WRITE_MAX_BYTES];

	(void)state;
	drop(check_golden("write", f, wire_write_encode(f, &w)));
	drop(check_golden("write-now", f, wire_write_encode(f, &now)));
	check_patches(cases, sizeof cases / sizeof *cases);
}

static void read_golden(void **state)
{
	static const struct patch cases[] = {
		{ "no range", "read", 0, "0000", false },
		{ "a range that is not there", "read", 0, "0003", false },
		{ "more ranges than a request has", "read", 0, "0801", false },
		{ "bytes behind the ranges", "read", 0, "0001", false },
		{ "a path that is not there", "read", 2, "ffff", false },
		{ "a NUL in the path", "read", 4, "00", false },
		{ "any numbers in a range", "read", 7, "ffffffffffffffff 8000000000000000", true },
	};
	uint8_t ranges[2 * WIRE_RANGE_BYTES], f[WIRE_READ_MAX_BYTES];
	const struct wire_range r[2] = { { 0, 16 }, { -8, WIRE_RANGE_REST } };
	struct wire_read q = { 2, text_span("a/\xff"), { ranges, sizeof ranges } }, d;
	struct wire_range got;
	struct span in;

	(void)state;
	wire_range_encode(ranges, &r[0]);
	wire_range_encode(ranges + WIRE_RANGE_BYTES, &r[1]);
	assert_int_equal(WIRE_READ_MAX_BYTES - WIRE_HEADER_BYTES,
	    4 + WIRE_PATH_MAX + WIRE_RANGES_MAX * WIRE_RANGE_BYTES);
	in = check_golden("read", f, wire_read_encode(f, &q));
	assert_int_equal(wire_read_decode(&d, in, NULL), 0);
	assert_int_equal(d.n_ranges, 2);
	assert_span(d.path, "a/\xff");
	got = wire_range_next(&d.ranges);
	assert_true(got.start == 0 && got.end == 16);
	got = wire_range_next(&d.ranges);
	assert_true(got.start == -8 && got.end == INT64_MAX && d.ranges.n == 0);
	drop(in);
	CHECK(cases, check_patches);
}

static void sum_golden(void **state)
{
	static const struct patch cases[] = {
		{ "a flag that is none", "sum", 0, "02", false },
		{ "no digest", "sum", 1, "0000", false },
		{ "a digest that is none", "sum", 1, "0100", false },
		{ "all digests", "sum", 1, "00ff", true },
		{ "no path", "sum", 19, "0000", false },
		{ "a path that is not there", "sum", 19, "0002", false },
		{ "a path with a flag", "sum", 21, "01", false },
		{ "bytes behind the paths", "sum", 22, "0002", false },
		{ "a NUL in a path", "sum", 24, "00", false },
	};
	static const uint8_t paths[] = { 0, 0, 3, 'a', '/', 0xff };
	const struct wire_sum q = { WIRE_MANAGE_RECURSIVE, 0x81, 16, -8, 1, { paths, sizeof paths } };
	uint8_t f[WIRE_SUM_MAX_BYTES];
	struct wire_sum d;
	struct span in;

	(void)state;
	in = check_golden("sum", f, wire_sum_encode(f, &q));
	assert_int_equal(wire_sum_decode(&d, in, NULL), 0);
	assert_true(d.flags == WIRE_MANAGE_RECURSIVE && d.digests == 0x81 && d.start == 16 && d.end == -8 &&
	    d.n_paths == 1 && d.paths.n == sizeof paths);
	drop(in);
	CHECK(cases, check_patches);
}

/* Where Python begins or ends a slice. */
static int64_t slice_place(int64_t n, int64_t size) { return n < -size ? 0 : n < 0 ? n + size : n; }

/* All pairs of some numbers in files of some sizes, against one byte after the other. */
static void range_clip(void **state)
{
	static const int64_t n[] = { INT64_MIN, INT64_MIN + 1, -7, -6, -5, -4, -1, 0, 1, 3, 4, 5, 6, INT64_MAX - 1,
		INT64_MAX };
	const size_t count = sizeof n / sizeof *n;
	uint64_t size, from, first, bytes, got;
	size_t i, k;
	int64_t at;

	(void)state;
	for (size = 0; size < 7; size++)
		for (i = 0; i < count; i++)
			for (k = 0; k < count; k++) {
				const struct wire_range r = { n[i], n[k] };

				for (at = 0, first = bytes = 0; at < (int64_t)size; at++)
					if (at >= slice_place(n[i], (int64_t)size) &&
					    at < slice_place(n[k], (int64_t)size)) {
						first = bytes == 0 ? (uint64_t)at : first;
						bytes++;
					}
				got = wire_range_clip(r, size, &from);
				assert_int_equal(got, bytes);
				assert_true(bytes == 0 || from == first);
			}
	assert_int_equal(wire_range_clip((struct wire_range){ -1, INT64_MAX }, WIRE_FILE_MAX, &from), 1);
	assert_int_equal(from, WIRE_FILE_MAX - 1);
}

static void state_golden(void **state)
{
	static const struct patch cases[] = {
		{ "no id", "state", 0, "0000000000000000", false },
		{ "an unknown state", "state", 8, "03", false },
		{ "a mode that is none", "state", 9, "04", false },
		{ "no port", "state", 13, "0000", false },
		{ "a progress that is none", "state", 116, "02", false },
		{ "a host that is not there", "state", 117, "ff", false },
		{ "a control byte in the host", "state", 124, "07", false },
		{ "a NUL in a path", "state", 125, "00", false },
	};
	const struct wire_state s = { 0x0102030405060709, WIRE_STATE_OVER, WIRE_GRANT_WRITE, 7811, 61000,
		59000, some_progress, text_span("b"), text_span("a/b"), text_span("in"), { 14, 8, text_span("full") } };
	uint8_t f[WIRE_STATE_MAX_BYTES];
	struct span in = check_golden("state", f, wire_state_encode(f, &s));
	struct wire_state d;

	(void)state;
	assert_int_equal(wire_state_decode(&d, in, NULL), 0);
	assert_int_equal(d.id, 0x0102030405060709);
	assert_int_equal(d.kind, WIRE_STATE_OVER);
	assert_int_equal(d.mode, WIRE_GRANT_WRITE);
	assert_int_equal(d.why.code, 14);
	assert_int_equal(d.port, 7811);
	assert_int_equal(d.age_ms, 61000);
	assert_int_equal(d.took_ms, 59000);
	assert_progress(&d.progress);
	assert_span(d.host, "b");
	assert_span(d.from, "a/b");
	assert_span(d.to, "in");
	assert_span(d.why.text, "full");
	drop(in);
	CHECK(cases, check_patches);
}

static void probe_golden(void **state)
{
	static const struct patch cases[] = {
		{ "no streams", "probe", 0, "0000", false },
		{ "no messages", "probe", 2, "0000", false },
		{ "the most messages", "probe", 2, "0400", true },
		{ "too many messages", "probe", 2, "0401", false },
	};
	const struct wire_probe s = { 4, 16, 1, 30000 };
	uint8_t f[WIRE_PROBE_MAX_BYTES];
	struct span in = check_golden("probe", f, wire_probe_encode(f, &s));
	struct wire_probe d;

	(void)state;
	assert_int_equal(wire_probe_decode(&d, in, NULL), 0);
	assert_int_equal(d.streams, 4);
	assert_int_equal(d.messages, 16);
	assert_int_equal(d.cipher, 1);
	drop(in);
	CHECK(cases, check_patches);
}

static void sample_golden(void **state)
{
	static const struct patch cases[] = {
		{ "a message of nothing", "sample", 0, "0000000000000000", false },
		{ "in no time", "sample", 8, "0000000000000000", false },
		{ "no round trip yet", "sample", 16, "0000000000000000", true },
	};
	const struct wire_sample s = { 1 << 20, 900000000, 40000000 };
	uint8_t f[WIRE_SAMPLE_MAX_BYTES];
	struct span in = check_golden("sample", f, wire_sample_encode(f, &s));
	struct wire_sample d;

	(void)state;
	assert_int_equal(wire_sample_decode(&d, in, NULL), 0);
	assert_int_equal(d.bytes, 1 << 20);
	assert_int_equal(d.delay_ns, 900000000);
	assert_int_equal(d.round_trip_ns, 40000000);
	drop(in);
	CHECK(cases, check_patches);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grant_golden),
		cmocka_unit_test(grant_text),
		cmocka_unit_test(grant_roles), cmocka_unit_test(grant_rules),
		cmocka_unit_test(grant_largest),
		cmocka_unit_test(job_golden), cmocka_unit_test(job_with_rate),
		cmocka_unit_test(job_rules),
		cmocka_unit_test(started_golden),
		cmocka_unit_test(progress_golden),
		cmocka_unit_test(event_golden),
		cmocka_unit_test(status_golden),
		cmocka_unit_test(clean_golden),
		cmocka_unit_test(manage_golden), cmocka_unit_test(read_golden), cmocka_unit_test(sum_golden),
		cmocka_unit_test(write_golden),
		cmocka_unit_test(range_clip),
		cmocka_unit_test(state_golden),
		cmocka_unit_test(probe_golden),
		cmocka_unit_test(sample_golden),
	};

	return cmocka_run_group_tests_name("wire/jobs", tests, NULL, NULL);
}
