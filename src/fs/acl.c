#include "fs/acl.h"

#include <string.h>

enum { ACL_VERSION = 2 };

bool acl_is_name(const char *attr) { return strcmp(attr, ACL_ACCESS) == 0 || strcmp(attr, ACL_DEFAULT) == 0; }

bool acl_next(const void *acl, size_t n, size_t *at, struct acl_entry *out)
{
	const uint8_t *p = acl;

	if (n < ACL_HEADER_BYTES || p[0] != ACL_VERSION)
		return false;
	if (*at == 0)
		*at = ACL_HEADER_BYTES;
	if (n - *at < ACL_ENTRY_BYTES)
		return false;
	p += *at;
	*out = (struct acl_entry){ (uint16_t)(p[0] | p[1] << 8), (uint16_t)(p[2] | p[3] << 8),
		p[4] | (uint32_t)p[5] << 8 | (uint32_t)p[6] << 16 | (uint32_t)p[7] << 24 };
	*at += ACL_ENTRY_BYTES;
	return true;
}

size_t acl_begin(uint8_t *out)
{
	memcpy(out, (const uint8_t[ACL_HEADER_BYTES]){ ACL_VERSION }, ACL_HEADER_BYTES);
	return ACL_HEADER_BYTES;
}

size_t acl_put(uint8_t *out, struct acl_entry entry)
{
	const uint8_t bytes[ACL_ENTRY_BYTES] = { (uint8_t)entry.tag, (uint8_t)(entry.tag >> 8), (uint8_t)entry.perm,
		(uint8_t)(entry.perm >> 8), (uint8_t)entry.id, (uint8_t)(entry.id >> 8), (uint8_t)(entry.id >> 16),
		(uint8_t)(entry.id >> 24) };

	memcpy(out, bytes, sizeof bytes);
	return sizeof bytes;
}

/* Permissions by entry; the mask is 8 without one. */
struct bits {
	mode_t user, group, mask, other;
};

static bool bits_of(const void *acl, size_t n, struct bits *b)
{
	struct acl_entry entry;
	size_t at = 0;

	*b = (struct bits){ .mask = 8 };
	while (acl_next(acl, n, &at, &entry))
		switch (entry.tag) {
		case ACL_USER_OBJ:  b->user = entry.perm & 7; break;
		case ACL_GROUP_OBJ: b->group = entry.perm & 7; break;
		case ACL_MASK:      b->mask = entry.perm & 7; break;
		case ACL_OTHER:     b->other = entry.perm & 7; break;
		}
	return at > 0;
}

bool acl_mode(const void *acl, size_t n, mode_t *mode)
{
	struct bits b;

	if (!bits_of(acl, n, &b))
		return false;
	*mode = b.user << 6 | (b.mask < 8 ? b.mask : b.group) << 3 | b.other;
	return true;
}

mode_t acl_group_mode(const void *acl, size_t n, mode_t mode)
{
	struct bits b;

	if (!bits_of(acl, n, &b))
		return mode;
	return (mode & ~(mode_t)070) | (b.mask < 8 ? b.group & b.mask : b.group) << 3;
}
