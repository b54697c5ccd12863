/* Findings of doctor, from files in place of /proc and /sys, and from a fake library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <jansson.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "capture.h"
#include "cli/doctor/doctor.h"
#include "fake_ptcp.h"

static char root[64];
static struct capture cap;

/* Writes a file below the root, with missing directories. */
static void put(const char *path, const char *text)
{
	char all[256], *slash;
	FILE *f;

	snprintf(all, sizeof all, "%s%s", root, path);
	for (slash = strchr(all + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(all, 0755);
		*slash = '/';
	}
	assert_non_null(f = fopen(all, "w"));
	fprintf(f, "%s\n", text);
	assert_int_equal(fclose(f), 0);
}

static const struct finding *find(const struct doctor *d, const char *name)
{
	size_t i;

	for (i = 0; i < d->n; i++)
		if (strcmp(d->of[i].name, name) == 0)
			return &d->of[i];
	return NULL;
}

static void assert_finding(const struct doctor *d, const char *name, enum verdict v, const char *fix)
{
	const struct finding *f = find(d, name);

	if (f == NULL || f->verdict != v || (v == VERDICT_OK) != (f->fix[0] == '\0') || f->found[0] == '\0' ||
	    (fix != NULL && strstr(f->fix, fix) == NULL))
		fail_msg("%s: %s '%s' '%s'", name, f != NULL ? verdict_name(f->verdict) : "missing",
		    f != NULL ? f->found : "", f != NULL ? f->fix : "");
}

static void kernel_settings(void **state)
{
	static const struct {
		const char *path, *text, *name;
		enum verdict verdict;
		const char *fix;
	} cases[] = {
		{ "tcp_rmem", "4096\t131072\t67108864", "receive-buffer", VERDICT_OK, NULL },
		{ "tcp_rmem", "4096\t131072\t33554432", "receive-buffer", VERDICT_OK, NULL },
		{ "tcp_rmem", "4096\t131072\t33554431", "receive-buffer", VERDICT_WARN,
		    "net.ipv4.tcp_rmem='4096 131072 67108864'" },
		{ "tcp_rmem", "4096\t131072\t1000000", "receive-buffer", VERDICT_BAD, "tcp_rmem" },
		{ "tcp_wmem", "4096 16384 4194304", "send-buffer", VERDICT_WARN,
		    "net.ipv4.tcp_wmem='4096 65536 67108864'" },
		{ "tcp_sack", "0", "tcp-options", VERDICT_BAD, "net.ipv4.tcp_sack=1" },
		{ "tcp_sack", "1", "tcp-options", VERDICT_OK, NULL },
		{ "tcp_congestion_control", "reno", "congestion-control", VERDICT_WARN, "=cubic" },
		{ "tcp_congestion_control", "bbr", "congestion-control", VERDICT_OK, NULL },
		{ "../core/default_qdisc", "pfifo_fast", "default-qdisc", VERDICT_WARN, "default_qdisc=fq" },
		{ "../core/default_qdisc", "fq", "default-qdisc", VERDICT_OK, NULL },
	};
	struct doctor d;
	char path[128];
	size_t i;

	(void)state;
	put("/proc/sys/net/ipv4/tcp_window_scaling", "1");
	put("/proc/sys/net/ipv4/tcp_timestamps", "1");
	put("/proc/sys/net/core/x", "");
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		snprintf(path, sizeof path, "/proc/sys/net/ipv4/%s", cases[i].path);
		put(path, cases[i].text);
		d = (struct doctor){ .root = root };
		doctor_host(&d);
		assert_finding(&d, cases[i].name, cases[i].verdict, cases[i].fix);
	}
	assert_true(find(&d, "send-buffer")->value == 4194304);
	assert_string_equal(find(&d, "send-buffer")->unit, "bytes");
	put("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet");
	put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave");
	d = (struct doctor){ .root = root };
	doctor_host(&d);
	assert_finding(&d, "clock-source", VERDICT_WARN, "echo tsc");
	assert_finding(&d, "cpu-governor", VERDICT_WARN, "performance");
	assert_non_null(find(&d, "descriptors"));
	/* no findings about missing files */
	d = (struct doctor){ .root = "/proc/nonexistent" };
	doctor_host(&d);
	assert_null(find(&d, "send-buffer"));
	assert_null(find(&d, "cpu-governor"));
}

