#include "store/published.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "core/text.h"
#include "fs/fs_err.h"
#include "store/hash.h"

static uint64_t not_0(uint64_t hash) { return hash != 0 ? hash : 1; }

static uint64_t file_id(uint64_t dev, uint64_t ino)
{
	const uint64_t both[2] = { dev, ino };

	return not_0(hash_content(both, sizeof both));
}

static uint64_t source_id(const char *path)
{
	char folded[DIR_PATH_RAW_BYTES];

	return not_0(hash_content(folded, text_fold(folded, path)));
}

static uint64_t path_id(const struct dir *d, const char *name)
{
	char path[DIR_PATH_RAW_BYTES];

	return source_id(dir_path_raw(d, name, path, sizeof path));
}

void published_fini(struct published *p)
{
	name_set_fini(&p->now);
	name_set_fini(&p->before);
	p->full = false;
}

void published_next(struct published *p)
{
	p->full |= name_set_move(&p->before, &p->now, NULL) < 0;
}

/* ---- Case ---- */

static bool is_letter(char c) { return isascii(c) && isalpha(c); }

/* The name with its letters from `first` to `last` in the other case. */
static void other_case(char *other, const char *name, size_t first, size_t last)
{
	size_t i;

	for (i = 0; name[i] != '\0' && i < NAME_MAX; i++)
		other[i] = i >= first && i <= last && is_letter(name[i]) ? (char)(name[i] ^ ('a' ^ 'A')) : name[i];
	other[i] = '\0';
}

static bool find_other(const struct dir *d, int at, const char *name, size_t first, size_t last, struct stat *st)
{
	char other[NAME_MAX + 1];

	other_case(other, name, first, last);
	return strcmp(other, name) != 0 && dir_sys(d)->fstatat(at, other, st, AT_SYMLINK_NOFOLLOW) == 0;
}

void published_examine(struct published *p, const struct dir *d, int at, const char *name, uint64_t dev)
{
	size_t i, first = NAME_MAX, last = 0;
	struct stat st;
	bool other;

	if (p == NULL || p->dev == dev)
		return;
	for (i = 0; name[i] != '\0'; i++)
		if (is_letter(name[i])) {
			first = first == NAME_MAX ? i : first;
			last = i;
		}
	if (first > last)
		return;
	other = find_other(d, at, name, 0, NAME_MAX, &st);
	if (other && first == last) /* a directory may have another entry that differs in one letter, but not
	                               three such entries */
		return;
	p->dev = dev;
	p->ignores_case = other && find_other(d, at, name, first, first, &st) &&
	    find_other(d, at, name, last, last, &st);
}

