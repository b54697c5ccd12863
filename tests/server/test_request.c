/* Which requests a client's rights permit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "server/request.h"
#include "stream/stream.h"

static struct ptcp_server_opts opts;
static struct request a;
static struct wire_open o;
static uint8_t paths[256];
static struct ptcp_err e;

/* A request for one path, of a client with all rights. */
static void begin(uint8_t role, uint32_t flags)
{
	request_fini(&a);
	ptcp_server_opts_init(&opts);
	opts.ciphers = 1u << PTCP_CIPHER_AES128GCM;
	a = (struct request){ .root = "/", .o = &opts, .client = "c" };
	o = (struct wire_open){ .role = role, .flags = flags, .streams = 1, .n_paths = 1,
	    .cipher = PTCP_CIPHER_AES128GCM };
	o.paths = (struct span){ paths, wire_path_encode(paths, 0, (struct span){ (const uint8_t *)"x", 1 }) };
}

static void permitted(void)
{
	if (request_take(&a, &o, &e) != 0)
		fail_msg("refused: %s", e.msg);
}

static void refused(int code, const char *why)
{
	assert_int_equal(request_take(&a, &o, &e), code);
	if (strstr(e.msg, why) == NULL)
		fail_msg("\"%s\" does not contain \"%s\"", e.msg, why);
}

static void all_rights(void **state)
{
	static const uint8_t roles[] = { WIRE_ACCEPTOR_SENDS, WIRE_ACCEPTOR_RECEIVES, WIRE_ACCEPTOR_DISCARDS,
		WIRE_ACCEPTOR_GENERATES };
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof roles; i++) {
		begin(roles[i], 0);
		permitted();
	}
	begin(WIRE_ACCEPTOR_SENDS, WIRE_OPEN_REMOVE_SOURCES);
	permitted();
	begin(WIRE_ACCEPTOR_RECEIVES, WIRE_OPEN_DELETE);
	permitted();
}

static void read_only(void **state)
{
	(void)state;
	begin(WIRE_ACCEPTOR_RECEIVES, 0);
	a.auth.read_only = true;
	refused(PTCP_EREFUSED, "may only receive");
	begin(WIRE_ACCEPTOR_SENDS, WIRE_OPEN_REMOVE_SOURCES);
	a.auth.read_only = true;
	refused(PTCP_EREFUSED, "removing sources");
	begin(WIRE_ACCEPTOR_SENDS, 0);
	a.auth.read_only = true;
	permitted();
}

static void only_adds(void **state)
{
	(void)state;
	begin(WIRE_ACCEPTOR_SENDS, 0);
	a.auth.write_once = true;
	refused(PTCP_EREFUSED, "receiving: this client may only add");
	begin(WIRE_ACCEPTOR_RECEIVES, WIRE_OPEN_DELETE);
	a.auth.write_once = true;
	refused(PTCP_EREFUSED, "deleting: this client may only add");
	begin(WIRE_ACCEPTOR_RECEIVES, 0);
	a.auth.write_once = true;
	o.paths.n += wire_path_encode(paths + o.paths.n, WIRE_PATH_LINK_DEST, (struct span){ (const uint8_t *)"y", 1 });
	o.n_paths = 2;
	refused(PTCP_EREFUSED, "comparing with older copies: this client may only add");
	begin(WIRE_ACCEPTOR_RECEIVES, 0);
	a.auth.write_once = true;
	permitted();
}

/* Of the directory of the client, or of the server; a server without either serves measurements. */
static void no_root(void **state)
{
	(void)state;
	begin(WIRE_ACCEPTOR_SENDS, 0);
	a.root = NULL;
	refused(PTCP_EREFUSED, "files: ");
	strcpy(a.auth.root, "/");
	permitted();
	begin(WIRE_ACCEPTOR_SENDS, 0);
	a.root = NULL;
	a.own = true;
	permitted();
	begin(WIRE_ACCEPTOR_GENERATES, 0);
	a.root = NULL;
	permitted();
}

