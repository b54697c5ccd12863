/* Owner and group of files, by name and number. Looking names up may ask a directory service and
 * block for long: I/O threads only. Setting belongs behind extended attributes and before the mode,
 * from which a change of owner takes the setuid and setgid bits. */
#ifndef STORE_OWNER_H
#define STORE_OWNER_H

#include <grp.h>
#include <pwd.h>

#include "store/dir.h"

#define OWNER_NAME_BYTES 256 /* with its NUL; longer names do not travel */

/* As it travels. A name may be "": then there is only the number. */
struct owner {
	uint32_t uid, gid;
	char user[OWNER_NAME_BYTES], group[OWNER_NAME_BYTES];
};

/* The C library's look-ups, so that a test can play others. */
struct owner_db {
	int (*getpwuid_r)(uid_t id, struct passwd *pw, char *buf, size_t n, struct passwd **out);
	int (*getpwnam_r)(const char *name, struct passwd *pw, char *buf, size_t n, struct passwd **out);
	int (*getgrgid_r)(gid_t id, struct group *gr, char *buf, size_t n, struct group **out);
	int (*getgrnam_r)(const char *name, struct group *gr, char *buf, size_t n, struct group **out);
};

extern const struct owner_db owner_db_real;

/* A cache of answers, good ones and bad ones; of fixed size. Threads may share it: one looks up
 * while the others wait. */
struct owners;

int owners_new(struct owners **out, const struct owner_db *db, struct ptcp_err *e);
void owners_free(struct owners *o); /* NULL is fine */

/* At the source: the names that go with these numbers. The number 0 is root everywhere and has none. */
void owners_describe(struct owners *o, uint32_t uid, uint32_t gid, struct owner *out);

/* At the destination: what these names stand for here, else the numbers. A name that a peer made up
 * never becomes 0, nor is one with control bytes, ':' or '/' looked up. */
void owners_resolve(struct owners *o, const struct owner *from, uint32_t *uid, uint32_t *gid);

/* Gives them to what is open as fd (O_PATH is enough), or to `name` in the directory `at`, a link not
 * followed; `d` and `name` are for sentences. 1: they are set. 0: both or the user could not be set, not
 * being permitted here or UINT32_MAX, which is no number; as with rsync that is no failure. */
int owner_set(const struct dir *d, const char *name, int fd, uint32_t uid, uint32_t gid,
    struct ptcp_err *e);
int owner_set_at(const struct dir *d, const char *name, int at, uint32_t uid, uint32_t gid,
    struct ptcp_err *e);

/* What of a received mode may be set: the nine permission bits; with `setid`, which must have been
 * asked for, setuid, setgid and sticky as well, the first two only if the owner is `as_asked` (not
 * asked for, or set): a program must not get the rights of another user than it had. */
mode_t owner_mode(uint32_t mode, bool setid, bool as_asked);

#endif
