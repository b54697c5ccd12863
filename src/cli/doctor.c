#include "cli/doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/json.h"
#include "core/err.h"

const char *verdict_name(enum verdict v)
{
	static const char *const names[] = { "ok", "warn", "bad" };

	return names[v];
}

struct finding *doctor_add(struct doctor *d, const char *name, enum verdict v, double value,
    const char *unit, const char *fmt, ...)
{
	static struct finding beyond; /* never shown: there are not so many looks */
	struct finding *f = d->n < FINDINGS_MAX ? &d->of[d->n++] : &beyond;
	va_list ap;

	*f = (struct finding){ .name = name, .verdict = v, .value = value, .unit = unit };
	va_start(ap, fmt);
	vsnprintf(f->found, sizeof f->found, fmt, ap);
	va_end(ap);
	return f;
}

void doctor_mend(struct finding *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(f->mend, sizeof f->mend, fmt, ap);
	va_end(ap);
}

bool doctor_read(const struct doctor *d, char *out, size_t cap, const char *fmt, ...)
{
	char path[512];
	size_t n;
	va_list ap;
	bool got;
	FILE *f;

	n = (size_t)snprintf(path, sizeof path, "%s", d->root);
	if (n >= sizeof path)
		return false;
	va_start(ap, fmt);
	vsnprintf(path + n, sizeof path - n, fmt, ap);
	va_end(ap);
	if ((f = fopen(path, "re")) == NULL)
		return false;
	got = fgets(out, (int)cap, f) != NULL;
	fclose(f);
	if (got)
		out[strcspn(out, "\n")] = '\0';
	return got;
}

static void tally(const struct doctor *d, size_t count[3])
{
	size_t i;

	count[0] = count[1] = count[2] = 0;
	for (i = 0; i < d->n; i++)
		count[d->of[i].verdict]++;
}

void doctor_text(const struct doctor *d)
{
	size_t i, count[3];

	for (i = 0; i < d->n; i++) {
		const struct finding *f = &d->of[i];

		printf("%-4s  %-18s  %s\n", verdict_name(f->verdict), f->name, f->found);
		if (f->mend[0] != '\0')
			printf("      %-18s  -> %s\n", "", f->mend);
	}
	tally(d, count);
	printf("\n%zu ok, %zu warn, %zu bad\n", count[0], count[1], count[2]);
}

static json_t *finding_json(const struct finding *f)
{
	return json_pack("{s:s, s:s, s:s, s:o, s:s?, s:s?}", "name", f->name, "verdict",
	    verdict_name(f->verdict), "found", f->found, "value",
	    f->unit != NULL ? json_real(f->value) : json_null(), "unit", f->unit, "mend",
	    f->mend[0] != '\0' ? f->mend : NULL);
}

int doctor_json(const struct doctor *d, struct ptcp_err *e)
{
	json_t *list = json_array();
	size_t i, count[3];

	for (i = 0; i < d->n; i++)
		json_array_append_new(list, finding_json(&d->of[i]));
	tally(d, count);
	list = json_whole(list, d->n);
	return list != NULL && json_line(json_pack("{s:o, s:I, s:I, s:I}", "findings", list, "ok",
	    (json_int_t)count[0], "warn", (json_int_t)count[1], "bad", (json_int_t)count[2])) == 0 ? 0 : err_nomem(e);
}