static void ciphers(void **state)
{
	(void)state;
	begin(WIRE_ACCEPTOR_SENDS, 0);
	o.cipher = PTCP_CIPHER_NONE;
	refused(PTCP_EREFUSED, "cipher none");
	begin(WIRE_ACCEPTOR_DISCARDS, 0);
	o.cipher = PTCP_CIPHER_NONE;
	refused(PTCP_EREFUSED, "cipher none");
	begin(WIRE_ACCEPTOR_SENDS, 0);
	o.cipher = PTCP_CIPHERS;
	a.own = true; /* any cipher that exists */
	refused(PTCP_EREFUSED, "cipher requested");
	o.cipher = PTCP_CIPHER_NONE;
	permitted();
}

/* SELECT names entries of one directory that the server sends. */
static void selected(void **state)
{
	(void)state;
	begin(WIRE_ACCEPTOR_RECEIVES, WIRE_OPEN_SELECTED);
	refused(PTCP_EPROTO, "SELECTED for a receiver");
	begin(WIRE_ACCEPTOR_SENDS, WIRE_OPEN_SELECTED);
	refused(PTCP_EPROTO, "not for the content of one directory");
	begin(WIRE_ACCEPTOR_SENDS, WIRE_OPEN_SELECTED);
	o.paths.n = wire_path_encode(paths, WIRE_PATH_CONTENTS, (struct span){ (const uint8_t *)"x", 1 });
	permitted();
	begin(WIRE_ACCEPTOR_SENDS, WIRE_OPEN_SELECTED);
	o.paths.n = wire_path_encode(paths, WIRE_PATH_CONTENTS, (struct span){ (const uint8_t *)"x", 1 });
	o.paths.n += wire_path_encode(paths + o.paths.n, WIRE_PATH_CONTENTS, (struct span){ (const uint8_t *)"y", 1 });
	o.n_paths = 2;
	refused(PTCP_EPROTO, "not for the content of one directory");
}

static void cleans(void **state)
{
	static const struct span path = { (const uint8_t *)"x", 1 };

	(void)state;
	begin(0, 0);
	assert_int_equal(request_take_clean(&a, path, &e), 0);
	begin(0, 0);
	a.root = NULL;
	assert_int_equal(request_take_clean(&a, path, &e), PTCP_EREFUSED);
	begin(0, 0);
	a.auth.read_only = true;
	assert_int_equal(request_take_clean(&a, path, &e), PTCP_EREFUSED);
	begin(0, 0);
	a.auth.write_once = true;
	assert_int_equal(request_take_clean(&a, path, &e), PTCP_EREFUSED);
}

static int manages_op(uint8_t op)
{
	struct wire_manage f = { .op = op, .n_paths = 1 };

	o.paths.n = wire_path_encode(paths, 0, (struct span){ (const uint8_t *)"x", 1 });
	f.paths = o.paths;
	return request_take_manage(&a, &f, &e);
}

static void manages(void **state)
{
	(void)state;
	begin(0, 0);
	assert_int_equal(manages_op(WIRE_MANAGE_REMOVE), 0);
	begin(0, 0);
	a.auth.read_only = true;
	assert_int_equal(manages_op(WIRE_MANAGE_LIST), 0);
	begin(0, 0);
	a.auth.read_only = true;
	assert_int_equal(manages_op(WIRE_MANAGE_REMOVE), PTCP_EREFUSED);
	assert_int_equal(manages_op(WIRE_MANAGE_MKDIR), PTCP_EREFUSED);
	begin(0, 0);
	a.auth.write_once = true;
	assert_int_equal(manages_op(WIRE_MANAGE_LIST), PTCP_EREFUSED);
	begin(0, 0);
	a.root = NULL;
	assert_int_equal(manages_op(WIRE_MANAGE_LIST), PTCP_EREFUSED);
}

/* ---- Tables ---- */

/* The clients of a column, from left to right: with all rights, --read-only, --write-once, without a root, and this
 * user (without a root of the server). */
#define CLIENTS 5

