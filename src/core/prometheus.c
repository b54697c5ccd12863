#include "core/prometheus.h"

#include <sys/stat.h>

#include "core/atomic_file.h"
#include "core/text.h"

void prometheus_head(FILE *f, const char *name, const char *type, const char *help)
{
	fprintf(f, "# HELP ptcp_%s %s\n# TYPE ptcp_%s %s\n", name, help, name, type);
}

void prometheus_gauge(FILE *f, const char *name, const char *help, double value)
{
	prometheus_head(f, name, "gauge", help);
	fprintf(f, "ptcp_%s %.16g\n", name, value);
}

void prometheus_text(FILE *f, const char *text)
{
	for (; *text != '\0'; text++)
		if (*text == '\n')
			fputs("\\n", f);
		else
			fprintf(f, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
}

void prometheus_sample(FILE *f, const char *name, const char *label, const char *text, double value)
{
	fprintf(f, "ptcp_%s{%s=\"", name, label);
	prometheus_text(f, text);
	fprintf(f, "\"} %.16g\n", value);
}

int prometheus_write(const char *path, void (*print)(FILE *f, void *arg), void *arg, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	struct atomic_file n;

	text_escape(shown, sizeof shown, path);
	if (!atomic_file_begin(&n, path)) /* the collector ignores the temporary name, which does not end in .prom */
		return err_sys(e, PTCP_ECONFIG, "--metrics %s", shown);
	print(n.f, arg);
	fchmod(fileno(n.f), 0644);
	return atomic_file_end(&n, true, false) ? 0 : err_sys(e, PTCP_ECONFIG, "--metrics %s", shown);
}
