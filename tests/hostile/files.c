/* Clients that request work on files as they should not, and servers that report nonsense about it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hostile.h"
#include "served.h"
#include "store/hash.h"
#include "wire/block.h"
#include "wire/jobs.h"

static struct span text(const char *s) { return (struct span){ (const uint8_t *)s, strlen(s) }; }

/* ---- Clients ---- */

/* OP FLAGS PATH... */
static struct peer *asks(unsigned port, char **arguments)
{
	struct wire_manage f = { .op = (uint8_t)atoi(arguments[0]), .flags = (uint8_t)atoi(arguments[1]) };
	uint8_t *out = malloc(WIRE_MANAGE_MAX_BYTES), *paths = malloc(WIRE_CONTROL_MAX);
	struct peer *p = peer_connect(port, ALPN_JOB);
	size_t n = 0;

	if (p == NULL || out == NULL || paths == NULL)
		die("no handshake");
	for (arguments += 2; arguments[f.n_paths] != NULL; f.n_paths++)
		n += wire_path_encode(paths + n, 0, text(arguments[f.n_paths]));
	f.paths = (struct span){ paths, n };
	peer_send(p, out, wire_manage_encode(out, &f));
	free(paths);
	free(out);
	return p;
}

/* CODE OP FLAGS PATH...: is refused. */
static void manages(unsigned port, char **arguments)
{
	struct peer *p = asks(port, arguments + 1);

	expect_error(p, (unsigned)atoi(arguments[0]));
	peer_close(p);
}

/* Waits for the end of an answer of failures alone. */
static void expect_nothing(struct peer *p)
{
	const struct frame *f;
	struct wire_managed m;
	struct wire_listed l;

	while ((f = peer_frame(p))->type == WIRE_LISTED || f->type == WIRE_MANAGED) {
		struct span in = { f->payload, f->n };

		if (f->type == WIRE_LISTED) {
			if (wire_listed_decode(&l, in, NULL) < 0 || l.why.code == 0)
				die("listed: %.*s", (int)l.path.n, (const char *)l.path.p);
		} else if (wire_managed_decode(&m, in, NULL) < 0 || m.entries > 0) {
			die("done: %llu", (unsigned long long)m.entries);
		} else if (m.final) {
			peer_close(p);
			return;
		}
	}
	die("%s came", frame_name(f->type));
}

/* OP FLAGS PATH...: each path fails, or lists nothing. */
static void manages_nothing(unsigned port, char **arguments) { expect_nothing(asks(port, arguments)); }

static void put_read(struct peer *p, const char *path, unsigned n_ranges)
{
	static uint8_t out[WIRE_READ_MAX_BYTES], ranges[WIRE_RANGES_MAX * WIRE_RANGE_BYTES];
	const struct wire_read f = { (uint16_t)n_ranges, text(path), { ranges, n_ranges * WIRE_RANGE_BYTES } };
	const struct wire_range all = { 0, WIRE_RANGE_REST };
	unsigned i;

	for (i = 0; i < n_ranges; i++)
		wire_range_encode(ranges + i * WIRE_RANGE_BYTES, &all);
	peer_send(p, out, wire_read_encode(out, &f));
}

static struct peer *reads(unsigned port, const char *path, unsigned n_ranges)
{
	struct peer *p = peer_connect(port, ALPN_JOB);

	if (p == NULL)
		die("no handshake");
	put_read(p, path, n_ranges);
	return p;
}

/* PATH...: none can be read. */
static void parts_nothing(unsigned port, char **arguments)
{
	for (; *arguments != NULL; arguments++)
		expect_nothing(reads(port, *arguments, 3));
}

/* CODE PATH: is refused. */
static void parts_refused(unsigned port, char **arguments)
{
	struct peer *p = reads(port, arguments[1], 1);

	expect_error(p, (unsigned)atoi(arguments[0]));
	peer_close(p);
}

/* N PATH: N requests for the whole file, as often as a request can name it, whose answers nobody reads. */
static void parts_unread(unsigned port, char **arguments)
{
	int i;

	for (i = 0; i < atoi(arguments[0]); i++)
		reads(port, arguments[1], WIRE_RANGES_MAX);
	hold();
}

