/* Skeletons of overlay files: hosts by operand, queries of their servers, and the text. */
#ifndef CLI_SKELETON_H
#define CLI_SKELETON_H

#include <ptcp/plan.h>
#include <ptcp/ptcp.h>
#include <stdio.h>

#define SKELETON_NAME_BYTES 65

struct skeleton_host {
	char *address;                  /* HOST[:PORT] */
	char *path;                     /* NULL: none given */
	char name[SKELETON_NAME_BYTES]; /* unique */
	bool relay;
	bool counted;                   /* the server has reported `bytes` */
	uint64_t bytes;
	struct ptcp_err failed;         /* error of the first failed query; code 0: none failed, or none was made */
	struct ptcp_err closed;         /* error of the first source that this relay cannot reach; code 0: none */
	const char *closed_to;          /* name of this source */
};

struct skeleton {
	struct skeleton_host *host; /* the first is the destination */
	size_t n;
};

/* Appends HOST[:PORT][/PATH][=relay]. PTCP_EUSAGE. */
int skeleton_add(struct skeleton *s, const char *operand, struct ptcp_err *e);
/* Names the hosts, by the shortest distinct part of the address. PTCP_EUSAGE: one address twice. */
int skeleton_name(struct skeleton *s, struct ptcp_err *e);
void skeleton_fini(struct skeleton *s); /* zeroed is fine */

/* Queries the servers of all hosts except the destination: reachability, amount of data, and connections of relays to
 * sources. A host without a path becomes a relay if the server serves no files. Failed queries are stored in the hosts.
 * `show`: with a status line. PTCP_ECANCELED, PTCP_ENOMEM. */
int skeleton_ask(struct skeleton *s, const struct ptcp_transfer_opts *o, bool show, struct ptcp_err *e);

/* Whether host `i` has data to collect, as far as known. */
bool skeleton_is_source(const struct skeleton *s, size_t i);
/* The path to collect on a source; valid as long as the host. */
const char *skeleton_path(const struct skeleton_host *h);

/* The text of the overlay file, freed by the caller; the parser of overlays has accepted the text. PTCP_ECONFIG:
 * overlays permit no such name or path. */
int skeleton_text(char **out, const struct skeleton *s, struct ptcp_err *e);

#endif
