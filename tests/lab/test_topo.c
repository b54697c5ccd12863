/* Topology files and parameter texts: what they mean and where errors are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "params.h"
#include "topo.h"

/* Load text as a file; 0 and *t, or the code and the message after the path. */
static int load(struct topo **t, const char *text, char *msg, size_t size)
{
	char path[] = "/tmp/test_topo-XXXXXX";
	int fd = mkstemp(path), r;
	struct ptcp_err e = { 0 };

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	r = topo_load(t, path, &e);
	unlink(path);
	if (r < 0) {
		assert_memory_equal(e.msg, path, strlen(path));
		snprintf(msg, size, "%s", e.msg + strlen(path));
	}
	return r;
}

static void reads_a_topology(void **state)
{
	static const char text[] =
	    "seed: 7\n"
	    "defaults:\n"
	    "  host: { cc: reno, mtu: 9000 }\n"
	    "  link: { delay: 1ms }\n"
	    "hosts:\n"
	    "  s[1-3]:\n"
	    "  d: { cc: bbr, window: 60kB, sysctl: { net.ipv4.tcp_sack: 0 } }\n"
	    "routers: [mid]\n"
	    "links:\n"
	    "  in[1-3]: { between: [\"s[1-3]\", mid], rate: 10Mbit/s, rev: { rate: 1Mbit/s } }\n"
	    "  out: { from-to: [mid, d], queue: 25 packets, red: 5 15 0.1, loss: 0.5% }\n";
	struct topo *t;
	char msg[600] = "";

	(void)state;
	assert_int_equal(load(&t, text, msg, sizeof msg), 0);
	assert_int_equal(t->seed, 7);
	assert_int_equal(t->hosts, 4);
	assert_int_equal(t->nodes, 5);
	assert_int_equal(topo_host(t, "s3"), 2);
	assert_int_equal(topo_host(t, "mid"), -1);
	assert_int_equal(topo_node(t, "mid"), 4);
	assert_int_equal(t->node[3].address, 0x0a000004);
	assert_int_equal(t->node[0].mtu, 9000);
	assert_string_equal(t->node[0].sysctl[0].value, "reno");
	assert_int_equal(t->node[3].sysctls, 2);
	assert_string_equal(t->node[3].sysctl[0].value, "bbr");
	assert_int_equal(t->node[3].window_bytes, 60000);
	assert_int_equal(t->links, 4);
	assert_string_equal(t->link[1].name, "in2");
	assert_int_equal(t->link[1].ends[0], 1);
	assert_int_equal(t->link[1].ends[1], 4);
	assert_int_equal(t->link[1].conf[0].rate_bps, 10000000);
	assert_int_equal(t->link[1].conf[1].rate_bps, 1000000);
	assert_int_equal(t->link[1].conf[1].delay_ns, 1000000);
	assert_int_equal(t->link[3].both, 0);
	assert_int_equal(t->link[3].conf[0].queue_packets, 25);
	assert_true(t->link[3].conf[0].red.max_packets == 15);
	assert_true(t->link[3].conf[0].loss_ratio == 0.005);
	topo_free(t);
}

static void points_at_errors(void **state)
{
	static const struct { const char *text, *msg; } bad[] = {
		{ "", ":1:1: the file is empty" },
		{ "hosts:\n  a: [\n", ":3:1: did not find expected node content" },
		{ "- a\n", ":1:1: a topology should be a mapping (key: value)" },
		{ "hots:\n  a:\n", ":1:1: unknown key \"hots\"" },
		{ "routers: [x]\n", ":1:1: there are no hosts" },
		{ "hosts:\n  a:\n  a:\n", ":3:3: \"a\" is given twice" },
		{ "hosts:\n  a[1-2]:\n  a2:\n", ":3:3: there are two nodes \"a2\"" },
		{ "hosts:\n  a: { mtu: 99 }\n", ":2:13: mtu is \"99\", should be 576 to 9000" },
		{ "hosts:\n  a: { speed: 9 }\n", ":2:8: unknown key \"speed\"" },
		{ "hosts:\n  a b:\n", ":2:3: \"a b\": a name has letters" },
		{ "hosts:\n  a[3-1]:\n", ":2:3: \"a[3-1]\": a range should be like" },
		{ "hosts:\n  a: { sysctl: { kernel.x: 1 } }\n", ":2:18: \"kernel.x\": only net.*" },
		{ "hosts: { a: , b: }\nlinks:\n  l: { rate: 1Mbit/s }\n",
		    ":3:3: link \"l\" needs between: [a, b]" },
		{ "hosts: { a: , b: }\nlinks:\n  l: { between: [a, c] }\n",
		    ":3:21: there is no node \"c\"" },
		{ "hosts: { a: , b: }\nlinks:\n  l: { between: [a] }\n",
		    ":3:17: should be a list of two nodes" },
		{ "hosts: { a: , b: }\nlinks:\n  l: { between: [a, b], rate: fast }\n",
		    ":3:31: rate is \"fast\", should be like 100Mbit/s" },
		{ "hosts: { a: , b: }\nlinks:\n  l: { between: [a, b], colour: red }\n",
		    ":3:25: unknown key \"colour\"" },
		{ "hosts: { a: , b: }\nlinks:\n  l: { from-to: [a, b], rev: { rate: 1 } }\n",
		    ":3:25: a from-to link has no reverse direction" },
		{ "hosts: { \"a[1-3]\": , b: }\nlinks:\n  l: { between: [\"a[1-3]\", b] }\n",
		    ":3:3: the ranges in name and ends have 1, 3 and 1 members" },
		{ "hosts: { a: }\nseed: x\n", ":2:7: seed should be a whole number" },
	};
	char msg[600];
	struct topo *t;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		msg[0] = '\0';
		assert_int_not_equal(load(&t, bad[i].text, msg, sizeof msg), 0);
		if (strncmp(msg, bad[i].msg, strlen(bad[i].msg)) != 0)
			fail_msg("case %zu: got \"%s\", wanted \"%s\"", i, msg, bad[i].msg);
	}
	assert_int_equal(topo_load(&t, "/proc/nonexistent/x.yaml", NULL), PTCP_EIO);
}

