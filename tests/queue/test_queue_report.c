/* What a report says about the verification of a job's data, by the options of the job. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "queue/queue_report.h"

/* The report about a job with these options, of whose files so many were there before. */
static void report(char *text, size_t cap, char **options, size_t n, uint64_t files, uint64_t same)
{
	char name[] = "a", dest[] = "ptcp://h/d";
	struct queue_job job = { .name = name, .state = QUEUE_DONE, .ended_s = 100,
		.task = { .destination = dest, .options = { .of = options, .n = n } },
		.recent = { .files = files, .same_files = same, .bytes = 9, .seconds = 1 } }, *jobs[] = { &job };
	const struct job_queue q = { .job = jobs, .n = 1 };
	FILE *f = fmemopen(text, cap, "w");

	assert_non_null(f);
	queue_report(f, &q, "dir", false, 200);
	fclose(f);
	text[cap - 1] = '\0';
}

static void verified(void **state)
{
	static const struct {
		const char *option, *more;
		uint64_t files, same;
		const char *says;
	} cases[] = {
		{ NULL, NULL, 2, 0, "blocks by xxh3\n" },
		{ "no-verify", NULL, 2, 0, "blocks not\n" },
		{ "digest=md5", NULL, 2, 0, "blocks by xxh3, files by md5\n" },
		{ "no-verify", "manifest=list", 2, 0, "blocks not, files by sha256 in list\n" },
		{ NULL, NULL, 2, 1, "blocks by xxh3; those there before by size and time\n" },
		{ NULL, NULL, 2, 2, "those there before by size and time\n" },
		{ "checksum", NULL, 2, 2, "those there before by content\n" },
		{ "size-only", NULL, 2, 2, "those there before by size\n" },
		{ "ignore-existing", "checksum", 2, 2, "those there before by name\n" },
	};
	char text[4096], want[128], option[2][32], *options[2] = { option[0], option[1] };
	size_t i, n;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		n = 0;
		if (cases[i].option != NULL)
			strcpy(option[n++], cases[i].option);
		if (cases[i].more != NULL)
			strcpy(option[n++], cases[i].more);
		report(text, sizeof text, options, n, cases[i].files, cases[i].same);
		snprintf(want, sizeof want, "verified: %s", cases[i].says);
		if (strstr(text, want) == NULL)
			fail_msg("case %zu: %s", i, text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(verified) };

	return cmocka_run_group_tests_name("queue/queue_report", tests, NULL, NULL);
}