static void interfaces(void **state)
{
	struct doctor d = { .root = root };
	double speed;

	(void)state;
	put("/sys/class/net/eth9/mtu", "1500");
	put("/sys/class/net/eth9/speed", "1000");
	doctor_interface(&d, "eth9", &speed);
	assert_true(speed == 1e9);
	assert_finding(&d, "mtu", VERDICT_OK, NULL);
	assert_finding(&d, "interface", VERDICT_OK, NULL);
	put("/sys/class/net/eth9/speed", "25000");
	d.n = 0;
	doctor_interface(&d, "eth9", &speed);
	assert_finding(&d, "mtu", VERDICT_WARN, "ip link set dev eth9 mtu 9000");
	put("/sys/class/net/eth9/mtu", "9000");
	put("/proc/sys/net/ipv4/tcp_mtu_probing", "0");
	d.n = 0;
	doctor_interface(&d, "eth9", &speed);
	assert_finding(&d, "mtu", VERDICT_OK, NULL);
	assert_finding(&d, "mtu-probing", VERDICT_WARN, "tcp_mtu_probing=1");
	put("/sys/class/net/eth9/speed", "-1");
	put("/sys/class/net/eth9/mtu", "1280");
	d.n = 0;
	doctor_interface(&d, "eth9", &speed);
	assert_true(speed == 0);
	assert_finding(&d, "mtu", VERDICT_OK, NULL); /* usual in tunnels: a larger one would break them */
	assert_null(find(&d, "qdisc")); /* eth9 does not exist */
	d.n = 0;
	doctor_interface(&d, "lo", &speed);
	assert_non_null(find(&d, "qdisc"));
}

static void processors(void **state)
{
	struct doctor d = { .root = root };
	struct ptcp_err e;

	(void)state;
	fake.aes_bps = 20e9, fake.chacha_bps = 5e9, fake.hash_bps = 100e9;
	assert_int_equal(doctor_speed(&d, &e), 0);
	assert_finding(&d, "aes128gcm", VERDICT_OK, NULL);
	assert_finding(&d, "xxh3", VERDICT_OK, NULL);
	fake.aes_bps = 1e9;
	d.n = 0;
	assert_int_equal(doctor_speed(&d, &e), 0);
	assert_finding(&d, "aes128gcm", VERDICT_WARN, "--cipher chacha20");
	assert_true(find(&d, "aes128gcm")->value == 1e9);
}

static void old_openssl(void **state)
{
	static const char flags[] =
	    "processor\t: 0\nflags\t\t: fpu avx512f avx512dq avx512bw avx512vl vaes vpclmulqdq\n";
	static const struct {
		const char *openssl;
		enum verdict verdict;
	} cases[] = { { "3.0.22", VERDICT_WARN }, { "3.1.0", VERDICT_OK }, { "4.0.0", VERDICT_OK } };
	struct doctor d = { .root = root };
	struct ptcp_err e;
	size_t i;

	(void)state;
	fake.aes_bps = 20e9, fake.chacha_bps = 5e9, fake.hash_bps = 100e9;
	put("/proc/cpuinfo", flags);
	for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		fake.openssl = cases[i].openssl;
		d.n = 0;
		assert_int_equal(doctor_speed(&d, &e), 0);
		assert_finding(&d, "openssl", cases[i].verdict, NULL);
	}
	fake.openssl = "3.0.22";
	put("/proc/cpuinfo", "flags\t\t: fpu aes avx2 vaes"); /* OpenSSL 3.1 would be no faster */
	d.n = 0;
	assert_int_equal(doctor_speed(&d, &e), 0);
	assert_null(find(&d, "openssl"));
}

static void disks(void **state)
{
	struct doctor d = { .root = root };
	struct ptcp_err e;

	(void)state;
	assert_int_equal(doctor_disk(&d, root, &e), 0);
	assert_non_null(find(&d, "disk-write"));
	assert_true(find(&d, "disk-read")->value > 0);
	assert_int_equal(doctor_disk(&d, "/proc/nonexistent", &e), PTCP_EIO);
	assert_non_null(strstr(e.msg, "/proc/nonexistent"));
}