static void be_client(unsigned i)
{
	a.auth.read_only = i == 1;
	a.auth.write_once = i == 2;
	a.own = i == 4;
	if (i >= 3)
		a.root = NULL;
}

/* '.': permitted, 'r': refused, 'p': a fault of the protocol. */
static char verdict(int r)
{
	return r == 0 ? '.' : r == PTCP_EREFUSED ? 'r' : r == PTCP_EPROTO ? 'p' : '?';
}

static void rights_by_role_and_flags(void **state)
{
	static const struct { uint8_t role; uint32_t flags; const char *verdicts; } rows[] = {
		{ WIRE_ACCEPTOR_SENDS, 0, "..rr." },
		{ WIRE_ACCEPTOR_SENDS, WIRE_OPEN_DRY_RUN, "..rr." },
		{ WIRE_ACCEPTOR_SENDS, WIRE_OPEN_DELETE, "..rr." },
		{ WIRE_ACCEPTOR_SENDS, WIRE_OPEN_REMOVE_SOURCES, ".rrr." },
		{ WIRE_ACCEPTOR_SENDS, WIRE_OPEN_REMOVE_SOURCES | WIRE_OPEN_DRY_RUN, ".rrr." },
		{ WIRE_ACCEPTOR_SENDS, WIRE_OPEN_SELECTED, "..rr." },
		{ WIRE_ACCEPTOR_RECEIVES, 0, ".r.r." },
		{ WIRE_ACCEPTOR_RECEIVES, WIRE_OPEN_DRY_RUN, ".r.r." },
		{ WIRE_ACCEPTOR_RECEIVES, WIRE_OPEN_DELETE, ".rrr." },
		{ WIRE_ACCEPTOR_RECEIVES, WIRE_OPEN_DELETE | WIRE_OPEN_DRY_RUN, ".rrr." },
		{ WIRE_ACCEPTOR_RECEIVES, WIRE_OPEN_REMOVE_SOURCES, ".r.r." }, /* the client's */
		{ WIRE_ACCEPTOR_RECEIVES, WIRE_OPEN_SELECTED, "prprp" },
		{ WIRE_ACCEPTOR_DISCARDS, 0, "....." },
		{ WIRE_ACCEPTOR_DISCARDS, WIRE_OPEN_DELETE | WIRE_OPEN_REMOVE_SOURCES, "....." },
		{ WIRE_ACCEPTOR_GENERATES, 0, "....." },
	};
	unsigned i, k;
	char got;

	(void)state;
	for (i = 0; i < sizeof rows / sizeof *rows; i++)
		for (k = 0; k < CLIENTS; k++) {
			begin(rows[i].role, rows[i].flags);
			o.paths.n = wire_path_encode(paths, WIRE_PATH_CONTENTS,
			    (struct span){ (const uint8_t *)"x", 1 });
			be_client(k);
			if ((got = verdict(request_take(&a, &o, &e))) != rows[i].verdicts[k])
				fail_msg("row %u, client %u: %c in place of %c (%s)", i, k, got,
				    rows[i].verdicts[k], e.msg);
		}
}

static void rights_by_work_on_files(void **state)
{
	static const struct { uint8_t op; const char *verdicts; enum quota_need need; } rows[] = {
		{ WIRE_MANAGE_LIST, "..rr.", QUOTA_NONE }, { WIRE_MANAGE_COUNT, "..rr.", QUOTA_SHOW },
		{ WIRE_MANAGE_MKDIR, ".rrr.", QUOTA_COUNT }, { WIRE_MANAGE_REMOVE, ".rrr.", QUOTA_ADJUST },
		{ WIRE_MANAGE_RENAME, ".rrr.", QUOTA_ADJUST },
	};
	unsigned i, k;
	char got;

	(void)state;
	for (i = 0; i < sizeof rows / sizeof *rows; i++)
		for (k = 0; k < CLIENTS; k++) {
			begin(0, 0);
			be_client(k);
			if ((got = verdict(manages_op(rows[i].op))) != rows[i].verdicts[k])
				fail_msg("operation %u, client %u: %c in place of %c", rows[i].op, k, got,
				    rows[i].verdicts[k]);
			if (got == '.')
				assert_int_equal(a.quota_need, rows[i].need);
		}
}

