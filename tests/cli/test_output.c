#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "capture.h"
#include "cli/show/output.h"
#include "cli/show/story.h"
#include "cli/show/terminal.h"

static struct capture cap;

static json_t *event(bool json, const struct ptcp_event *ev)
{
	struct output o;

	capture_begin(&cap);
	output_init(&o, "send", &(struct log_opts){ .json = json });
	output_event(&o, ev);
	capture_end(&cap);
	return json_loads(cap.out, JSON_REJECT_DUPLICATES, NULL);
}

static const char *string(json_t *j, const char *key)
{
	return json_string_value(json_object_get(j, key));
}

static void json_progress(void **state)
{
	struct ptcp_event ev = { .type = PTCP_EVENT_PROGRESS, .progress.bytes = 5000000000,
		.progress.total_bytes = UINT64_MAX, .rate_bps = 812.4e6, .eta_s = 12.3456789, .progress.streams = 4 };
	json_t *j = event(true, &ev);

	(void)state;
	assert_string_equal(cap.out, "{\"event\":\"progress\",\"bytes\":5000000000,"
	    "\"total_bytes\":9223372036854775807,\"wire_bytes\":0,\"saved_bytes\":0,\"rate_bps\":812400000,\"eta_s\":12.345679,"
	    "\"streams\":4,\"resumed_bytes\":0,\"activity\":\"transferring\",\"paths\":[]}\n");
	assert_string_equal(cap.err, "");
	json_decref(j);

	ev.eta_s = NAN;
	ev.rate_bps = NAN;
	j = event(true, &ev);
	assert_true(json_is_null(json_object_get(j, "eta_s")));
	assert_int_equal(json_integer_value(json_object_get(j, "rate_bps")), 0);
	json_decref(j);
}

static void json_start_and_streams(void **state)
{
	struct ptcp_event ev = { .type = PTCP_EVENT_START, .peer = "127.0.0.1:7811",
		.peer_fingerprint = "SHA256:x", .eta_s = NAN };
	json_t *j = event(true, &ev);

	(void)state;
	assert_string_equal(string(j, "event"), "start");
	assert_string_equal(string(j, "command"), "send");
	assert_string_equal(string(j, "peer"), "127.0.0.1:7811");
	assert_string_equal(string(j, "fingerprint"), "SHA256:x");
	json_decref(j);

	ev = (struct ptcp_event){ .type = PTCP_EVENT_STREAMS, .from = 4, .to = 3, .text = "lost" };
	j = event(true, &ev);
	assert_string_equal(cap.out,
	    "{\"event\":\"streams\",\"from\":4,\"to\":3,\"reason\":\"lost\"}\n");
	json_decref(j);

	ev = (struct ptcp_event){ .type = PTCP_EVENT_WAITING, .ahead = 14 };
	j = event(true, &ev);
	assert_string_equal(cap.out, "{\"event\":\"waiting\",\"ahead\":14}\n");
	json_decref(j);
	ev.ahead = PTCP_AHEAD_UNKNOWN;
	j = event(true, &ev);
	assert_string_equal(cap.out, "{\"event\":\"waiting\",\"ahead\":null}\n");
	json_decref(j);
	ev.text = "relay r: too busy";
	j = event(true, &ev);
	assert_string_equal(cap.out, "{\"event\":\"waiting\",\"ahead\":null,\"reason\":\"relay r: too busy\"}\n");
	json_decref(j);
}

