#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/overlay.h"

/* The example of the manual page. */
static const char example[] =
    "destination: D\n"
    "slot: 1s\n"
    "hosts:\n"
    "  D:  {address: d.example.org}\n"
    "  S1: {address: s1.example.org, data: 40GB, path: /data/run7}\n"
    "  S2: {address: s2.example.org, path: /data/run7}\n"
    "  K:  {address: k.example.org, relay: true, storage: 100GB, ingress: 1Gbit/s, egress: 2Gbit/s}\n"
    "links:\n"
    "  - {from: S1, to: D, rate: 400Mbit/s, delay: 20ms}\n"
    "  - {from: S2, to: D, rate: 300Mbit/s}\n"
    "  - {from: S1, to: K}\n"
    "  - {from: K, to: D, rate: 1Gbit/s}\n"
    "shared:\n"
    "  - {rate: 500Mbit/s, links: [S1>D, S2>D]}\n"
    "deadline: 2h\n"
    "launch: \"ssh {host}\"\n"
    "windows:\n"
    "  - {link: K>D, from: 10m, until: 20m, rate: 0}\n"
    "  - {link: K>D, until: 600s, rate: 5Mbit/s}\n";

static void reads_the_example(void **state)
{
	struct ptcp_overlay *o;
	char buf[CONF_LINK_TEXT_BYTES];
	const char *why;
	struct ptcp_err e;

	(void)state;
	assert_int_equal(conf_overlay_parse(&o, example, sizeof example - 1, "o.yaml", &e), 0);
	assert_int_equal(o->nhosts, 4);
	assert_int_equal(o->destination, 0);
	assert_int_equal(o->slot_ns, 1000000000);
	assert_int_equal(o->deadline_ns, 7200000000000);
	assert_string_equal(o->launch, "ssh {host}");
	assert_string_equal(o->hosts[1].path, "/data/run7");
	assert_int_equal(o->hosts[1].data_bytes, 40000000000);
	assert_true(o->hosts[2].data_bytes == CONF_UNSET);
	assert_true(o->hosts[3].relay && !o->hosts[1].relay);
	assert_int_equal(o->hosts[3].storage_bytes, 100000000000);
	assert_int_equal(o->hosts[3].ingress_bps, 1000000000);
	assert_true(o->hosts[1].egress_bps == CONF_UNSET);
	assert_int_equal(o->nlinks, 4);
	assert_int_equal(o->links[0].delay_ns, 20000000);
	assert_true(o->links[2].rate_bps == CONF_UNSET);
	assert_int_equal(o->links[1].mark.line, 10);
	assert_int_equal(o->links[1].mark.column, 5);
	assert_int_equal(o->groups[0].nlinks, 2);
	assert_int_equal(o->groups[0].links[1], 1);
	assert_int_equal(o->nwindows, 2);
	assert_int_equal(o->windows[0].from_ns, 0);          /* sorted */
	assert_int_equal(o->windows[1].rate_bps, 0);
	assert_int_equal(conf_overlay_link(o, "K>D", buf, &why), 3);
	assert_int_equal(conf_overlay_link(o, "D>K", buf, &why), -1);
	assert_null(why);
	assert_int_equal(conf_overlay_link(o, "K>X", buf, &why), -1);
	assert_string_equal(why, "X");
	assert_int_equal(conf_overlay_link(o, "KD", buf, &why), -1);
	assert_int_equal(conf_overlay_link(o, "K>D>", buf, &why), -1);
	conf_overlay_free(o);
}

#define HOSTS "destination: D\nhosts: {D: {}, S: {data: 1GB}, K: {relay: true}}\n"
#define LINKS HOSTS "links: [{from: S, to: D, rate: 1}, {from: K, to: D, rate: 1}]\n"

#define LINK_WITH(what) HOSTS "links: [{from: S, to: D, " what "}]\n"

static void reads_curves(void **state)
{
	static const char text[] = LINK_WITH("curve: {1: 94Mbit/s, 4: {rate: 260Mbit/s, impact: 6.5}}"),
	    both[] = "impact: 12.5\n" LINK_WITH("curve: {1: 5, 3: 9}")
	    "shared: [{links: [S>D], curve: {2: {rate: 10, impact: 0}}}]\n";
	struct ptcp_overlay *o;
	struct ptcp_err e;

	(void)state;
	assert_int_equal(conf_overlay_parse(&o, text, sizeof text - 1, "o.yaml", &e), PTCP_ECONFIG);
	assert_int_equal(conf_overlay_parse(&o, both, sizeof both - 1, "o.yaml", &e), 0);
	assert_true(o->impact_ratio == 0.125);
	assert_int_equal(o->links[0].curve->n, 2);
	assert_int_equal(o->links[0].curve->point[1].streams, 3);
	assert_int_equal(o->links[0].curve->point[1].rate_bps, 9);
	assert_true(isnan(o->links[0].curve->point[1].impact_ratio));
	assert_int_equal(o->groups[0].curve->mark.line, 5);
	assert_true(o->groups[0].curve->point[0].impact_ratio == 0);
	conf_overlay_free(o);
}

