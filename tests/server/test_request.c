/* Which requests a client's rights permit. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "server/request.h"

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
	o = (struct wire_open){ .role = role, .flags = flags, .streams = 1, .n_paths = 1, .cipher = PTCP_CIPHER_AES128GCM };
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
	static const uint8_t roles[] = { WIRE_ACCEPTOR_SENDS, WIRE_ACCEPTOR_RECEIVES, WIRE_ACCEPTOR_DISCARDS, WIRE_ACCEPTOR_GENERATES };
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
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	request_fini(&a);
	return r;
}