/* Every name results in a line of valid JSON that contains all bytes of the name. */
static void json_names(void **state)
{
	static const struct { const char *path, *shown, *raw; } names[] = {
		{ "plain", "plain", NULL },
		{ "a\nb\t\"\\\033[2J", "a\nb\t\"\\\033[2J", NULL },
		{ "gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f", NULL },
		{ "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80", NULL },
		{ "\xe2\x80\xae", "\xe2\x80\xae", NULL },
		{ "\xff", "\\377", "/w==" },
		{ "a\xffz", "a\\377z", "Yf96" },
		{ "\xed\xa0\x80x", "\\355\\240\\200x", "7aCAeA==" },
		{ "d\\\xc0\xaf/f", "d\\\\\\300\\257/f", "ZFzAry9m" },
	};
	struct ptcp_event ev = { .type = PTCP_EVENT_FILE, .status = PTCP_FILE_DONE };
	json_t *j;
	size_t i, k;

	(void)state;
	for (i = 0; i < sizeof names / sizeof *names; i++) {
		ev.path = names[i].path;
		j = event(true, &ev);
		assert_non_null(j);
		assert_int_equal(lines_of(cap.out), 1);
		for (k = 0; cap.out[k] != '\0'; k++)
			assert_true((unsigned char)cap.out[k] < 0x7f);
		assert_string_equal(string(j, "path"), names[i].shown);
		assert_string_equal(string(j, "status"), "done");
		assert_true(json_is_null(json_object_get(j, "error")));
		if (names[i].raw == NULL)
			assert_null(json_object_get(j, "path_raw"));
		else
			assert_string_equal(string(j, "path_raw"), names[i].raw);
		json_decref(j);
	}
}

/* A failed file is a line on stderr in both forms, with an escaped name. */
static void failed_file(void **state)
{
	char path[4200];
	struct ptcp_event ev = { .type = PTCP_EVENT_FILE, .status = PTCP_FILE_FAILED, .path = path,
		.text = "Permission denied", .code = PTCP_EIO };
	json_t *j;

	(void)state;
	strcpy(path, "d/\033]0;x\007\n\xff");
	assert_null(event(false, &ev));
	assert_string_equal(cap.out, "");
	assert_string_equal(cap.err, "ptcp: d/\\033]0;x\\007\\012\\377: Permission denied\n");
	j = event(true, &ev);
	assert_string_equal(cap.err, "ptcp: d/\\033]0;x\\007\\012\\377: Permission denied\n");
	assert_string_equal(string(j, "status"), "failed");
	assert_string_equal(string(j, "error"), "Permission denied");
	json_decref(j);

	memset(path, '\001', sizeof path - 1); /* a path of 4 kB is printed in full */
	path[sizeof path - 1] = '\0';
	ev.text = NULL;
	event(false, &ev);
	assert_int_equal(lines_of(cap.err), 1);
	assert_int_equal(strlen(cap.err),
	    strlen("ptcp: : input/output error\n") + 4 * (sizeof path - 1));
}

static void warning(void **state)
{
	struct ptcp_event ev = { .type = PTCP_EVENT_WARNING, .text = "pipe: skipped" };

	(void)state;
	event(false, &ev);
	assert_string_equal(cap.err, "ptcp: warning: pipe: skipped\n");
	json_decref(event(true, &ev));
	assert_string_equal(cap.out, "{\"event\":\"warning\",\"text\":\"pipe: skipped\"}\n");
	assert_string_equal(cap.err, "ptcp: warning: pipe: skipped\n");
}

static const struct ptcp_result result = { .size = sizeof result, .progress.file_bytes = 900000007,
	.progress.bytes = 900000007, .progress.wire_bytes = 1000000000, /* a tenth twice */
	.progress.resumed_bytes = 7, .progress.files = 12, .progress.failed = 2, .seconds = 2,
	.copied_bytes = 100000000, .probed_s = 1.5, .compared_bytes = 262144,
	.compress_level = 3, .progress.max_streams = 8,
	.spent_s = { [PTCP_SPENT_PEER_DISK] = 1.5, [PTCP_SPENT_WINDOW] = 0.4, [PTCP_SPENT_IMPACT] = 0.1 } };

/* Paths of the options, and of the last event. */
static const char *const routes[] = { "a:1,b", "direct" };
static const struct ptcp_path carried[] = { { "", 600000000, 8e8, 2, 0, 0, 0, 0 },
	{ "", 400000000, 0, 0, 0, 0, 0, 0 } };
static size_t n_carried = 1;

static int end(bool json, bool quiet, bool started, int code, const char *msg)
{
	struct ptcp_event ev = { .type = PTCP_EVENT_PROGRESS, .paths = carried, .n_paths = n_carried };
	struct output o;
	struct ptcp_err e = { .code = code };
	int status;

	snprintf(e.msg, sizeof e.msg, "%s", msg);
	capture_begin(&cap);
	output_init(&o, "recv", &(struct log_opts){ .json = json, .quiet = quiet });
	o.routes = n_carried > 1 ? routes : NULL;
	if (started) {
		output_event(&o, &ev);
		capture_end(&cap);
		capture_begin(&cap);
	}
	status = output_end(&o, code, &result, &e);
	capture_end(&cap);
	return status;
}