/* PATH: one request behind the other without waiting, then malformed ones, then one that is left in the middle. */
static void parts_badly(unsigned port, char **arguments)
{
	static const struct { uint8_t n, bytes[24]; } bad[] = {
		{ 4, { 0, 0, 0, 0 } }, { 21, { 0, 1, 0, 1, 'x' } }, { 20, { 0, 2, 0, 1, 'x' } },
		{ 21, { 0, 1, 0, 1, '\0' } },
		{ 4, { 0xff, 0xff, 0xff, 0xff } },
	};
	struct peer *p;
	size_t i;

	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		if ((p = peer_connect(port, ALPN_JOB)) == NULL)
			die("no handshake");
		peer_send_raw(p, WIRE_READ, WIRE_CRITICAL, bad[i].bytes, i == 1 ? 20 : bad[i].n);
		if (i != 1) /* that one is whole */
			expect_error(p, 10);
		peer_close(p);
	}
	for (i = 0; i < 50; i++) {
		p = reads(port, arguments[0], WIRE_RANGES_MAX);
		if (i % 2 == 0)
			put_read(p, arguments[0], 1);
		peer_close(p);
	}
}

/* Malformed requests, answers as requests, a request behind a request, many requests that nobody waits for. */
static void manages_badly(unsigned port, char **arguments)
{
	static const struct { uint8_t n, bytes[12]; } bad[] = {
		{ 8, { 0, 0, 0, 1, 0, 0, 1, '/' } },                /* no operation */
		{ 8, { 8, 0, 0, 1, 0, 0, 1, '/' } },                /* one that is none */
		{ 8, { 1, 16, 0, 1, 0, 0, 1, '/' } },               /* a flag of another */
		{ 8, { 1, 0, 0, 2, 0, 0, 1, '/' } },                /* a path that is not there */
		{ 8, { 1, 0, 0, 1, 0, 0, 2, '/' } },                /* one that is too long */
		{ 8, { 1, 0, 0, 1, 2, 0, 1, '/' } },                /* a filter */
		{ 8, { 5, 0, 0, 1, 0, 0, 1, '/' } },                /* a rename without a new name */
		{ 8, { 1, 0, 0, 1, 0, 0, 1, '\0' } },               /* a NUL */
		{ 4, { 1, 0, 0, 0 } },                              /* no path at all */
	};
	static char *list[] = { "1", "1", "/", NULL };
	struct wire_managed t = { .final = 1 };
	uint8_t out[WIRE_MANAGED_MAX_BYTES];
	struct peer *p;
	size_t i;

	(void)arguments;
	for (i = 0; i <= sizeof bad / sizeof *bad; i++) {
		if ((p = peer_connect(port, ALPN_JOB)) == NULL)
			die("no handshake");
		if (i < sizeof bad / sizeof *bad)
			peer_send_raw(p, WIRE_MANAGE, WIRE_CRITICAL, bad[i].bytes, bad[i].n);
		else
			peer_send(p, out, wire_managed_encode(out, &t));
		expect_error(p, 10);
		peer_close(p);
	}
	for (i = 0; i < 100; i++) {
		p = asks(port, list);
		if (i % 2 == 0) /* the same is said once more, or it is gone at once */
			peer_send_raw(p, WIRE_MANAGE, WIRE_CRITICAL, bad[2].bytes, bad[2].n);
		peer_close(p);
	}
}

/* N OP FLAGS PATH...: N requests, whose answers nobody reads. */
static void lists_unread(unsigned port, char **arguments)
{
	int i;

	for (i = 0; i < atoi(arguments[0]); i++)
		asks(port, arguments + 1);
	hold();
}

static struct peer *asks_sums(unsigned port, const char *path, unsigned flags)
{
	static uint8_t out[WIRE_SUM_MAX_BYTES];
	uint8_t coded[WIRE_PATH_MAX + 3];
	const struct wire_sum f = { (uint8_t)flags, WIRE_DIGESTS, 0, WIRE_RANGE_REST, 1,
		{ coded, wire_path_encode(coded, 0, text(path)) } };
	struct peer *p = peer_connect(port, ALPN_JOB);