/* What makes files needs a count of the space; what frees space needs none, and a dry run changes nothing. */
static void needs_of_quotas(void **state)
{
	static const struct { uint8_t role; uint32_t flags; enum quota_need need; } rows[] = {
		{ WIRE_ACCEPTOR_RECEIVES, 0, QUOTA_COUNT }, { WIRE_ACCEPTOR_RECEIVES, WIRE_OPEN_DRY_RUN, QUOTA_NONE },
		{ WIRE_ACCEPTOR_SENDS, 0, QUOTA_NONE }, { WIRE_ACCEPTOR_SENDS, WIRE_OPEN_REMOVE_SOURCES, QUOTA_ADJUST },
		{ WIRE_ACCEPTOR_SENDS, WIRE_OPEN_REMOVE_SOURCES | WIRE_OPEN_DRY_RUN, QUOTA_NONE },
		{ WIRE_ACCEPTOR_DISCARDS, 0, QUOTA_NONE },
	};
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof rows / sizeof *rows; i++) {
		begin(rows[i].role, rows[i].flags);
		permitted();
		assert_int_equal(a.quota_need, rows[i].need);
	}
	begin(0, 0);
	assert_int_equal(request_take_clean(&a, (struct span){ (const uint8_t *)"x", 1 }, &e), 0);
	assert_int_equal(a.quota_need, QUOTA_ADJUST);
}

/* The minimum of the request, the server's limit, and half of the memory of a session. */
static void granted_streams(void **state)
{
	struct memory_account *account;
	struct memory_budget *budget;

	(void)state;
	begin(WIRE_ACCEPTOR_SENDS, 0);
	o.streams = 7;
	permitted();
	assert_int_equal(a.n_granted, 7);
	begin(WIRE_ACCEPTOR_SENDS, 0);
	o.streams = 7;
	opts.max_streams = 3;
	permitted();
	assert_int_equal(a.n_granted, 3);
	assert_int_equal(memory_budget_new(&budget, 4 * 2 * 5 * STREAM_BYTES, NULL), 0);
	assert_int_equal(memory_account_new(&account, budget, "c", NULL), 0);
	begin(WIRE_ACCEPTOR_SENDS, 0);
	o.streams = 7;
	a.memory = account;
	permitted();
	assert_int_equal(a.n_granted, 5);
	request_fini(&a);
	a = (struct request){ 0 };
	assert_int_equal(memory_budget_used(budget), 0);
	memory_account_free(account);
	memory_budget_free(budget);
}

/* A rule before the path is not the path. */
static void the_first_path(void **state)
{
	(void)state;
	begin(WIRE_ACCEPTOR_SENDS, 0);
	o.paths.n = wire_path_encode(paths, WIRE_PATH_RULE, (struct span){ (const uint8_t *)"- rule", 6 });
	o.paths.n += wire_path_encode(paths + o.paths.n, 0, (struct span){ (const uint8_t *)"path", 4 });
	o.n_paths = 2;
	permitted();
	assert_string_equal(request_first(&a), "path");
	assert_int_equal(a.n_given, 1);
	begin(WIRE_ACCEPTOR_DISCARDS, 0);
	permitted();
	assert_string_equal(request_first(&a), "");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_rights),
		cmocka_unit_test(read_only),
		cmocka_unit_test(only_adds),
		cmocka_unit_test(no_root),
		cmocka_unit_test(ciphers),
		cmocka_unit_test(selected),
		cmocka_unit_test(cleans),
		cmocka_unit_test(manages),
		cmocka_unit_test(rights_by_role_and_flags),
		cmocka_unit_test(rights_by_work_on_files),
		cmocka_unit_test(needs_of_quotas),
		cmocka_unit_test(granted_streams),
		cmocka_unit_test(the_first_path),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	request_fini(&a);
	return r;
}