/* The device in the command is that of the directory. */
static void devices(void **state)
{
	struct doctor d = { .root = root };
	struct finding f = { .fix = "" };
	char link[200];
	struct stat st;

	(void)state;
	doctor_fix_reading(&d, &f, root);
	assert_null(strstr(f.fix, "/dev/"));
	assert_int_equal(stat(root, &st), 0);
	put("/sys/dev/block/x", "");
	snprintf(link, sizeof link, "%s/sys/dev/block/%u:%u", root, major(st.st_dev), minor(st.st_dev));
	assert_int_equal(symlink("../../devices/pci0000:00/block/sdx/sdx3", link), 0);
	doctor_fix_reading(&d, &f, root);
	assert_string_equal(f.fix, "blockdev --setra 16384 /dev/sdx3");
	doctor_room(&d, root);
	assert_non_null(find(&d, "disk-space"));
	assert_true(find(&d, "disk-space")->value > 0);
	d.n = 0;
	doctor_room(&d, "/proc"); /* has no room */
	assert_finding(&d, "disk-space", VERDICT_BAD, "ptcp clean /proc");
}

static void file_systems(void **state)
{
	struct doctor d = { .root = root };

	(void)state;
	fake.file_system = (struct ptcp_file_system){ .type = "ext4", .time_s = 1e-9, .name_max = 255 };
	doctor_file_system(&d, root);
	assert_finding(&d, "file-system", VERDICT_OK, NULL);
	assert_string_equal(find(&d, "file-system")->found, "ext4, keeps all attributes of files");
	assert_string_equal(find(&d, "file-times")->found, "multiples of 1e-09 s");
	assert_string_equal(find(&d, "file-names")->found, "up to 255 bytes");
	d.n = 0;
	fake.file_system = (struct ptcp_file_system){ .lacks = "no modes", .time_s = 2, .name_max = 255,
		.refused = ":\n" };
	doctor_file_system(&d, root);
	assert_finding(&d, "file-system", VERDICT_WARN, "receive on another file system");
	assert_string_equal(find(&d, "file-system")->found, "of unknown type: no modes");
	assert_true(find(&d, "file-times")->value == 2);
	assert_string_equal(find(&d, "file-names")->found, "up to 255 bytes, without :\\012");
	d.n = 0;
	fake.file_system_code = PTCP_EIO;
	fake.sentence = "x: Read-only file system";
	doctor_file_system(&d, root);
	assert_finding(&d, "file-system", VERDICT_WARN, "--dir");
	assert_int_equal(d.n, 1);
}

/* Port 7811 is 1E83; the last column here is the user. */
static void put_listener(const char *table, const char *address, const char *state, unsigned uid)
{
	char path[64], text[500];

	snprintf(path, sizeof path, "/proc/net/%s", table);
	snprintf(text, sizeof text, "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid "
	    " timeout\n   0: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 634 "
	    "1 0 100 0 0 10 0\n   1: %s:1E83 00000000:0000 %s 00000000:00000000 00:00000000 00000000 %5u        0 634 "
	    "1 0 100 0 0 10 0", address, state, uid);
	put(path, text);
}

static void servers(void **state)
{
	struct doctor d = { .root = root };

	(void)state;
	put("/proc/net/tcp6", "");
	fake.n_clients = 0;
	put_listener("tcp", "00000000", "01", geteuid()); /* a connection */
	doctor_server(&d);
	assert_finding(&d, "server", VERDICT_OK, NULL);
	assert_null(find(&d, "authorized"));
	fake.n_clients = 1; /* somebody is expected */
	d.n = 0;
	doctor_server(&d);
	assert_finding(&d, "server", VERDICT_WARN, "ptcp serve --root DIR");
	put_listener("tcp", htonl(1) == 1 ? "7F000001" : "0100007F", "0A", geteuid());
	d.n = 0;
	doctor_server(&d);
	assert_finding(&d, "server", VERDICT_BAD, "without --listen");
	assert_finding(&d, "authorized", VERDICT_OK, NULL);
	put_listener("tcp6", "00000000000000000000000000000000", "0A", geteuid());
	fake.n_clients = 0;
	d.n = 0;
	doctor_server(&d);
	assert_finding(&d, "server", VERDICT_OK, NULL);
	assert_finding(&d, "authorized", VERDICT_BAD, "ptcp key authorize SHA256:");
	put("/proc/net/tcp", "");
	put_listener("tcp6", "00000000000000000000000000000000", "0A", geteuid() + 1);
	d.n = 0;
	doctor_server(&d);
	assert_finding(&d, "server", VERDICT_OK, NULL);
	assert_finding(&d, "authorized", VERDICT_WARN, "runuser -u ptcp -- ptcp doctor");
}