/* A warning once the deadline cannot be met, also with --quiet; at the end, how it was met. */
static void deadlines(void **state)
{
	struct ptcp_deadline d = { .at_s = 1795981251, .streams = 3, .floor_bps = INFINITY, .impact_percent = 7,
		.end_s = 1795981336.5, .larger_impact_percent = 30, .larger_end_s = NAN };
	const struct ptcp_event ev = { .type = PTCP_EVENT_DEADLINE, .deadline = &d, .text = "too late" };
	struct ptcp_result r = result;
	struct output o;
	int json;

	(void)state;
	r.deadline = d;
	for (json = 0; json < 2; json++) {
		capture_begin(&cap);
		output_init(&o, "send", &(struct log_opts){ .json = json, .quiet = !json });
		output_event(&o, &ev);
		d.possible = true;
		output_event(&o, &ev);
		d.possible = false;
		capture_end(&cap);
		assert_string_equal(cap.err,
		    json ? "ptcp: warning: too late\nptcp: too late\n" : "ptcp: warning: too late\n");
	}
	assert_memory_equal(cap.out, "{\"at\":1795981251,\"possible\":false,\"streams\":3,\"floor_bps\":null,"
	    "\"impact_percent\":7.0,\"end\":1795981336,\"event\":\"deadline\",\"text\":\"too late\","
	    "\"larger_impact_percent\":30.0,\"larger_end\":null}\n", 150);
	capture_begin(&cap);
	output_init(&o, "send", &(struct log_opts){ .json = false });
	output_end(&o, 0, &r, NULL);
	capture_end(&cap);
	assert_non_null(strstr(cap.err, "missed the deadline by 1 m 26 s\n"));
	r.deadline.possible = true;
	r.deadline.impact_percent = NAN;
	capture_begin(&cap);
	output_end(&o, 0, &r, NULL);
	capture_end(&cap);
	assert_non_null(strstr(cap.err, "how much competing flows were slowed is not known\n"));
}

/* What lies below a failed directory is counted, after the cause; programs learn of each. */
static void below_a_failed_directory(void **state)
{
	struct ptcp_event cause = { .type = PTCP_EVENT_FILE, .status = PTCP_FILE_FAILED, .path = "d0", .text = "denied",
		.code = PTCP_EIO };
	struct ptcp_event below = { .type = PTCP_EVENT_FILE, .status = PTCP_FILE_FAILED, .path = "d0/f", .text = "lost",
		.code = PTCP_EPARENT };
	struct ptcp_err e = { .code = PTCP_EPARTIAL, .msg = "transfer: failed" };
	struct output o;
	int json;

	(void)state;
	for (json = 0; json < 2; json++) {
		capture_begin(&cap);
		output_init(&o, "send", &(struct log_opts){ .json = json });
		output_event(&o, &cause);
		output_event(&o, &below);
		output_event(&o, &below);
		output_end(&o, PTCP_EPARTIAL, &result, &e);
		capture_end(&cap);
		assert_string_equal(cap.err, "ptcp: d0: denied\n"
		    "ptcp: 2 entries below failed directories, not transferred (see above)\nptcp: transfer: failed\n");
		assert_int_equal(lines_of(cap.out), json ? 4 : 0);
	}
}