static void errors(void **state)
{
	static const struct { const char *text, *want; } bad[] = {
		{ "hosts: {D: {}}\n", "o.yaml:1:1: overlay: expected the key 'destination'" },
		{ "destination: D\n", "expected the key 'hosts'" },
		{ "destination: X\nhosts: {D: {}}\n",
		    "o.yaml:1:14: destination: expected one of the hosts, got 'X'" },
		{ HOSTS "link: []\n", "o.yaml:3:1: overlay: expected destination, hosts, all, links" },
		{ HOSTS "all: true\n", "o.yaml:3:6: all: expected a map of keys" },
		{ HOSTS "all: {to: D}\n", "o.yaml:3:7: all: expected rate or delay, got the unknown key 'to'" },
		{ HOSTS "slot: 0\n", "o.yaml:3:7: slot: expected a time above 0" },
		{ HOSTS "deadline: 0s\n", "o.yaml:3:11: deadline: expected a time above 0" },
		{ HOSTS "deadline: 5GB\n", "o.yaml:3:11: overlay: deadline: expected a time" },
		{ HOSTS "launch: ssh\n", "o.yaml:3:9: launch: expected a command with {host}" },
		{ "destination: D\nhosts: {D: {data: 1GB}}\n", "host D: expected no 'data'" },
		{ "destination: D\nhosts: {D: {}, D: {}}\n", "o.yaml:2:16: hosts: expected each key" },
		{ "destination: D\nhosts: {D: {}, 'a b': {}}\n", "o.yaml:2:16: hosts: expected a name" },
		{ "destination: D\nhosts: {D: {}, 'a>b': {}}\n", "hosts: expected a name" },
		{ "destination: D\nhosts: {D: {}, ../x: {}}\n", "hosts: expected a name" },
		{ "destination: D\nhosts: {D: {}, '..': {}}\n", "hosts: expected a name" }, /* would be a directory */
		{ "destination: D\nhosts: {D: {}, a/b: {}}\n", "hosts: expected a name" },
		{ "destination: D\nhosts: {D: {}, \"a\\e[31m\": {}}\n", "hosts: expected text without control" },
		{ "destination: D\nhosts: {D: {}, '-rf': {}}\n", "hosts: expected a name" },
		{ "destination: D\nhosts: {D: {}, '': {}}\n", "hosts: expected a name" },
		{ "destination: D\nhosts: {D: {}, S: {dta: 1}}\n",
		    "o.yaml:2:20: host S: expected address, data, path, relay, storage, ingress or "
		    "egress, got the unknown key 'dta'" },
		{ "destination: D\nhosts: {D: {}, S: {data: 2000000TiB}}\n",
		    "o.yaml:2:26: host S: data: expected" },
		{ "destination: D\nhosts: {D: {}, S: {ingress: -5}}\n",
		    "o.yaml:2:29: host S: ingress: expected a rate" },
		{ HOSTS "links: [{from: S, to: D, rate: -1}]\n",
		    "o.yaml:3:32: link: rate: expected a rate such as 400Mbit/s, got '-1'" },
		{ HOSTS "links: [{from: S, rate: 1}]\n", "o.yaml:3:9: link: expected the key 'to'" },
		{ HOSTS "links: [{from: S, to: X}]\n",
		    "o.yaml:3:23: to: expected one of the hosts, got 'X'" },
		{ HOSTS "links: [{from: S, to: S}]\n", "o.yaml:3:9: link: expected two hosts" },
		{ HOSTS "links: [{from: S, to: D},\n  {from: S, to: D}]\n",
		    "o.yaml:4:3: link: expected S>D once (first on line 3)" },
		{ HOSTS "links: {}\n", "o.yaml:3:8: links: expected a list, got a map" },
		{ LINKS "shared: [{rate: 1, links: []}]\n", "expected at least one link" },
		{ LINKS "shared: [{links: [S>D]}]\n", "shared: expected the key 'rate'" },
		{ LINKS "shared: [{rate: 1, links: [S>X]}]\n", "there is no host 'X'" },
		{ LINKS "shared: [{rate: 1, links: [S>K]}]\n",
		    "o.yaml:4:28: shared: expected one of the links, got 'S>K'" },
		{ LINKS "shared: [{rate: 1, links: [SK]}]\n", "expected a link such as A>B" },
		{ LINKS "shared: [{rate: 1, links: [S>D, S>D]}]\n",
		    "o.yaml:4:33: shared: expected each link once" },
		{ LINKS "windows: [{link: S>D, from: 5s, until: 5s, rate: 1}]\n",
		    "expected 'from' before 'until'" },
		{ LINKS "windows: [{link: S>D, from: 5s, until: 9s}]\n", "expected the key 'rate'" },
		{ LINKS "windows: [{link: S>D, until: 9s, rate: 1},\n  {link: S>D, from: 8s, rate: 2}]\n",
		    "o.yaml:5:3: window: expected no overlap with the window of the same link on "
		    "line 4" },
		{ LINKS "windows: [{link: S>K, rate: 1}]\n", "window: expected one of the links" },
		{ LINKS "impact: 10\n", "o.yaml:4:9: impact: expected a 'curve' at some link" },
		{ LINKS "impact: 1e1\n", "o.yaml:4:9: overlay: impact: expected per cent from 0 to 100" },
		{ LINKS "impact: 101\n", "impact: expected per cent" },
		{ LINK_WITH("rate: 5, curve: {1: 5}"), "o.yaml:3:9: link: expected 'rate' or 'curve', got both" },
		{ LINK_WITH("curve: {}"), "o.yaml:3:33: link: curve: expected at least one point" },
		{ LINK_WITH("curve: 5Mbit/s"), "o.yaml:3:33: curve: expected a map" },
		{ LINK_WITH("curve: {one: 5}"), "o.yaml:3:34: curve: expected a number of streams from 1 to" },
		{ LINK_WITH("curve: {0: 5}"), "expected a number of streams from 1 to 1000, got '0'" },
		{ LINK_WITH("curve: {1: 5x}"), "o.yaml:3:37: curve: expected a rate such as" },
		{ LINK_WITH("curve: {1: 0}"), "o.yaml:3:34: curve: expected a rate above 0" },
		{ LINK_WITH("curve: {1: {rate: 5}}"), "o.yaml:3:37: curve: expected the key 'impact'" },
		{ LINK_WITH("curve: {1: {rate: 5, impcat: 1}}"), "curve: expected rate or impact, got" },
		{ LINK_WITH("curve: {4: 5, 2: 9}"), "o.yaml:3:40: curve: expected more than 4 streams" },
		{ LINK_WITH("curve: {1: 5, 2: 4}"), "o.yaml:3:40: curve: expected at least the rate of 1 str" },
		{ LINK_WITH("curve: {1: 5, 2: 12}"), "o.yaml:3:40: curve: expected no stream to add more" },
		{ LINK_WITH("curve: {2: 10, 4: 15, 5: 18}"), "o.yaml:3:48: curve: expected no stream to" },
		{ LINK_WITH("curve: {1: 5, 2: {rate: 6, impact: 1}}"), "an impact at every point or at none" },
		{ LINK_WITH("curve: {1: {rate: 5, impact: 3}, 2: {rate: 6, impact: 1}}"),
		    "expected at least the impact of 1 stream" },
		{ LINKS "shared: [{rate: 1, curve: {1: 1}, links: [S>D]}]\n",
		    "o.yaml:4:10: shared: expected 'rate' or 'curve', got both" },
		{ LINK_WITH("curve: {1: 5}") "shared: [{rate: 1, links: [S>D]}]\n",
		    "o.yaml:4:28: shared: expected 'curve' in place of 'rate', as this link has one" },
	};
	struct ptcp_overlay *o;
	struct ptcp_err e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		memset(&e, 0, sizeof e);
		assert_int_equal(conf_overlay_parse(&o, bad[i].text, strlen(bad[i].text), "o.yaml",
		    &e), PTCP_ECONFIG);
		if (strstr(e.msg, bad[i].want) == NULL || strncmp(e.msg, "o.yaml:", 7) != 0)
			fail_msg("for <%s>: <%s>, wanted <%s>", bad[i].text, e.msg, bad[i].want);
	}
}