static void targets(void **state)
{
	static const char *const bad[] = {
		"", "ptcp://", ":7811", "h:0", "h:99999", "h:x", "u@h", "[::1", "h/x", "ssh://h", "h:",
	};
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof sa;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct doctor d = { .root = root };
	struct ptcp_transfer_opts o = { .timeout_s = 5 };
	struct ptcp_err e;
	char target[64];
	size_t i;

	(void)state;
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof sa), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&sa, &n), 0);
	put("/proc/sys/net/ipv4/tcp_rmem", "4096 131072 6291456");
	put("/proc/sys/net/ipv4/tcp_wmem", "4096 16384 4194304");
	snprintf(target, sizeof target, "ptcp://127.0.0.1:%u/", ntohs(sa.sin_port));
	assert_int_equal(doctor_path(&d, target, 1e9, &o, &e), 0);
	assert_finding(&d, "rtt", VERDICT_OK, NULL);
	assert_true(find(&d, "rtt")->value > 0 && find(&d, "rtt")->value < 1);
	assert_true(find(&d, "path-mtu")->value >= 1280);
	assert_finding(&d, "buffers-for-path", VERDICT_OK, NULL);
	d.n = 0; /* more than fits into buffers */
	assert_int_equal(doctor_path(&d, target, 1e15, &o, &e), 0);
	assert_int_not_equal(find(&d, "buffers-for-path")->verdict, VERDICT_OK);
	assert_non_null(strstr(find(&d, "buffers-for-path")->fix, "--streams"));
	close(fd);
	assert_int_equal(doctor_path(&d, target, 0, &o, &e), PTCP_ECONNECT);
	assert_non_null(strstr(e.msg, ": Connection refused (run there: ptcp serve --root DIR"));
	for (i = 0; i < sizeof bad / sizeof *bad; i++)
		if (doctor_path(&d, bad[i], 0, &o, &e) != PTCP_EUSAGE)
			fail_msg("'%s' is a target", bad[i]);
	d.n = 0;
	assert_int_equal(doctor_path(&d, NULL, 0, &o, &e), 0);
	assert_non_null(find(&d, "interface"));
}

static void shown(void **state)
{
	struct doctor d = { .root = root };
	struct ptcp_err e;
	json_t *j, *list;

	(void)state;
	doctor_add(&d, "one", VERDICT_OK, 5, "bytes", "all %s", "well");
	doctor_fix(doctor_add(&d, "two", VERDICT_BAD, 0, NULL, "broken"), "repair");
	capture_begin(&cap);
	doctor_text(&d);
	capture_end(&cap);
	assert_non_null(strstr(cap.out, "ok    one"));
	assert_non_null(strstr(cap.out, "-> repair\n"));
	assert_non_null(strstr(cap.out, "\n1 ok, 0 warn, 1 bad\n"));
	capture_begin(&cap);
	assert_int_equal(doctor_json(&d, &e), 0);
	capture_end(&cap);
	assert_non_null(j = json_loads(cap.out, 0, NULL));
	list = json_object_get(j, "findings");
	assert_int_equal(json_array_size(list), 2);
	assert_true(json_real_value(json_object_get(json_array_get(list, 0), "value")) == 5);
	assert_true(json_is_null(json_object_get(json_array_get(list, 0), "fix")));
	assert_true(json_is_null(json_object_get(json_array_get(list, 1), "value")));
	assert_string_equal(json_string_value(json_object_get(json_array_get(list, 1), "fix")), "repair");
	assert_int_equal(json_integer_value(json_object_get(j, "bad")), 1);
	json_decref(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernel_settings),
		cmocka_unit_test(interfaces),
		cmocka_unit_test(processors), cmocka_unit_test(old_openssl),
		cmocka_unit_test(disks),
		cmocka_unit_test(devices), cmocka_unit_test(file_systems),
		cmocka_unit_test(servers),
		cmocka_unit_test(targets),
		cmocka_unit_test(shown),
	};
	char remove[128];
	int r;

	snprintf(root, sizeof root, "%s/ptcp-doctor.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	if (mkdtemp(root) == NULL)
		return 1;
	fake_reset();
	r = cmocka_run_group_tests(tests, NULL, NULL);
	snprintf(remove, sizeof remove, "rm -rf '%s'", root);
	return system(remove) == 0 ? r : 1;
}