/* Whether the directory lists both names: then they are two names of a file, and case counts. */
static bool lists_both(const struct dir *d, int at, const char *name)
{
	const struct sys *sys = dir_sys(d);
	int fd = sys->openat(at, ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	DIR *stream = fd >= 0 ? sys->fdopendir(&fd) : NULL;
	char other[NAME_MAX + 1];
	struct dirent *entry;
	unsigned n = 0;

	if (stream == NULL)
		return false;
	other_case(other, name, 0, NAME_MAX);
	while (n < 2 && (entry = sys->readdir(stream)) != NULL)
		n += strcmp(entry->d_name, name) == 0 || strcmp(entry->d_name, other) == 0;
	sys->closedir(stream);
	return n == 2;
}

/* ---- Files ---- */

static void add(struct published *p, uint64_t hash)
{
	if (!p->full)
		p->full = p->now.n + p->before.n >= p->max || name_set_add(&p->now, hash, NULL) < 0;
}

void published_add(struct published *p, const struct dir *d, int at, const char *name, uint64_t dev, uint64_t ino)
{
	if (p == NULL)
		return;
	add(p, file_id(dev, ino));
	published_examine(p, d, at, name, dev);
	if (p->dev != dev || p->ignores_case)
		add(p, path_id(d, name));
}

void published_add_name(struct published *p, struct dir *d, const char *name)
{
	struct stat st;
	int at;

	if (p == NULL || (at = dir_fd(d, NULL)) < 0)
		return;
	if (dir_sys(d)->fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		published_add(p, d, at, name, st.st_dev, st.st_ino);
	dir_fd_done(d);
}

static bool is_in(const struct published *p, uint64_t hash, bool before)
{
	return name_set_has(&p->now, hash) || (before && name_set_has(&p->before, hash));
}

bool published_has(struct published *p, const struct dir *d, int at, const char *name,
    const struct stat *st, bool before)
{
	struct stat other;

	if (p == NULL)
		return false;
	if (p->full)
		return true;
	if (is_in(p, file_id(st->st_dev, st->st_ino), before) && (S_ISDIR(st->st_mode) || st->st_nlink < 2 ||
	    (find_other(d, at, name, 0, NAME_MAX, &other) && other.st_dev == st->st_dev && other.st_ino == st->st_ino &&
	    !lists_both(d, at, name))))
		return true;
	published_examine(p, d, at, name, st->st_dev);
	return p->dev == st->st_dev && p->ignores_case && is_in(p, path_id(d, name), before);
}

bool published_shares(const struct published *p, const struct stat *st)
{
	return p != NULL && st->st_nlink > 1 && is_in(p, file_id(st->st_dev, st->st_ino), true);
}

/* Claims of a file: `by` is the hash of a name that is written to, or one of the following. */
enum { WRITTEN = 1, KEPT = 2 };

static uint64_t claim_id(uint64_t dev, uint64_t ino, uint64_t by)
{
	const uint64_t all[3] = { dev, ino, by };

	return not_0(hash_content(all, sizeof all));
}

static bool others_write(const struct published *p, uint64_t dev, uint64_t ino, uint64_t name)
{
	return is_in(p, claim_id(dev, ino, WRITTEN), true) && !is_in(p, claim_id(dev, ino, name), true);
}

bool published_writes(const struct published *p, const struct dir *d, const char *name, const struct stat *st)
{
	uint64_t by = st->st_nlink < 2 ? WRITTEN : path_id(d, name);

	return p != NULL && name_set_has(&p->now, claim_id(st->st_dev, st->st_ino, by));
}

bool published_may_write(struct published *p, const struct dir *d, const char *name, uint64_t dev, uint64_t ino)
{
	uint64_t id = path_id(d, name);

	if (p == NULL)
		return true;
	if (p->full || is_in(p, file_id(dev, ino), true) || is_in(p, claim_id(dev, ino, KEPT), true) ||
	    others_write(p, dev, ino, id))
		return false;
	add(p, claim_id(dev, ino, WRITTEN));
	add(p, claim_id(dev, ino, id));
	return !p->full;
}

bool published_may_keep(struct published *p, const struct dir *d, const char *name, uint64_t dev, uint64_t ino)
{
	if (p == NULL)
		return true;
	if (others_write(p, dev, ino, path_id(d, name)))
		return false;
	add(p, claim_id(dev, ino, KEPT));
	return true;
}

int published_refuse(const struct published *p, const struct dir *d, const char *name, struct ptcp_err *e)
{
	return fs_err_set(e, PTCP_EREFUSED, EEXIST, d, name, p != NULL && p->full ?
	    "not replaced: the transfer has too many files to remember which of them have this name (transfer parts of "
	    "the tree one by one)" :
	    "another file of this transfer has this name at the destination (rename one of them, or send it to another "
	    "directory)");
}

/* ---- Sources ---- */

void published_add_source(struct published *p, const char *path)
{
	if (p != NULL)
		add(p, source_id(path));
}

bool published_source_before(const struct published *p, const char *path)
{
	return p != NULL && p->before.n > 0 && (p->full || name_set_has(&p->before, source_id(path)));
}