	if (p == NULL)
		die("no handshake");
	peer_send(p, out, wire_sum_encode(out, &f));
	return p;
}

/* PATH...: none has digests, neither itself nor below. */
static void sums_nothing(unsigned port, char **arguments)
{
	for (; *arguments != NULL; arguments++) {
		expect_nothing(asks_sums(port, *arguments, 0));
		expect_nothing(asks_sums(port, *arguments, WIRE_MANAGE_RECURSIVE));
	}
}

/* CODE PATH: is refused. */
static void sums_refused(unsigned port, char **arguments)
{
	struct peer *p = asks_sums(port, arguments[1], 0);

	expect_error(p, (unsigned)atoi(arguments[0]));
	peer_close(p);
}

/* N PATH...: N requests for all digests of each path, recursively; the client stays, and reads nothing. */
static void sums_many(unsigned port, char **arguments)
{
	char **path;
	int i;

	for (i = 0; i < atoi(arguments[0]); i++)
		for (path = arguments + 1; *path != NULL; path++)
			asks_sums(port, *path, WIRE_MANAGE_RECURSIVE);
	hold();
}

/* PATH: malformed requests, and clients that leave at once. */
static void sums_badly(unsigned port, char **arguments)
{
	static const struct { uint8_t n, bytes[26]; } bad[] = {
		{ 4, { 0, 0, 1, 0 } },                                     /* cut off */
		{ 25, { 2, 0, 1, [20] = 1, 0, 0, 1, '/' } },               /* a flag that is none */
		{ 25, { 0, 0, 0, [20] = 1, 0, 0, 1, '/' } },               /* no digest */
		{ 25, { 0, 1, 0, [20] = 1, 0, 0, 1, '/' } },               /* one that is none */
		{ 21, { 0, 0, 1, [20] = 0 } },                             /* no path */
		{ 25, { 0, 0, 1, [20] = 2, 0, 0, 1, '/' } },               /* one that is not there */
		{ 25, { 0, 0, 1, [20] = 1, 0, 0, 1, '\0' } },              /* a NUL */
	};
	struct peer *p;
	size_t i;

	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		if ((p = peer_connect(port, ALPN_JOB)) == NULL)
			die("no handshake");
		peer_send_raw(p, WIRE_SUM, WIRE_CRITICAL, bad[i].bytes, bad[i].n);
		expect_error(p, 10);
		peer_close(p);
	}
	for (i = 0; i < 50; i++)
		peer_close(asks_sums(port, arguments[0], 0));
}

/* ---- Writing ---- */

static void put_write(struct peer *p, const char *path, uint32_t bytes)
{
	static uint8_t out[WIRE_WRITE_MAX_BYTES];
	const struct wire_write f = { .flags = WIRE_WRITE_MKPATH, .size_bytes = bytes, .mtime_ns = WIRE_WRITE_NOW,
		.path = text(path) };

	peer_send(p, out, wire_write_encode(out, &f));
}

static void put_data(struct peer *p, uint64_t id, uint64_t offset, uint32_t n, uint64_t flip)
{
	static uint8_t out[WIRE_BLOCK_MAX_BYTES];
	const struct wire_block b = { .id = id, .offset = offset, .length_bytes = n };
	uint8_t *data = out + wire_block_encode(out, &b);
	struct wire_block_end end = { WIRE_BLOCK_GOOD, 0 };

	memset(data, 'x', n);
	end.check = hash_check(out + WIRE_HEADER_BYTES, hash_content(data, n)) ^ flip;
	peer_try_send(p, out, (size_t)(data - out) + n + wire_block_end_encode(data + n, &end));
}

static struct peer *writes(unsigned port, const char *path, uint32_t bytes)
{
	struct peer *p = peer_connect(port, ALPN_JOB);

	if (p == NULL)
		die("no handshake");
	put_write(p, path, bytes);
	return p;
}

/* PATH...: none can be written. */
static void writes_nothing(unsigned port, char **arguments)
{
	struct peer *p;

	for (; *arguments != NULL; arguments++) {
		p = writes(port, *arguments, 1);
		put_data(p, wire_range_id(0), 0, 1, 0);
		expect_nothing(p);
	}
}

