#include "store/owner.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/charged.h"
#include "fs/file_system.h"
#include "fs/fs_err.h"
#include "store/hash.h"

/* Cached lookups of each kind; a new lookup replaces the one in the same slot. */
#define SLOTS 64

/* Maximum size of a result, in bytes: a group includes its members. */
#define ANSWER_MAX (1u << 20)

enum kind { USER_NAME, GROUP_NAME, USER_ID, GROUP_ID, KINDS };

/* A lookup, from id to name or the reverse. */
struct owner_slot {
	bool used, found;
	uint32_t id;
	char name[OWNER_NAME_BYTES];
};

struct owners {
	struct memory_account *memory;
	const struct owner_db *db;
	pthread_mutex_t lock;
	struct owner_slot slot[KINDS][SLOTS];
};

const struct owner_db owner_db_real = { getpwuid_r, getpwnam_r, getgrgid_r, getgrnam_r };

int owners_new(struct owners **out, const struct owner_db *db, struct memory_account *memory, struct ptcp_err *e)
{
	struct owners *o = memory_calloc(memory, sizeof *o, e);

	if (o == NULL)
		return PTCP_ENOMEM;
	o->memory = memory;
	o->db = db;
	pthread_mutex_init(&o->lock, NULL);
	*out = o;
	return 0;
}

void owners_free(struct owners *o)
{
	if (o == NULL)
		return;
	pthread_mutex_destroy(&o->lock);
	memory_free(o->memory, o, sizeof *o);
}

static void keep_name(struct owner_slot *s, const char *name)
{
	if ((s->found = strlen(name) < sizeof s->name))
		strcpy(s->name, name);
}

static void keep_id(struct owner_slot *s, uint32_t id)
{
	s->found = id != 0;
	s->id = id;
}

/* Looks up with a buffer of n bytes; ERANGE if too small. */
static int query(const struct owner_db *db, enum kind kind, struct owner_slot *s, char *buf, size_t n)
{
	struct passwd pw, *user = NULL;
	struct group gr, *group = NULL;
	int r = 0;

	switch (kind) {
	case USER_NAME:
		if ((r = db->getpwuid_r(s->id, &pw, buf, n, &user)) == 0 && user != NULL)
			keep_name(s, user->pw_name);
		break;
	case GROUP_NAME:
		if ((r = db->getgrgid_r(s->id, &gr, buf, n, &group)) == 0 && group != NULL)
			keep_name(s, group->gr_name);
		break;
	case USER_ID:
		if ((r = db->getpwnam_r(s->name, &pw, buf, n, &user)) == 0 && user != NULL)
			keep_id(s, user->pw_uid);
		break;
	case GROUP_ID:
		if ((r = db->getgrnam_r(s->name, &gr, buf, n, &group)) == 0 && group != NULL)
			keep_id(s, group->gr_gid);
		break;
	case KINDS:
		break;
	}
	return r;
}

/* Failures of the directory service count as "not found". */
static void look_up(struct owners *o, enum kind kind, struct owner_slot *s)
{
	size_t n;
	char *buf;
	int r = ERANGE;

	s->used = true;
	s->found = false;
	for (n = 1024; r == ERANGE && n <= ANSWER_MAX; n *= 4) {
		if ((buf = malloc(n)) == NULL)
			return;
		r = query(o->db, kind, s, buf, n);
		free(buf);
	}
}

static void name_of(struct owners *o, enum kind kind, uint32_t id, char out[OWNER_NAME_BYTES])
{
	struct owner_slot *s = &o->slot[kind][id % SLOTS];

	out[0] = '\0';
	if (id == 0)
		return;
	pthread_mutex_lock(&o->lock);
	if (!s->used || s->id != id) {
		s->id = id;
		look_up(o, kind, s);
	}
	if (s->found)
		strcpy(out, s->name);
	pthread_mutex_unlock(&o->lock);
}

/* Refuses bytes with a special meaning in directory services and their files. */
static bool name_ok(const char *name)
{
	const unsigned char *p = (const unsigned char *)name;

	if (*p == '\0')
		return false;
	for (; *p != '\0'; p++)
		if (*p < ' ' || *p == 0x7f || *p == ':' || *p == '/')
			return false;
	return true;
}

static uint32_t id_of(struct owners *o, enum kind kind, const char *name, uint32_t number)
{
	struct owner_slot *s;

	if (!name_ok(name))
		return number;
	s = &o->slot[kind][hash_content(name, strlen(name)) % SLOTS];
	pthread_mutex_lock(&o->lock);
	if (!s->used || strcmp(s->name, name) != 0) {
		strcpy(s->name, name);
		look_up(o, kind, s);
	}
	if (s->found)
		number = s->id;
	pthread_mutex_unlock(&o->lock);
	return number;
}

void owners_describe(struct owners *o, uint32_t uid, uint32_t gid, struct owner *out)
{
	out->uid = uid;
	out->gid = gid;
	name_of(o, USER_NAME, uid, out->user);
	name_of(o, GROUP_NAME, gid, out->group);
}

void owners_resolve(struct owners *o, const struct owner *from, uint32_t *uid, uint32_t *gid)
{
	*uid = id_of(o, USER_ID, from->user, from->uid);
	*gid = id_of(o, GROUP_ID, from->group, from->gid);
}

static int set(const struct dir *d, const char *name, int at, const char *path, int flags, uint32_t uid,
    uint32_t gid, struct ptcp_err *e)
{
	const struct sys *sys = dir_sys(d);

	if (sys->fchownat(at, path, uid, gid, flags) == 0)
		return uid != UINT32_MAX && gid != UINT32_MAX;
	/* A member of the group may set the group alone. */
	if (fs_cannot(ABILITY_OWNERS, errno) &&
	    (sys->fchownat(at, path, (uid_t)-1, gid, flags) == 0 || fs_cannot(ABILITY_OWNERS, errno)))
		return 0;
	return fs_err_sys(e, errno, d, name, "cannot set the owner");
}

int owner_set(const struct dir *d, const char *name, int fd, uint32_t uid, uint32_t gid, struct ptcp_err *e)
{
	return set(d, name, fd, "", AT_EMPTY_PATH, uid, gid, e);
}

int owner_set_at(const struct dir *d, const char *name, int at, uint32_t uid, uint32_t gid,
    struct ptcp_err *e)
{
	return set(d, name, at, name, AT_SYMLINK_NOFOLLOW, uid, gid, e);
}

mode_t owner_mode(uint32_t mode, bool setid, bool owner_ok)
{
	return mode & (!setid ? 0777u : owner_ok ? 07777u : 01777u);
}