/* Each useful pair is a link: data leaves sources and relays, and enters relays and the destination. */
static void reads_all_pairs(void **state)
{
	static const char text[] = "destination: D\n"
	    "hosts: {S: {path: /a, relay: true}, T: {data: 1GB}, D: {}, K: {relay: true}, E: {}, Z: {data: 0}}\n"
	    "all: {rate: 1Gbit/s, delay: 10ms}\n"
	    "links:\n"
	    "  - {from: T, to: D, rate: 300Mbit/s}\n"
	    "  - {from: E, to: S}\n"
	    "  - {from: S, to: D, curve: {1: 9Mbit/s}, delay: 1ms}\n"
	    "shared: [{rate: 2Gbit/s, links: [K>D, S>K]}]\n";
	static const char *const want[] = { "T>D", "E>S", "S>D", "S>K", "T>S", "T>K", "K>S", "K>D" };
	char buf[CONF_LINK_TEXT_BYTES];
	const char *missing;
	struct ptcp_overlay *o;
	struct ptcp_err e;
	int i;

	(void)state;
	if (conf_overlay_parse(&o, text, sizeof text - 1, "o.yaml", &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(o->nlisted, 3);
	assert_int_equal(o->nlinks, sizeof want / sizeof *want);
	for (i = 0; i < (int)o->nlinks; i++)
		assert_int_equal(conf_overlay_link(o, want[i], buf, &missing), i);
	assert_int_equal(o->links[0].rate_bps, 300000000); /* its own */
	assert_int_equal(o->links[0].delay_ns, 10000000);  /* the default */
	assert_int_equal(o->links[1].rate_bps, 1000000000);
	assert_true(o->links[2].rate_bps == CONF_UNSET);   /* has a curve */
	assert_int_equal(o->links[2].delay_ns, 1000000);
	assert_int_equal(o->links[7].rate_bps, 1000000000);
	assert_int_equal(o->links[7].mark.line, 3);
	assert_int_equal(o->groups[0].links[0], 7);
	conf_overlay_free(o);
}

/* 400 relays: 400 * 400 links and more. */
static void too_many_pairs(void **state)
{
	char *text = malloc(32 * 500), *p = text;
	struct ptcp_overlay *o;
	struct ptcp_err e;
	int i;

	(void)state;
	p += sprintf(p, "destination: D\nall: {}\nhosts:\n  D: {}\n");
	for (i = 0; i < 400; i++)
		p += sprintf(p, "  K%d: {relay: true}\n", i);
	assert_int_equal(conf_overlay_parse(&o, text, (size_t)(p - text), "o", &e), PTCP_ECONFIG);
	assert_non_null(strstr(e.msg, "o:2:6: all: expected at most 100000 links, got 160000"));
	free(text);
}

static void too_many_hosts(void **state)
{
	char *text = malloc(64 * (CONF_HOSTS_MAX + 2)), *p = text;
	struct ptcp_overlay *o;
	struct ptcp_err e;
	int i;

	(void)state;
	p += sprintf(p, "destination: H0\nhosts:\n");
	for (i = 0; i <= CONF_HOSTS_MAX; i++)
		p += sprintf(p, "  H%d: {}\n", i);
	assert_int_equal(conf_overlay_parse(&o, text, (size_t)(p - text), "o", &e), PTCP_ECONFIG);
	assert_non_null(strstr(e.msg, "expected at most 1000 entries, got 1001"));
	free(text);
}

/* Every prefix and damaged bytes of the example: an answer and no leak. */
static void survives_damage(void **state)
{
	char text[sizeof example];
	struct ptcp_overlay *o;
	size_t i, c;

	(void)state;
	for (i = 0; i < sizeof example; i++)
		if (conf_overlay_parse(&o, example, i, "o", NULL) == 0)
			conf_overlay_free(o);
	for (i = 0; i + 1 < sizeof example; i++)
		for (c = 0; c < 6; c++) {
			memcpy(text, example, sizeof example);
			text[i] = "x:\n-{\xff"[c];
			if (conf_overlay_parse(&o, text, sizeof example - 1, "o", NULL) == 0)
				conf_overlay_free(o);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_the_example),
		cmocka_unit_test(reads_curves),
		cmocka_unit_test(errors),
		cmocka_unit_test(reads_all_pairs),
		cmocka_unit_test(too_many_pairs),
		cmocka_unit_test(too_many_hosts),
		cmocka_unit_test(survives_damage),
	};
	return cmocka_run_group_tests_name("conf/overlay", tests, NULL, NULL);
}