static void json_end(void **state)
{
	(void)state;
	assert_int_equal(end(true, false, true, 0, ""), 0);
	assert_string_equal(cap.out, "{\"event\":\"end\",\"ok\":true,\"exit\":0,\"error\":null,\"cause\":null,"
	    "\"bytes\":900000007,\"wire_bytes\":1000000000,\"files\":12,\"failed\":2,"
	    "\"resumed_bytes\":7,\"seconds\":2.0,\"throughput_bps\":3600000000,\"streams\":8,"
	    "\"paths\":[{\"via\":[],\"bytes\":600000000}],\"saved_bytes\":0,\"copied_bytes\":100000000,\"probed_s\":1.5,\"compared_bytes\":262144,"
	    "\"compress_level\":3,\"up_to_date\":0,\"up_to_date_bytes\":0,"
	    "\"time_s\":{\"disk\":0.0,\"peer_disk\":1.5,\"processor\":0.0,\"peer_processor\":0.0,\"verifying\":0.0,\"path\":0.0,"
	    "\"window\":0.4,\"buffer\":0.0,\"impact\":0.1,\"limit\":0.0,\"idle\":0.0},"
	    "\"deleted\":0,\"vanished\":0,\"advised_streams\":null,\"predicted_bps\":null,"
	    "\"predicted_impact_percent\":null,\"measured_bps\":null,\"from_history\":false,"
	    "\"fastest_streams\":null,\"fastest_bps\":null,\"fastest_impact_percent\":null,\"deadline\":null,"
	    "\"congestion\":null}\n");
	assert_string_equal(cap.err, "");
	n_carried = 2;
	assert_int_equal(end(true, false, true, 0, ""), 0);
	assert_non_null(strstr(cap.out, "\"paths\":[{\"via\":[\"a:1\",\"b\"],\"bytes\":600000000},"
	    "{\"via\":[],\"bytes\":400000000}],\"saved_bytes\":0,\"copied_bytes\""));
	assert_int_equal(end(false, false, true, 0, ""), 0);
	assert_non_null(strstr(cap.err, "\n  via a:1,b: 600 MB\n  direct: 400 MB\n"));
	n_carried = 1;

	assert_int_equal(end(true, false, false, PTCP_ECONNECT, "h:7811: refused (start it)"), 3);
	assert_non_null(strstr(cap.out, "\"ok\":false,\"exit\":3,\"error\":\"h:7811: refused (start it)\""));
	assert_non_null(strstr(cap.out, "\"paths\":[]"));
	assert_string_equal(cap.err, "ptcp: h:7811: refused (start it)\n");
}

static void text_end(void **state)
{
	(void)state;
	assert_int_equal(end(false, false, true, 0, ""), 0);
	assert_string_equal(cap.out, "");
	assert_string_equal(cap.err,
	    "received 12 files, 900 MB in 2.00 s, 3.60 Gbit/s, 8 streams\n"
	    "time: 75 % the other host's disk, 20 % path (limited by the receiver's window), 5 % impact budget\n"
	    "bytes: 900 MB delivered, 1.00 GB sent on the wire, 7 B equal already (of 262 kB compared)\n"
	    "sent again: 100 MB (10 %), late blocks and those of lost streams\n");
	assert_int_equal(end(false, true, true, 0, ""), 0);
	assert_string_equal(cap.err, "");
	/* a failure prints a single line, also with quiet */
	assert_int_equal(end(false, true, true, PTCP_EPARTIAL, "2 of 14 files failed"), 6);
	assert_string_equal(cap.err, "ptcp: 2 of 14 files failed\n");
	assert_int_equal(end(false, false, true, PTCP_ENOSPC, ""), 1);
	assert_string_equal(cap.err, "ptcp: no space left\n");
}

