#include "cli/sum_lines.h"

#include <ctype.h>
#include <string.h>

#include "cli/show/json.h"

static void print_path(FILE *to, const char *path)
{
	if (strcmp(path, "-") == 0)
		fputs("./", to); /* sha256sum --check would read standard input */
	for (; *path != '\0'; path++)
		if (*path == '\n' || *path == '\r' || *path == '\\')
			fprintf(to, "\\%c", *path == '\n' ? 'n' : *path == '\r' ? 'r' : '\\');
		else
			putc(*path, to);
}

/* The name of a digest in such a line: that of coreutils. */
static const char *tag_of(enum ptcp_digest d, char out[16])
{
	const char *name = ptcp_digest_name(d);
	size_t i;

	for (i = 0; name[i] != '\0' && i < 15; i++)
		out[i] = (char)toupper((unsigned char)name[i]);
	out[i] = '\0';
	return d == PTCP_BLAKE2B ? "BLAKE2b" : out;
}

void sum_print(FILE *to, const char *path, const struct ptcp_file_digest *digest, unsigned n)
{
	const char *escaped = strpbrk(path, "\n\r\\") != NULL ? "\\" : "";
	char tag[16];
	unsigned i;

	for (i = 0; i < n; i++)
		if (n == 1) {
			fprintf(to, "%s%s  ", escaped, digest[i].hex);
			print_path(to, path);
			putc('\n', to);
		} else {
			fprintf(to, "%s%s (", escaped, tag_of(digest[i].kind, tag));
			print_path(to, path);
			fprintf(to, ") = %s\n", digest[i].hex);
		}
}

struct json_t *sum_object(const struct ptcp_file_digest *digest, unsigned n)
{
	json_t *digests = json_object();
	unsigned i;

	for (i = 0; i < n; i++)
		json_object_set_new(digests, ptcp_digest_name(digest[i].kind), json_string(digest[i].hex));
	return digests;
}

void sum_json(const struct ptcp_entry *entry)
{
	json_line(json_pack("{s:s, s:o, s:o, s:f, s:o}", "event", "digest", "path", json_text(entry->path), "bytes",
	    json_count(entry->bytes), "mtime_s", (double)entry->mtime_s + entry->mtime_ns / 1e9, "digests",
	    sum_object(entry->digest, entry->n_digests)));
}