/* CODE PATH: is refused. */
static void writes_refused(unsigned port, char **arguments)
{
	struct peer *p = writes(port, arguments[1], 1);

	expect_error(p, (unsigned)atoi(arguments[0]));
	peer_close(p);
}

/* PATH: data in another order, of another file, altered, too much, none, or a request in the middle. */
static void writes_badly(unsigned port, char **arguments)
{
	static const struct { uint64_t id, offset; uint32_t n, code; uint64_t flip; } bad[] = {
		{ 2 << 16, 0, 9, 10, 0 }, { 1 << 16, 1, 9, 10, 0 }, { 1 << 16, 0, 8, 10, 0 }, { 1 << 16, 0, 10, 10, 0 },
		{ 1 << 16, 0, 9, 6, 1 },
	};
	struct peer *p;
	size_t i;

	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		p = writes(port, arguments[0], 9);
		put_data(p, bad[i].id, bad[i].offset, bad[i].n, bad[i].flip);
		expect_error(p, bad[i].code);
		peer_close(p);
	}
	p = writes(port, arguments[0], 9);
	put_write(p, arguments[0], 9);
	expect_error(p, 10);
	peer_close(p);
	for (i = 0; i < 100; i++) /* or goes away in the middle */
		peer_close(writes(port, arguments[0], i % 2 == 0 ? 1 : WIRE_WRITE_MAX));
}

/* N PATH: N files of which the last byte never comes. */
static void writes_unended(unsigned port, char **arguments)
{
	struct peer *p;
	int i;

	for (i = 0; i < atoi(arguments[0]); i++) {
		p = writes(port, arguments[1], WIRE_WRITE_MAX);
		put_data(p, wire_range_id(0), 0, WIRE_PIECE_BYTES, 0);
	}
	hold();
}

const struct hostile hostile_managers[] = {
	{ "sums-nothing", sums_nothing }, { "sums-refused", sums_refused }, { "sums-many", sums_many },
	{ "sums-badly", sums_badly },
	{ "manages", manages }, { "manages-nothing", manages_nothing }, { "manages-badly", manages_badly },
	{ "lists-unread", lists_unread }, { "parts-nothing", parts_nothing }, { "parts-refused", parts_refused },
	{ "parts-unread", parts_unread }, { "parts-badly", parts_badly }, { "writes-nothing", writes_nothing },
	{ "writes-refused", writes_refused }, { "writes-badly", writes_badly }, { "writes-unended", writes_unended },
	{ NULL, NULL }
};

/* ---- Servers ---- */

static void put_listed(struct peer *p, const char *path, uint16_t code, const char *why)
{
	struct wire_listed f = { .type = code == 0 ? WIRE_LISTED_SYMLINK : WIRE_LISTED_UNKNOWN,
		.mode = 07777,
		.bytes = UINT64_MAX, .disk_bytes = UINT64_MAX, .mtime_s = INT64_MAX, .mtime_ns = 999999999,
		.path = text(path), .target = text(code == 0 ? why : ""), .why = { code, 0,
		    text(code != 0 ? why : "") } };
	uint8_t out[WIRE_LISTED_MAX_BYTES];

	peer_try_send(p, out, wire_listed_encode(out, &f));
}

static void put_managed(struct peer *p, uint64_t entries, uint64_t failed, uint8_t final)
{
	struct wire_managed f = { .entries = entries, .bytes = UINT64_MAX, .failed = failed, .final = final };
	uint8_t out[WIRE_MANAGED_MAX_BYTES];

	peer_try_send(p, out, wire_managed_encode(out, &f));
}

