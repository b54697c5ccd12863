#include "store/rules.h"

#include <string.h>

#include "core/err.h"

static bool later(struct timespec a, struct timespec b)
{
	return a.tv_sec > b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec > b.tv_nsec);
}

bool rules_same_time(const struct store_rules *r, struct timespec a, struct timespec b)
{
	uint64_t apart_s = a.tv_sec > b.tv_sec ? (uint64_t)a.tv_sec - (uint64_t)b.tv_sec :
	    (uint64_t)b.tv_sec - (uint64_t)a.tv_sec;

	return r->window_s > 0 ? apart_s <= r->window_s : apart_s == 0 && a.tv_nsec == b.tv_nsec;
}

/* Whether a file system of coarser times stores `there` for the time of the source: to 100 ns (NTFS, SMB), 10 ms
 * (exFAT), 1 s, or 2 s (FAT); ntfs-3g rounds times before 1970 up. The digest decides later. */
static bool time_fits(struct timespec there, struct timespec source)
{
	long ns = source.tv_nsec;

	if (there.tv_sec == source.tv_sec)
		return there.tv_nsec == ns || there.tv_nsec == ns - ns % 100 || there.tv_nsec == ns - ns % 10000000 ||
		    there.tv_nsec == 0;
	if (there.tv_nsec == 0 && source.tv_sec < 0 && there.tv_sec == source.tv_sec + 1)
		return true;
	return there.tv_nsec == 0 && there.tv_sec % 2 == 0 && there.tv_sec == source.tv_sec - 1;
}

/* Both are files; a hard link replaces a file unless a rule retains the file. */
static enum rules_answer judge_file(const struct store_rules *r, const struct rules_entry *offered,
    const struct rules_entry *there)
{
	bool link = offered->type == RULES_HARDLINK, same_size = there->size_bytes == offered->size_bytes;

	if ((r->flags & RULE_UPDATE) != 0 && later(there->mtime, offered->mtime) &&
	    !rules_same_time(r, there->mtime, offered->mtime))
		return RULES_KEEP;
	/* The file may have another content: its source is not removed. */
	if ((r->flags & RULE_SIZE_ONLY) != 0 && same_size && (r->reads || !link))
		return r->reads ? RULES_KEEP : RULES_UNCHANGED;
	if (link || !same_size || (r->flags & (RULE_IGNORE_TIMES | RULE_NO_RESUME)) != 0)
		return RULES_RECEIVE;
	if ((r->flags & RULE_CHECKSUM) != 0 || offered->timeless)
		return RULES_COMPARE;
	if (rules_same_time(r, there->mtime, offered->mtime))
		return r->reads ? RULES_COMPARE : RULES_UNCHANGED;
	return time_fits(there->mtime, offered->mtime) ? RULES_COMPARE : RULES_RECEIVE;
}

enum rules_answer rules_judge(const struct store_rules *r, const struct rules_entry *offered,
    const struct rules_entry *there)
{
	if (there->type == RULES_NOTHING)
		return (r->flags & RULE_EXISTING) != 0 ? RULES_KEEP : RULES_RECEIVE;
	if (offered->type == RULES_DIR && there->type == RULES_DIR)
		return RULES_SAME;
	if ((r->flags & RULE_IGNORE_EXISTING) != 0)
		return RULES_KEEP;
	if ((r->flags & RULE_EXCLUSIVE) != 0)
		return RULES_REFUSE;
	if (there->same)
		return RULES_SAME;
	if (r->write_once)
		return RULES_REFUSE;
	if (there->type == RULES_FILE && (offered->type == RULES_FILE || offered->type == RULES_HARDLINK))
		return judge_file(r, offered, there);
	return RULES_RECEIVE;
}

struct rules_entry rules_entry_of(const struct stat *st)
{
	return (struct rules_entry){ .type = S_ISREG(st->st_mode) ? RULES_FILE : S_ISLNK(st->st_mode) ? RULES_SYMLINK :
	    S_ISDIR(st->st_mode) ? RULES_DIR : RULES_SPECIAL, .size_bytes = (uint64_t)st->st_size,
	    .mtime = st->st_mtim };
}

/* ---- Versions ---- */

/* Digits only, up to `end`. */
static bool take_number(const char **at, char end, uint64_t max, uint64_t *out)
{
	const char *p = *at;

	for (*out = 0; *p >= '0' && *p <= '9'; p++)
		if (*out > (max - (uint64_t)(*p - '0')) / 10)
			return false;
		else
			*out = *out * 10 + (uint64_t)(*p - '0');
	if (p == *at || *p != end)
		return false;
	*at = p + (end != '\0');
	return true;
}

int store_match_parse(struct store_match *out, const char *text, struct ptcp_err *e)
{
	struct store_match m = { .set = true };
	uint64_t s = 0, ns = 0;
	const char *p = text;
	bool before;

	if (take_number(&p, '@', UINT64_MAX, &m.size_bytes)) {
		if ((before = *p == '-'))
			p++;
		if (take_number(&p, '.', INT64_MAX, &s) && strlen(p) == 9 && take_number(&p, '\0', 999999999, &ns)) {
			m.mtime = (struct timespec){ .tv_sec = before ? -(int64_t)s : (int64_t)s, .tv_nsec = (long)ns };
			*out = m;
			return 0;
		}
	}
	return err_set(e, PTCP_EUSAGE, "version: not SIZE@SECONDS.NANOSECONDS, such as 1234@1790000000.000000001 (take "
	    "the version that the file was listed with)");
}

bool store_match_is(const struct store_match *m, const struct stat *st)
{
	return S_ISREG(st->st_mode) && (uint64_t)st->st_size == m->size_bytes &&
	    st->st_mtim.tv_sec == m->mtime.tv_sec && st->st_mtim.tv_nsec == m->mtime.tv_nsec;
}
