#include "store/attr_map.h"

#include <assert.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"

enum { CHANGES_MAX = 64, SPECIAL = 07000 };

/* For files, directories or both: mode = (mode & and) | or. */
struct mode_change {
	bool files, dirs;
	mode_t and, or;
	bool x_if_any; /* the execute bits of `or` only for directories, and files that somebody may execute */
};

struct id_rule {
	char *from;             /* pattern for names; NULL: the numbers */
	uint32_t first, last;
	char *to;               /* name; NULL: the number */
	uint32_t number;
};

struct id_map {
	struct id_rule *rule;
	size_t n;
};

struct attr_map {
	struct mode_change change[CHANGES_MAX];
	unsigned n_changes;
	struct id_map users, groups;
	bool numeric_ids;
};

/* ---- Modes ---- */

/* Digits of base 8: an absolute mode. */
static bool parse_octal(const char *text, size_t n, struct mode_change *c)
{
	size_t i;

	if (n == 0 || n > 5)
		return false;
	for (c->and = c->or = 0, i = 0; i < n; i++) {
		if (text[i] < '0' || text[i] > '7')
			return false;
		c->or = c->or << 3 | (mode_t)(text[i] - '0');
	}
	return c->or <= 07777;
}

/* A bit of each class; 0: the change names no class. */
static const char *parse_who(const char *p, mode_t *who)
{
	static const struct { char letter; mode_t who; } all[] = { { 'u', 0100 }, { 'g', 0010 }, { 'o', 0001 },
		{ 'a', 0111 } };
	size_t i;

	for (*who = 0;; p++) {
		for (i = 0; i < 4 && all[i].letter != *p; i++)
			;
		if (i == 4)
			return p;
		*who |= all[i].who;
	}
}

static mode_t specials(mode_t who) { return (who & 0100 ? 04000u : 0) | (who & 0010 ? 02000u : 0); }

/* The bits that the letter stands for; false: none. */
static bool bits_of(char letter, mode_t who, mode_t *bits, bool *x_if_any)
{
	switch (letter) {
	case 'r': *bits |= who * 4; return true;
	case 'w': *bits |= who * 2; return true;
	case 'X': *x_if_any = true; /* fallthrough */
	case 'x': *bits |= who; return true;
	case 's': *bits |= specials(who); return true;
	case 't': *bits |= 01000; return true;
	default: return false;
	}
}

static bool parse_symbolic(const char *p, const char *end, mode_t umask, struct mode_change *c)
{
	mode_t who, bits = 0, left_alone = 0;
	char op;

	p = parse_who(p, &who);
	if (p >= end)
		return false;
	if (who == 0) {
		who = 0111;
		left_alone = umask;
	}
	op = *p++;
	for (; p < end; p++)
		if (!bits_of(*p, who, &bits, &c->x_if_any))
			return false;
	bits &= ~left_alone;
	c->and = 07777;
	c->or = op == '-' ? 0 : bits;
	if (op == '-')
		c->and &= ~bits;
	else if (op == '=')
		c->and &= ~(who * 7 | ((bits & SPECIAL) != 0 ? specials(who) : 0));
	else if (op != '+')
		return false;
	return op != '-' || !c->x_if_any;
}

static int parse_changes(struct attr_map *m, const char *text, mode_t umask, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	const char *p = text, *end;
	struct mode_change *c;

	for (;; p = end + 1) {
		end = p + strcspn(p, ",");
		if (m->n_changes == CHANGES_MAX)
			return err_set(e, PTCP_EUSAGE, "--chmod: more than %d changes (leave some out)", CHANGES_MAX);
		c = &m->change[m->n_changes++];
		*c = (struct mode_change){ .files = *p != 'D', .dirs = *p != 'F' };
		p += *p == 'D' || *p == 'F';
		if (!parse_octal(p, (size_t)(end - p), c) && !parse_symbolic(p, end, umask, c))
			return err_set(e, PTCP_EUSAGE,
			    "--chmod '%s': not a change of modes (write D755,F644 or u+rwX,go-w)",
			    text_escape(shown, sizeof shown, text));
		if (*end == '\0')
			return 0;
	}
}

mode_t attr_map_mode(const struct attr_map *m, mode_t mode, bool is_dir)
{
	const bool anybody = (mode & 0111) != 0;
	const struct mode_change *c;
	unsigned i;

	for (i = 0; m != NULL && i < m->n_changes; i++) {
		c = &m->change[i];
		if (is_dir ? !c->dirs : !c->files)
			continue;
		mode = (mode & c->and) | (c->x_if_any && !is_dir && !anybody ? c->or & ~(mode_t)0111 : c->or);
	}
	return mode;
}

bool attr_map_sets_special(const struct attr_map *m)
{
	unsigned i;

	for (i = 0; m != NULL && i < m->n_changes; i++)
		if ((m->change[i].or & SPECIAL) != 0)
			return true;
	return false;
}

/* ---- Users and groups ---- */

static bool parse_number(const char *text, const char *end, uint32_t *out)
{
	uint64_t v = 0;
	const char *p;

	for (p = text; p < end; p++) {
		if (*p < '0' || *p > '9' || (v = v * 10 + (uint64_t)(*p - '0')) >= UINT32_MAX)
			return false;
	}
	*out = (uint32_t)v;
	return p > text;
}

