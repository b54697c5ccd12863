/* Owner and group of files, by name and number. Name lookups may query a directory service and block for
 * long: I/O threads only. Set the owner after extended attributes and before the mode: a change of owner
 * clears the setuid and setgid bits. */
#ifndef STORE_OWNER_H
#define STORE_OWNER_H

#include <grp.h>
#include <pwd.h>

#include "core/memory_budget.h"
#include "fs/dir.h"

#define OWNER_NAME_BYTES 256 /* size with the NUL; longer names are not sent */

/* An owner on the wire. Without a name ("") the number alone counts. */
struct owner {
	uint32_t uid, gid;
	char user[OWNER_NAME_BYTES], group[OWNER_NAME_BYTES];
};

/* The C library's lookups, replaceable by tests. */
struct owner_db {
	int (*getpwuid_r)(uid_t id, struct passwd *pw, char *buf, size_t n, struct passwd **out);
	int (*getpwnam_r)(const char *name, struct passwd *pw, char *buf, size_t n, struct passwd **out);
	int (*getgrgid_r)(gid_t id, struct group *gr, char *buf, size_t n, struct group **out);
	int (*getgrnam_r)(const char *name, struct group *gr, char *buf, size_t n, struct group **out);
};

extern const struct owner_db owner_db_real;

/* A cache of lookups, including failed ones, of fixed size. Threads may share a cache: a lookup blocks the
 * others. */
struct owners;

int owners_new(struct owners **out, const struct owner_db *db, struct memory_account *memory, struct ptcp_err *e);
void owners_free(struct owners *o); /* NULL is fine */

/* At the source: the names of uid and gid. The number 0 is root everywhere and gets no name. */
void owners_describe(struct owners *o, uint32_t uid, uint32_t gid, struct owner *out);

/* At the destination: the local numbers of the names, else the numbers received. A name never resolves to 0,
 * and a name with control bytes, ':' or '/' is not looked up. */
void owners_resolve(struct owners *o, const struct owner *from, uint32_t *uid, uint32_t *gid);

/* Set the owner of fd (O_PATH is enough), or of `name` in the directory `at`, not following a link; `d` and
 * `name` name the file in errors. 1: set. 0: both, or the user, could not be set, for want of permission or
 * because UINT32_MAX is no valid number; as in rsync, this is no failure. */
int owner_set(const struct dir *d, const char *name, int fd, uint32_t uid, uint32_t gid, struct ptcp_err *e);
int owner_set_at(const struct dir *d, const char *name, int at, uint32_t uid, uint32_t gid,
    struct ptcp_err *e);

/* The bits of a received mode that may be set: the nine permission bits; with `setid` (by request only) also
 * sticky, and setuid and setgid if `owner_ok` (the owner was set, or not requested): a program must not run
 * as a different user. */
mode_t owner_mode(uint32_t mode, bool setid, bool owner_ok);

#endif
