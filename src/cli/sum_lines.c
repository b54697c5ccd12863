#include "cli/sum_lines.h"

#include <ptcp/ptcp.h>

#include "cli/show/json.h"

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