/* The root of every host has number 0. */
static bool parse_to(struct id_rule *r, const char *text, size_t n)
{
	r->number = 0;
	if (parse_number(text, text + n, &r->number) || (n == 4 && memcmp(text, "root", 4) == 0))
		return true;
	r->number = ATTR_MAP_BY_NAME;
	return (r->to = strndup(text, n)) != NULL;
}

static bool parse_from(struct id_rule *r, const char *text, const char *end)
{
	const char *dash = memchr(text, '-', (size_t)(end - text));

	if (parse_number(text, end, &r->first)) {
		r->last = r->first;
		return true;
	}
	if (dash != NULL && parse_number(text, dash, &r->first) && parse_number(dash + 1, end, &r->last))
		return r->first <= r->last;
	return (r->from = strndup(text, (size_t)(end - text))) != NULL;
}

static struct id_rule *add_rule(struct id_map *m)
{
	struct id_rule *more = realloc(m->rule, (m->n + 1) * sizeof *more);

	if (more == NULL)
		return NULL;
	m->rule = more;
	more[m->n] = (struct id_rule){ .from = NULL };
	return &more[m->n++];
}

static int parse_map(struct id_map *m, const char *option, const char *text, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	const char *p, *end, *colon;
	struct id_rule *r;

	for (p = text;; p = end + 1) {
		end = p + strcspn(p, ",");
		colon = memchr(p, ':', (size_t)(end - p));
		if (colon == NULL || colon + 1 == end || end - colon - 1 >= OWNER_NAME_BYTES)
			break;
		if ((r = add_rule(m)) == NULL)
			return err_nomem(e);
		if (!parse_from(r, p, colon) || !parse_to(r, colon + 1, (size_t)(end - colon - 1)))
			break;
		if (*end == '\0')
			return 0;
	}
	return err_set(e, PTCP_EUSAGE,
	    "--%s '%s': not a map (write FROM:TO, such as alice:bob,1000-1999:guest,*:nobody)", option,
	    text_escape(shown, sizeof shown, text));
}

/* Adds a rule for the remaining names. */
static int add_rest(struct id_map *m, const char *to, size_t n, struct ptcp_err *e)
{
	struct id_rule *r;

	if (n == 0)
		return 0;
	if ((r = add_rule(m)) == NULL || (r->from = strdup("*")) == NULL || !parse_to(r, to, n))
		return err_nomem(e);
	return 0;
}

static int parse_chown(struct attr_map *m, const char *text, struct ptcp_err *e)
{
	const char *group = strchr(text, ':');
	const size_t n = group != NULL ? (size_t)(group - text) : strlen(text);
	char shown[TEXT_NAME_BYTES];
	int r;

	if (strlen(text) <= (group != NULL ? 1 : 0) || n >= OWNER_NAME_BYTES ||
	    (group != NULL && (strlen(group) > OWNER_NAME_BYTES || strchr(group + 1, ':') != NULL)))
		return err_set(e, PTCP_EUSAGE,
		    "--chown '%s': neither a user nor a group (write USER, USER:GROUP or :GROUP)",
		    text_escape(shown, sizeof shown, text));
	if ((r = add_rest(&m->users, text, n, e)) < 0 || group == NULL)
		return r;
	return add_rest(&m->groups, group + 1, strlen(group + 1), e);
}

static void map_id(const struct id_map *m, uint32_t *id, char name[OWNER_NAME_BYTES])
{
	const char *known = *id == 0 ? "root" : name;
	const struct id_rule *r;
	size_t i;

	for (i = 0; i < m->n; i++) {
		r = &m->rule[i];
		if (r->from == NULL ? *id < r->first || *id > r->last : fnmatch(r->from, known, 0) != 0)
			continue;
		*id = r->number;
		strcpy(name, r->to != NULL ? r->to : "");
		return;
	}
}

void attr_map_owner(const struct attr_map *m, struct owner *o)
{
	if (m == NULL)
		return;
	if (m->numeric_ids)
		o->user[0] = o->group[0] = '\0';
	map_id(&m->users, &o->uid, o->user);
	map_id(&m->groups, &o->gid, o->group);
}

/* ---- The whole ---- */

static void id_map_fini(struct id_map *m)
{
	size_t i;

	for (i = 0; i < m->n; i++) {
		free(m->rule[i].from);
		free(m->rule[i].to);
	}
	free(m->rule);
}

void attr_map_free(struct attr_map *m)
{
	if (m == NULL)
		return;
	id_map_fini(&m->users);
	id_map_fini(&m->groups);
	free(m);
}

int attr_map_new(struct attr_map **out, const struct attr_map_texts *t, struct ptcp_err *e)
{
	struct attr_map *m;
	int r = 0;

	*out = NULL;
	if (t->chmod == NULL && t->chown == NULL && t->user_map == NULL && t->group_map == NULL && !t->numeric_ids)
		return 0;
	if ((m = calloc(1, sizeof *m)) == NULL)
		return err_nomem(e);
	m->numeric_ids = t->numeric_ids;
	if (t->chmod != NULL)
		r = parse_changes(m, t->chmod, t->umask, e);
	if (r == 0 && t->user_map != NULL)
		r = parse_map(&m->users, "usermap", t->user_map, e);
	if (r == 0 && t->group_map != NULL)
		r = parse_map(&m->groups, "groupmap", t->group_map, e);
	if (r == 0 && t->chown != NULL)
		r = parse_chown(m, t->chown, e);
	if (r < 0)
		attr_map_free(m);
	else
		*out = m;
	return r;
}
