/* POSIX access control lists as the kernel has them: values of two extended attributes, of a version and entries with
 * tag, permissions and number, in the byte order of PCs. No I/O. */
#ifndef FS_ACL_H
#define FS_ACL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define ACL_ACCESS "system.posix_acl_access"
#define ACL_DEFAULT "system.posix_acl_default"

enum acl_tag { ACL_USER_OBJ = 0x01, ACL_USER = 0x02, ACL_GROUP_OBJ = 0x04, ACL_GROUP = 0x08, ACL_MASK = 0x10,
    ACL_OTHER = 0x20 };

enum { ACL_HEADER_BYTES = 4, ACL_ENTRY_BYTES = 8 };
/* Of an entry that names nobody. */
#define ACL_NOBODY UINT32_MAX

struct acl_entry {
	uint16_t tag, perm;
	uint32_t id; /* number of the user or group; else ACL_NOBODY */
};

/* Whether the attribute is one of the two. */
bool acl_is_name(const char *attr);

/* Takes the entry at *at, which begins as 0; false at the end, and of a list that is none. */
bool acl_next(const void *acl, size_t n, size_t *at, struct acl_entry *out);
/* Writes the header, then entries; each returns the bytes written. */
size_t acl_begin(uint8_t *out);
size_t acl_put(uint8_t *out, struct acl_entry entry);

/* The nine bits that stat() reports for a file with the list, whose group bits are the mask. False: no list. */
bool acl_mode(const void *acl, size_t n, mode_t *mode);
/* The permissions of the owning group, which the mask limits; without a list those of `mode`. */
mode_t acl_group_mode(const void *acl, size_t n, mode_t mode);

#endif
