/* Lists of digests as sha256sum(1) and its relatives write them, and ptcp sum. */
#ifndef INPUT_MANIFEST_H
#define INPUT_MANIFEST_H

#include <ptcp/ptcp.h>
#include <stdio.h>

/* One digest: "DIGITS  PATH"; several: a line "SHA256 (PATH) = DIGITS" for each. A backslash before the line says that
 * the path has some in place of a line feed, a carriage return, and itself. */
void manifest_print_digests(FILE *to, const char *path, const struct ptcp_file_digest *digest, unsigned n);

struct manifest_entry {
	char *name;             /* raw bytes, as written */
	enum ptcp_digest kind;
	char *hex;              /* in lower case */
};

struct manifest {
	struct manifest_entry *entry; /* in the order of the list */
	size_t n, cap;
	size_t malformed;             /* other lines, without empty ones and comments (#) */
};

/* Reads "DIGITS  NAME", "DIGITS *NAME" or "SHA256 (NAME) = DIGITS", each with a backslash in front if the name is
 * escaped; `path` "-": standard input. `kind`: digest of lines without a name of one; 0: by the number of digits.
 * PTCP_EIO without any such line; on failure the sentence names the file. */
int manifest_read(struct manifest *out, const char *path, enum ptcp_digest kind, struct ptcp_err *e);
void manifest_fini(struct manifest *m); /* zeros are fine */

/* ---- A list that is brought up to date ---- */

/* Reads the list at `path`, which a further list is to replace: empty if there is none. PTCP_EUSAGE if something else
 * has the name. */
int manifest_present(struct manifest *out, const char *path, struct ptcp_err *e);
/* Whether the list has lines of this name, with or without "./"; `drops`: removes them. */
bool manifest_has(struct manifest *m, const char *name, bool drops);
/* Writes the lines that are left. */
void manifest_print(FILE *to, const struct manifest *m);

#endif