static void status_line(void **state)
{
	struct ptcp_event ev = { .type = PTCP_EVENT_PROGRESS, .progress.bytes = 1250000000,
		.progress.total_bytes = 2500000000, .progress.total_known = true, .rate_bps = 812e6, .eta_s = 11.2,
		.progress.streams = 4 };
	char line[256];
	unsigned width;

	(void)state;
	assert_string_equal(output_status_text(line, sizeof line, 80, &ev),
	    " 50%  1.25 GB of 2.50 GB  812 Mbit/s  ETA 12 s  4 streams");
	for (width = 0; width < 120; width++) {
		output_status_text(line, sizeof line, width, &ev);
		assert_true(strlen(line) < width || line[0] == '\0');
	}
	assert_string_equal(output_status_text(line, sizeof line, 38, &ev),
	    " 50%  1.25 GB of 2.50 GB  812 Mbit/s");
	assert_string_equal(output_status_text(line, 30, 80, &ev), " 50%  1.25 GB of 2.50 GB");
	ev.eta_s = 0.2;
	assert_non_null(strstr(output_status_text(line, sizeof line, 80, &ev), "ETA 1 s"));
	ev.eta_s = 3725;
	assert_non_null(strstr(output_status_text(line, sizeof line, 80, &ev), "ETA 1 h 02 m"));
	ev.progress.total_known = false;
	ev.eta_s = NAN;
	ev.progress.streams = 1;
	assert_string_equal(output_status_text(line, sizeof line, 80, &ev),
	    "1.25 GB of 2.50 GB so far  812 Mbit/s  1 stream");
	ev.progress.total_known = true;
	ev.progress.bytes = ev.progress.total_bytes - 1; /* 100 only if complete */
	assert_memory_equal(output_status_text(line, sizeof line, 80, &ev), " 99%", 4);
	ev.progress.bytes = ev.progress.total_bytes = 0;
	assert_memory_equal(output_status_text(line, sizeof line, 80, &ev), "0 B of 0 B", 10);
	/* Of small files the number comes before the rate, of large ones behind the time. */
	ev.progress = (struct ptcp_progress){ .bytes = 500000, .total_bytes = 1000000, .files = 7, .total_files = 20,
		.total_known = true, .streams = 4 };
	ev.eta_s = 12;
	assert_string_equal(output_status_text(line, sizeof line, 90, &ev),
	    " 50%  500 kB of 1.00 MB  7 of 20 files  1421 files/s  ETA 12 s  812 Mbit/s  4 streams");
	ev.progress.bytes *= 100;
	ev.progress.total_bytes *= 100;
	assert_string_equal(output_status_text(line, sizeof line, 90, &ev),
	    " 50%  50.0 MB of 100 MB  812 Mbit/s  ETA 12 s  7 of 20 files  4 streams");
}

/* Files per second where the files are the measure, and of at least a second. */
static void files_per_second(void **state)
{
	const struct story s = { .command = "send", .peer = "h", .arrived_bytes = 40000000 };
	struct ptcp_result r = { .same_files = 0, .seconds = 4,
		.progress = { .files = 20000, .file_bytes = 40000000, .bytes = 40000000, .max_streams = 4 } };
	char text[200];

	(void)state;
	assert_string_equal(story_files(text, sizeof text, &s, &r),
	    "sent 20000 files, 40.0 MB in 4.00 s, 5000 files/s, 80.0 Mbit/s, 4 streams");
	r.progress.files = 40;
	assert_string_equal(story_files(text, sizeof text, &s, &r),
	    "sent 40 files, 40.0 MB in 4.00 s, 80.0 Mbit/s, 4 streams");
	r.progress.files = 20000;
	r.seconds = .5;
	assert_string_equal(story_files(text, sizeof text, &s, &r), "sent 20000 files, 40.0 MB in 0.50 s, 4 streams");
}

/* No status line without a terminal. */
static void no_terminal_no_status(void **state)
{
	struct ptcp_event ev = { .type = PTCP_EVENT_PROGRESS, .progress.bytes = 1, .progress.total_bytes = 2 };

	(void)state;
	event(false, &ev);
	assert_string_equal(cap.out, "");
	assert_string_equal(cap.err, "");
}

/* The status line is overwritten with blanks, and erased before a line of text. */
static void status_is_erased(void **state)
{
	(void)state;
	capture_begin(&cap);
	terminal_status("12345678");
	terminal_status("abc");
	terminal_line("hello");
	terminal_status("");
	capture_end(&cap);
	assert_string_equal(cap.err, "\r12345678\rabc     \r   \rhello\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_progress),
		cmocka_unit_test(json_start_and_streams),
		cmocka_unit_test(json_names),
		cmocka_unit_test(failed_file),
		cmocka_unit_test(warning), cmocka_unit_test(below_a_failed_directory),
		cmocka_unit_test(deadlines),
		cmocka_unit_test(json_end),
		cmocka_unit_test(text_end),
		cmocka_unit_test(status_line),
		cmocka_unit_test(files_per_second), cmocka_unit_test(no_terminal_no_status),
		cmocka_unit_test(status_is_erased),
	};
	return cmocka_run_group_tests_name("cli/output", tests, NULL, NULL);
}