/* No prefix of a good file may crash the reader, nor any file with one byte off. */
static void survives_damage(void **state)
{
	static const char text[] =
	    "hosts: { \"a[1-2]\": { mtu: 9000 } , b: }\nrouters: [r]\nlinks:\n"
	    "  l: { between: [b, r], rate: 1Mbit/s, red: 1 2 0.5, fwd: { loss: 1% } }\n";
	char damaged[sizeof text], msg[600];
	struct topo *t;

	(void)state;
	for (size_t i = 0; i < sizeof text - 1; i++) {
		memcpy(damaged, text, sizeof text);
		damaged[i] = '\0';
		if (load(&t, damaged, msg, sizeof msg) == 0)
			topo_free(t);
		for (int c = 0; c < 3; c++) {
			memcpy(damaged, text, sizeof text);
			damaged[i] = "[\"9"[c];
			if (load(&t, damaged, msg, sizeof msg) == 0)
				topo_free(t);
		}
	}
}

static void takes_back_its_own_text(void **state)
{
	static const char *const settings[][2] = {
		{ "rate", "1.5Mbit/s" }, { "delay", "0.25ms" }, { "jitter", "3ms" },
		{ "loss", "0.1%" }, { "queue", "64kB" }, { "reorder", "yes" },
		{ "police", "off" }, { "red", "5 15 0.1 0.02" },
	};
	struct link_conf c, again;
	char text[300], *word, *save;

	(void)state;
	params_default(&c);
	for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
		assert_int_equal(params_set(&c, settings[i][0], settings[i][1], NULL), 0);
	params_text(text, sizeof text, &c);
	assert_string_equal(text, "rate=1.5Mbit/s delay=0.25ms jitter=3ms loss=0.001 "
	    "queue=64000B reorder=yes police=off red=\"5 15 0.1 0.02\"");
	params_default(&again);
	word = strtok_r(text, " ", &save);
	for (int i = 0; i < 7; i++, word = strtok_r(NULL, " ", &save)) {
		char *value = strchr(word, '=');

		*value = '\0';
		assert_int_equal(params_set(&again, word, value + 1, NULL), 0);
	}
	assert_int_equal(params_set(&again, "red", "5 15 0.1 0.02", NULL), 0);
	assert_memory_equal(&c, &again, sizeof c);
	assert_int_equal(params_set(&c, "police", "20Mbit/s 250kB", NULL), 0);
	assert_true(c.police_bps == 20000000 && c.police_bytes == 250000);
	params_text(text, sizeof text, &c);
	assert_non_null(strstr(text, "police=\"20Mbit/s 250000B\""));
	assert_int_equal(params_set(&c, "police", "20Mbit/s", NULL), PTCP_ECONFIG);
	assert_int_equal(params_set(&c, "police", "20Mbit/s 0kB", NULL), PTCP_ECONFIG);
}

static void refuses_bad_values(void **state)
{
	static const char *const bad[][2] = {
		{ "rate", "0" }, { "rate", "-1Mbit/s" }, { "rate", "10MB" }, { "delay", "x" },
		{ "delay", "-1ms" }, { "loss", "101%" }, { "loss", "nan" }, { "loss", "-0.1" },
		{ "loss", "1 %x" }, { "queue", "0 packets" }, { "queue", "-3 packets" },
		{ "queue", "3 packet" }, { "queue", "0" }, { "reorder", "maybe" },
		{ "red", "15 5 0.1" }, { "red", "5 15 2" }, { "red", "5 15" },
		{ "red", "5 15 0.1 0.002 x" }, { "rates", "1" }, { "", "" },
	};
	struct link_conf c, before;

	(void)state;
	params_default(&c);
	before = c;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		if (params_set(&c, bad[i][0], bad[i][1], NULL) != PTCP_ECONFIG)
			fail_msg("%s=%s was taken", bad[i][0], bad[i][1]);
		assert_memory_equal(&c, &before, sizeof c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_a_topology),
		cmocka_unit_test(points_at_errors),
		cmocka_unit_test(survives_damage),
		cmocka_unit_test(takes_back_its_own_text),
		cmocka_unit_test(refuses_bad_values),
	};
	return cmocka_run_group_tests_name("lab/topo", tests, NULL, NULL);
}
