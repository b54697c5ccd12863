#include "cli/sum_lines.h"

#include <ctype.h>
#include <string.h>

#include "cli/show/json.h"

static void print_path(FILE *to, const char *path)
{
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

void sum_print(FILE *to, const struct ptcp_entry *entry)
{
	const char *escaped = strpbrk(entry->path, "\n\r\\") != NULL ? "\\" : "";
	char tag[16];
	unsigned i;

	for (i = 0; i < entry->n_digests; i++)
		if (entry->n_digests == 1) {
			fprintf(to, "%s%s  ", escaped, entry->digest[i].hex);
			print_path(to, entry->path);
			putc('\n', to);
		} else {
			fprintf(to, "%s%s (", escaped, tag_of(entry->digest[i].kind, tag));
			print_path(to, entry->path);
			fprintf(to, ") = %s\n", entry->digest[i].hex);
		}
}

void sum_json(const struct ptcp_entry *entry)
{
	json_t *digests = json_object();
	unsigned i;

	for (i = 0; i < entry->n_digests; i++)
		json_object_set_new(digests, ptcp_digest_name(entry->digest[i].kind),
		    json_string(entry->digest[i].hex));
	json_line(json_pack("{s:s, s:o, s:o, s:f, s:o}", "event", "digest", "path", json_text(entry->path), "bytes",
	    json_count(entry->bytes), "mtime_s", (double)entry->mtime_s + entry->mtime_ns / 1e9, "digests", digests));
}