/* HOW */
static void lying_files(unsigned port, char **arguments)
{
	static const char rude[] = "\033[31mred\nptcp: all is well";
	struct peer *p = peer_accept(hostile_listener, ALPN_JOB);
	const char *how = arguments[0];
	uint8_t byte;

	(void)port;
	expect(p, WIRE_MANAGE);
	if (strcmp(how, "terminal") == 0) {
		put_listed(p, rude, 0, rude);
		put_listed(p, rude, 13, rude);
		put_listed(p, "", 13, rude);
		put_managed(p, 1, 2, 1);
	} else if (strcmp(how, "uncounted") == 0) {
		put_listed(p, "x", 0, "");
		put_managed(p, 0, 0, 1);
	} else if (strcmp(how, "overflow") == 0) {
		put_managed(p, UINT64_MAX, 2, 1);
	} else if (strcmp(how, "failures") == 0) {
		put_managed(p, 0, 1, 1);
	} else if (strcmp(how, "cut") == 0) {
		put_listed(p, "x", 0, "");
		put_managed(p, 1, 0, 0);
	} else {
		die("no way %s", how);
	}
	SSL_shutdown(p->ssl);
	while (read(p->fd, &byte, 1) > 0)
		;
}

static void put_file(struct peer *p, uint64_t bytes)
{
	const struct wire_listed f = { .type = WIRE_LISTED_FILE, .bytes = bytes, .path = text("/f") };
	uint8_t out[WIRE_LISTED_MAX_BYTES];

	peer_try_send(p, out, wire_listed_encode(out, &f));
}

static void put_piece(struct peer *p, uint64_t id, uint64_t offset, uint32_t n, uint64_t flip)
{
	static uint8_t out[WIRE_BLOCK_MAX_BYTES];
	const struct wire_block b = { .id = id, .offset = offset, .length_bytes = n };
	uint8_t *data = out + wire_block_encode(out, &b);
	struct wire_block_end end = { WIRE_BLOCK_GOOD, 0 };

	memset(data, 'x', n);
	end.check = hash_check(out + WIRE_HEADER_BYTES, hash_content(data, n)) ^ flip;
	peer_try_send(p, out, (size_t)(data - out) + n + wire_block_end_encode(data + n, &end));
}

/* HOW: a file of 100 bytes of "x" is requested */
static void lying_parts(unsigned port, char **arguments)
{
	struct peer *p = peer_accept(hostile_listener, ALPN_JOB);
	const char *how = arguments[0];
	uint8_t byte;

	(void)port;
	expect(p, WIRE_READ);
	put_file(p, strcmp(how, "huge") == 0 ? UINT64_MAX : 100);
	if (strcmp(how, "twice") == 0)
		put_file(p, 100);
	put_piece(p, wire_range_id(strcmp(how, "range") == 0), strcmp(how, "place") == 0,
	    strcmp(how, "long") == 0 ? 101 : 60,
	    strcmp(how, "altered") == 0);
	if (strcmp(how, "cut") != 0)
		put_managed(p, 1, 0, 1);
	SSL_shutdown(p->ssl);
	while (read(p->fd, &byte, 1) > 0)
		;
}

/* HOW: the sha256 of a file is requested */
static void lying_sums(unsigned port, char **arguments)
{
	struct peer *p = peer_accept(hostile_listener, ALPN_JOB);
	const char *how = arguments[0];
	char digits[65];
	struct wire_listed f = { .type = strcmp(how, "type") == 0 ? WIRE_LISTED_DIR : WIRE_LISTED_FILE,
		.bytes = 1, .path = text("/f"), .target = text(digits) };
	uint8_t out[WIRE_LISTED_MAX_BYTES], byte;

	(void)port;
	memset(digits, 'a', 64);
	digits[64] = '\0';
	if (strcmp(how, "terminal") == 0)
		digits[3] = '\033';
	if (strcmp(how, "upper") == 0)
		digits[63] = 'A';
	f.target.n = strcmp(how, "short") == 0 ? 62 : strcmp(how, "none") == 0 ? 0 : 64;
	expect(p, WIRE_SUM);
	peer_try_send(p, out, wire_listed_encode(out, &f));
	put_managed(p, 1, 0, 1);
	SSL_shutdown(p->ssl);
	while (read(p->fd, &byte, 1) > 0)
		;
}

const struct hostile hostile_managed[] = {
	{ "lying-sums", lying_sums },
	{ "lying-files", lying_files }, { "lying-parts", lying_parts }, { NULL, NULL }
};
