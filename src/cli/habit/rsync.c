/* ptcp rsync */
#include <ptcp/ptcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/habit/habit.h"
#include "core/err.h"
#include "core/text.h"

/* A number with a fraction and a unit of 1,024 (K, KiB, M ..) or 1,000 (KB ..); `unit` is that of a bare number. */
static int parse_size(const struct opt *o, const char *text, double unit, uint64_t *bytes, struct ptcp_err *e)
{
	static const char prefixes[] = "KMGTP";
	const char *at, *rest;
	char *end;
	double v = strtod(text, &end);
	bool decimal;

	if (end == text || !(v >= 0) || strspn(text, "0123456789.") != (size_t)(end - text))
		return opt_reject(o, text, e, "not a size (write 10M, or 1.5G)");
	rest = end;
	if (*rest != '\0' && (at = strchr(prefixes, *rest & ~0x20)) != NULL) {
		decimal = (rest[1] & ~0x20) == 'B';
		for (unit = decimal ? 1000 : 1024; at > prefixes; at--)
			unit *= decimal ? 1000 : 1024;
		rest += decimal ? 2 : (rest[1] & ~0x20) == 'I' && (rest[2] & ~0x20) == 'B' ? 3 : 1;
	} else if ((*rest & ~0x20) == 'B') {
		unit = 1;
		rest++;
	}
	if (*rest != '\0' || v * unit > 9e18)
		return opt_reject(o, text, e, "not a size (write 10M, or 1.5G)");
	*bytes = (uint64_t)(v * unit);
	return 0;
}

static int set_size(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	uint64_t bytes;
	int r = parse_size(o, text, 1, &bytes, e);

	return r < 0 ? r : habit_add(args, e, "--%s=%llu", o->name, (unsigned long long)bytes);
}

static int set_rate(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	uint64_t bytes;
	int r = parse_size(o, text, 1024, &bytes, e);

	return r < 0 || bytes == 0 ? r : habit_add(args, e, "--rate=%lluB/s", (unsigned long long)bytes);
}

/* 0: to the second, as rsync has times by default; -1: to the nanosecond. For both, ptcp asks the file system. */
static int set_window(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	unsigned s = 0;

	if (strcmp(text, "-1") != 0 && opt_number(text, 0, UINT32_MAX, &s) < 0)
		return opt_reject(o, text, e, "not a number of seconds (write 2, or -1)");
	return s == 0 ? 0 : habit_add(args, e, "--modify-window=%u", s);
}

static int set_minutes(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	unsigned minutes;

	if (opt_number(text, 1, 365 * 24 * 60, &minutes) < 0)
		return opt_reject(o, text, e, "not a number of minutes (give 1 to 525600)");
	return habit_add(args, e, "--stop-after=%um", minutes);
}

/* rsync takes y-m-dTh:m with slashes, too, and without the parts that are those of today, or of the next time. */
static int set_moment(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	const char *clock = text + (*text == 'T');
	int year, month, day, end = 0;
	char separator[2];

	if (strspn(clock, "0123456789:") == strlen(clock) && strchr(clock, ':') != NULL)
		return habit_add(args, e, "--stop-at=%s", clock);
	if (sscanf(text, "%4d%1[-/]%2d%*1[-/]%2d%n", &year, separator, &month, &day, &end) < 4 || end == 0)
		return opt_reject(o, text, e, "not a time (write 06:00, or 2026-11-30T06:00)");
	return habit_add(args, e, "--stop-at=%04d-%02d-%02d%s", year, month, day, text + end);
}

static int set_timeout(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	unsigned s;

	if (opt_number(text, 0, 86400, &s) < 0)
		return opt_reject(o, text, e, "not a number of seconds (give 0 to 86400)");
	return s == 0 ? 0 : habit_add(args, e, "--timeout=%us", s);
}

static int set_verbose(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct habit *p = args;

	(void)o;
	(void)text;
	p->shows = true;
	return habit_add(p, e, "--verbose");
}

static int set_usual_filter(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	(void)o;
	(void)text;
	return habit_add(args, e, "-F");
}

static int set_delete_excluded(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	((struct habit *)args)->deletes = true;
	return habit_same(args, o, text, e);
}

/* These preserve owners. */
static int set_owner(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	((struct habit *)args)->preserved |= HABIT_USER | HABIT_GROUP;
	return habit_same(args, o, text, e);
}

static int set_archive(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	((struct habit *)args)->recursive = true;
	return habit_keep(args, o, text, e);
}

#define AT(member) offsetof(struct habit, member)

#define FLAG(name, letter, hint, set)         { name, letter, NULL, hint, set, 0, 0, 0 }
#define VALUE(name, letter, value, hint, set) { name, letter, value, hint, set, 0, 0, 0 }
#define NOTE(name, letter, hint, member)      { name, letter, NULL, hint, opt_true, AT(member), 0, 0 }
#define KEEPS(name, letter, bits, hint) \
	{ name, letter, NULL, hint, habit_keep, bits, 0, 0 }, { "no-" name, 0, NULL, "", habit_drop, bits, 0, 0 }
#define NO_LETTER(name, bits) { name, 0, NULL, "", habit_drop, bits, 0, 0 }

#define LEAVE_OUT "leave the option out"

const struct opt rsync_preserving[] = {
	{ "archive", 'a', NULL, "", set_archive,
	    HABIT_TIMES | HABIT_MODE | HABIT_LINKS | HABIT_USER | HABIT_GROUP | HABIT_SETID,
	    0, 0 },
	KEEPS("times", 't', HABIT_TIMES, "times are preserved by default: " LEAVE_OUT),
	NO_LETTER("no-t", HABIT_TIMES),
	KEEPS("perms", 'p', HABIT_MODE | HABIT_SETID, "modes are preserved by default: " LEAVE_OUT),
	NO_LETTER("no-p", HABIT_MODE | HABIT_SETID),
	KEEPS("links", 'l', HABIT_LINKS, "links are preserved by default: " LEAVE_OUT),
	NO_LETTER("no-l", HABIT_LINKS),
	KEEPS("owner", 'o', HABIT_USER, "--preserve owner has user and group: write -a"),
	NO_LETTER("no-o", HABIT_USER),
	KEEPS("group", 'g', HABIT_GROUP, "--preserve owner has user and group: write -a"),
	NO_LETTER("no-g", HABIT_GROUP),
	KEEPS("xattrs", 'X', HABIT_XATTR, ""), NO_LETTER("no-X", HABIT_XATTR),
	KEEPS("acls", 'A', HABIT_ACL | HABIT_MODE, "--preserve acl, or -a, preserves ACLs"),
	NO_LETTER("no-A", HABIT_ACL),
	FLAG("hard-links", 'H', "", opt_ignore), FLAG("sparse", 'S', "", opt_ignore),
	FLAG("", 'D', "devices, FIFOs and sockets are skipped with a warning: " LEAVE_OUT, opt_ignore),
	FLAG("devices", 0, "devices are skipped with a warning: " LEAVE_OUT, opt_ignore),
	FLAG("specials", 0, "FIFOs and sockets are skipped with a warning: " LEAVE_OUT, opt_ignore),
	FLAG("no-devices", 0, "", opt_ignore),
	FLAG("no-specials", 0, "", opt_ignore),
	FLAG("no-D", 0, "", opt_ignore),
	FLAG("copy-links", 'L', "", habit_same), FLAG("copy-unsafe-links", 0, "", habit_same),
	FLAG("copy-dirlinks", 'k', "--copy-links follows all links", habit_refuse),
	FLAG("keep-dirlinks", 'K', "a link is replaced by the directory: make it a directory", habit_refuse),
	FLAG("safe-links", 0, "--copy-unsafe-links sends what such links lead to", habit_refuse),
	FLAG("munge-links", 0, "links are copied as they are: " LEAVE_OUT, habit_refuse),
	FLAG("executability", 'E', "modes are preserved by default: " LEAVE_OUT, habit_refuse),
	FLAG("atimes", 'U', "ptcp preserves no time of reading: " LEAVE_OUT, habit_refuse),
	FLAG("crtimes", 'N', "ptcp preserves no time of creation: " LEAVE_OUT, habit_refuse),
	FLAG("open-noatime", 0, LEAVE_OUT, opt_ignore),
	FLAG("omit-dir-times", 'O', "ptcp preserves the times of all, or of none", habit_refuse),
	FLAG("omit-link-times", 'J', "ptcp preserves the times of all, or of none", habit_refuse),
	FLAG("super", 0, "root preserves owners anyway: " LEAVE_OUT, opt_ignore),
	FLAG("fake-super", 0, "ptcp stores no owners in attributes: " LEAVE_OUT, habit_refuse),
	FLAG("numeric-ids", 0, "", habit_same), VALUE("chmod", 0, "CHANGES", "", habit_same),
	VALUE("chown", 0, "USER:GROUP", "", set_owner), VALUE("usermap", 0, "LIST", "", set_owner),
	VALUE("groupmap", 0, "LIST", "", set_owner),
	VALUE("iconv", 0, "CHARSETS", "ptcp keeps the bytes of names: " LEAVE_OUT, habit_refuse),
	{ .name = NULL },
};

const struct opt rsync_selecting[] = {
	NOTE("recursive", 'r', "", recursive),
	FLAG("no-recursive", 0, "directories are always sent with contents", habit_refuse),
	FLAG("dirs", 'd', "directories are always sent with contents", habit_refuse),
	FLAG("relative", 'R', "--files-from keeps the paths below a source", habit_refuse),
	FLAG("no-implied-dirs", 0, LEAVE_OUT, habit_refuse),
	VALUE("exclude", 0, "PATTERN", "", habit_same), VALUE("include", 0, "PATTERN", "", habit_same),
	VALUE("exclude-from", 0, "FILE", "", habit_same),
	VALUE("include-from", 0, "FILE", "--include takes one pattern each", habit_refuse),
	VALUE("filter", 'f', "RULE", "", habit_same),
	FLAG("", 'F', "", set_usual_filter),
	FLAG("cvs-exclude", 'C', "", habit_same),
	VALUE("files-from", 0, "FILE", "", habit_same), FLAG("from0", '0', "", habit_same),
	VALUE("max-size", 0, "SIZE", "", set_size), VALUE("min-size", 0, "SIZE", "", set_size),
	FLAG("one-file-system", 'x', "", habit_same),
	FLAG("prune-empty-dirs", 'm', "empty directories are sent, too: " LEAVE_OUT, habit_refuse),
	{ .name = NULL },
};

const struct opt rsync_replacing[] = {
	FLAG("checksum", 'c', "", habit_same), FLAG("update", 'u', "", habit_same),
	FLAG("size-only", 0, "", habit_same),
	FLAG("ignore-times", 'I', "", habit_same), FLAG("existing", 0, "", habit_same),
	FLAG("ignore-non-existing", 0, "--existing is the name here", habit_as),
	FLAG("ignore-existing", 0, "", habit_same),
	VALUE("modify-window", '@', "SECONDS", "", set_window),
	FLAG("remove-source-files", 0, "", habit_same), NOTE("delete", 0, "", deletes),
	NOTE("del", 0, "--delete is the name here", deletes),
	NOTE("delete-during", 0, "--delete is the name here", deletes),
	NOTE("delete-after", 0, "--delete is the name here", deletes),
	NOTE("delete-delay", 0, "--delete is the name here", deletes),
	FLAG("delete-before", 0, "--delete deletes once all files have arrived", habit_refuse),
	FLAG("delete-excluded", 0, "", set_delete_excluded),
	FLAG("delete-missing-args", 0, "a missing source deletes nothing", habit_refuse),
	FLAG("ignore-missing-args", 0, "a missing source is a failed file", habit_refuse),
	FLAG("ignore-errors", 0, "nothing is deleted below a directory that could not be read", habit_refuse),
	FLAG("force", 0, "a full directory makes way for a file with --delete only", habit_refuse),
	VALUE("max-delete", 0, "N", "ptcp send has the option, and deletes none if there are more", habit_refuse),
	FLAG("backup", 'b', "", habit_same), VALUE("backup-dir", 0, "DIR", "", habit_same),
	VALUE("suffix", 0, "SUFFIX", "", habit_same),
	VALUE("link-dest", 0, "DIR", "", habit_same),
	VALUE("compare-dest", 0, "DIR", "", habit_same),
	VALUE("copy-dest", 0, "DIR", "", habit_same),
	FLAG("inplace", 0, "", habit_same),
	FLAG("append", 0, "ptcp resumes files by itself: " LEAVE_OUT, habit_refuse),
	FLAG("append-verify", 0, "ptcp resumes files by itself: " LEAVE_OUT, habit_refuse),
	FLAG("delay-updates", 0, "each file is replaced once it is complete: " LEAVE_OUT, habit_refuse),
	FLAG("partial", 0, "", opt_ignore), FLAG("no-partial", 0, LEAVE_OUT, opt_ignore),
	VALUE("partial-dir", 0, "DIR", "unfinished data is in hidden files: " LEAVE_OUT, opt_ignore),
	VALUE("temp-dir", 'T', "DIR", "a file is written beside its final name: " LEAVE_OUT, habit_refuse),
	NOTE("mkpath", 0, "", mkpath), FLAG("fsync", 0, "--fsync=file is the name here", habit_as),
	FLAG("preallocate", 0, LEAVE_OUT, opt_ignore),
	{ .name = NULL },
};

const struct opt rsync_carrying[] = {
	FLAG("whole-file", 'W', "", habit_same),
	FLAG("no-whole-file", 0, "", habit_same),
	FLAG("no-W", 0, "", opt_ignore),
	VALUE("block-size", 'B', "SIZE", "ptcp chooses the blocks: " LEAVE_OUT, opt_ignore),
	FLAG("fuzzy", 'y', "--detect-renames finds files of the same size", opt_ignore),
	FLAG("compress", 'z', "", opt_ignore), FLAG("no-compress", 0, "--compress=off is the name here", habit_as),
	FLAG("no-z", 0, "--compress=off is the name here", habit_as),
	VALUE("compress-level", 0, "LEVEL", "--compress sets the level, of zstd", habit_as),
	VALUE("zl", 0, "LEVEL", "--compress sets the level, of zstd", habit_as),
	VALUE("compress-choice", 0, "NAME", "ptcp compresses by zstd: " LEAVE_OUT, opt_ignore),
	VALUE("zc", 0, "NAME", "ptcp compresses by zstd: " LEAVE_OUT, opt_ignore),
	VALUE("skip-compress", 0, "LIST", "data that does not shrink is sent as it is: " LEAVE_OUT, opt_ignore),
	VALUE("checksum-choice", 0, "NAME", "ptcp chooses the hashes: " LEAVE_OUT, opt_ignore),
	VALUE("cc", 0, "NAME", "ptcp chooses the hashes: " LEAVE_OUT, opt_ignore),
	VALUE("bwlimit", 0, "RATE", "--rate limits the rate, such as --rate 100MB/s or 800Mbit/s", set_rate),
	VALUE("rsh", 'e', "COMMAND", "--ssh names the ssh command, such as --ssh 'ssh -p 2222'", habit_as),
	VALUE("rsync-path", 0, "COMMAND", "--remote-ptcp names the command on the remote host", habit_refuse),
	VALUE("timeout", 0, "SECONDS", "", set_timeout),
	VALUE("contimeout", 0, "SECONDS", "--timeout counts for connections, too", opt_ignore),
	VALUE("port", 0, "PORT", "the port belongs to the URL: ptcp://HOST:PORT/PATH, or ssh://HOST:PORT/PATH for ssh",
	    habit_refuse),
	VALUE("password-file", 0, "FILE", "ptcp key authorize admits a client without a password", habit_refuse),
	VALUE("address", 0, "ADDRESS", "the system chooses the address", habit_refuse),
	VALUE("sockopts", 0, "LIST", "the system and ptcp choose them", habit_refuse),
	FLAG("ipv4", '4', "", habit_same), FLAG("ipv6", '6', "", habit_same),
	FLAG("blocking-io", 0, LEAVE_OUT, opt_ignore),
	FLAG("secluded-args", 's', "no shell sees a path: " LEAVE_OUT, opt_ignore),
	FLAG("protect-args", 0, "no shell sees a path: " LEAVE_OUT, opt_ignore),
	FLAG("old-args", 0, "no shell sees a path", habit_refuse), FLAG("trust-sender", 0, LEAVE_OUT, opt_ignore),
	FLAG("inc-recursive", 0, LEAVE_OUT, opt_ignore), FLAG("no-inc-recursive", 0, LEAVE_OUT, opt_ignore),
	FLAG("i-r", 0, LEAVE_OUT, opt_ignore), FLAG("no-i-r", 0, LEAVE_OUT, opt_ignore),
	VALUE("stop-after", 0, "MINUTES", "", set_minutes), VALUE("time-limit", 0, "MINUTES", "", set_minutes),
	VALUE("stop-at", 0, "TIME", "", set_moment),
	FLAG("daemon", 0, "ptcp serve is the server", habit_refuse),
	{ .name = NULL },
};

const struct opt rsync_showing[] = {
	FLAG("dry-run", 'n', "", habit_same), FLAG("verbose", 'v', "", set_verbose),
	FLAG("itemize-changes", 'i', "--verbose lists the files", set_verbose),
	NOTE("quiet", 'q', "", quiet), NOTE("progress", 0, "", shows), FLAG("no-progress", 0, LEAVE_OUT, opt_ignore),
	NOTE("", 'P', "", shows), FLAG("human-readable", 'h', LEAVE_OUT, opt_ignore),
	FLAG("no-human-readable", 0, LEAVE_OUT, opt_ignore), FLAG("no-h", 0, LEAVE_OUT, opt_ignore),
	NOTE("stats", 0, "the summary at the end has the numbers, --json has all", shows),
	VALUE("info", 0, "FLAGS", "progress and summary are shown, --verbose lists the files", set_verbose),
	VALUE("debug", 0, "FLAGS", "--log-level debug tells more", opt_ignore),
	FLAG("8-bit-output", '8', LEAVE_OUT, opt_ignore), FLAG("no-motd", 0, LEAVE_OUT, opt_ignore),
	VALUE("outbuf", 0, "MODE", LEAVE_OUT, opt_ignore),
	VALUE("out-format", 0, "FORMAT", "--json lists the files for programs", habit_refuse),
	VALUE("log-file", 0, "FILE", "--log-level writes a log to standard error: add 2>FILE", habit_refuse),
	NOTE("list-only", 0, "ptcp ls lists a remote directory", lists),
	{ .name = NULL },
};

/* Where rsync and ptcp place a single directory without a trailing slash: rsync always inside the destination. */
static int check_place(const struct habit *p, enum habit_way way, char **operand, int n, char **place,
    struct ptcp_err *e)
{
	const char *dest = operand[n - 1], *src = operand[0];
	char shown[TEXT_NAME_BYTES];
	struct stat st;
	size_t len = strlen(src);

	*place = NULL;
	if (n != 2 || len == 0 || src[len - 1] == '/' || *dest == '\0' || dest[strlen(dest) - 1] == '/' ||
	    dest[strlen(dest) - 1] == ':')
		return 0;
	if (way == HABIT_SENDS) {
		if (stat(src, &st) != 0 || !S_ISDIR(st.st_mode))
			return 0;
		return asprintf(place, "%s/", dest) < 0 ? err_nomem(e) : 0;
	}
	if (!p->recursive || (stat(dest, &st) == 0 && S_ISDIR(st.st_mode)))
		return 0;
	return err_set(e, PTCP_EUSAGE,
	    "%s: is not there (write %s/ for a directory that receives the source, or add a slash to "
	    "the source for its contents)", text_escape(shown, sizeof shown, dest), shown);
}

static int check_recursion(const struct habit *p, char **operand, int n, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	struct stat st;
	int i;

	for (i = 0; i < n - 1 && !p->recursive; i++)
		if (!ptcp_is_remote(operand[i]) && lstat(operand[i], &st) == 0 && S_ISDIR(st.st_mode))
			return err_set(e, PTCP_EUSAGE,
			    "%s: a directory, which rsync skips without -r (add -r, or -a)",
			    text_escape(shown, sizeof shown, operand[i]));
	return 0;
}

static bool has(const struct habit *p, const char *option)
{
	size_t i;

	for (i = 0; i < p->n; i++)
		if (strncmp(p->arg[i], option, strlen(option)) == 0)
			return true;
	return false;
}

static int complete(struct habit *p, enum habit_way *way, char **operand, int n, char **place, struct ptcp_err *e)
{
	int r;

	if ((r = habit_way(p, operand, n, way, e)) < 0 || (r = check_recursion(p, operand, n, e)) < 0 ||
	    (r = check_place(p, *way, operand, n, place, e)) < 0 || (r = habit_add_preserved(p, e)) < 0)
		return r;
	/* rsync's deletes as many files as there are. */
	if (p->deletes && ((r = habit_add(p, e, "--delete")) < 0 || (r = habit_add(p, e,
	    "--max-delete=4294967294")) < 0))
		return r;
	if (!p->mkpath && (r = habit_add(p, e, "--no-mkpath")) < 0)
		return r;
	return (p->quiet || !p->shows) ? habit_add(p, e, "--quiet") : 0;
}

static int translate(struct habit *p, enum habit_way *way, char **operand, int n, char **place, struct ptcp_err *e)
{
	if (p->lists || n == 1)
		return n == 1 && ptcp_is_remote(operand[0]) ? 0 : err_set(e, PTCP_EUSAGE,
		    "rsync: needs a source and a destination (a remote source alone is listed)");
	if (has(p, "--chmod=") && (p->preserved & HABIT_MODE) == 0)
		return err_set(e, PTCP_EUSAGE, "--chmod: changes the modes that are preserved (add -p)");
	if (has(p, "--files-from=") && !p->recursive)
		return err_set(e, PTCP_EUSAGE,
		    "--files-from: ptcp sends listed directories with their contents, rsync without "
		    "-r does not (add -r)");
	return complete(p, way, operand, n, place, e);
}

static int run_rsync(const struct command *c, int argc, char **argv)
{
	struct habit p = { .name = "rsync" };
	char *place = NULL, *list[] = { "-l", NULL };
	enum habit_way way = HABIT_SENDS;
	struct ptcp_err e;
	int n, r, status;

	if ((r = options_parse(c, argc, argv, &p, &n, NULL, &e)) == 0)
		r = translate(&p, &way, argv, n, &place, &e);
	if (r != 0) {
		status = command_end(c, r, &e);
	} else if (n == 1) {
		list[1] = argv[0];
		status = command_ls.run(&command_ls, 2, list);
	} else {
		if (place != NULL)
			argv[n - 1] = place;
		status = habit_run(&p, way == HABIT_SENDS ? &command_send : &command_recv, argv, n);
	}
	free(place);
	opt_copies_free(&p.arg, &p.n);
	return status;
}

static const struct opt_group rsync_groups[] = {
	GROUP_BRIEF("What is preserved", rsync_preserving), GROUP_BRIEF("What is sent", rsync_selecting),
	GROUP_BRIEF("What is replaced", rsync_replacing), GROUP_BRIEF("How it is sent", rsync_carrying),
	GROUP_BRIEF("What is shown", rsync_showing), GROUP_END,
};
const struct command command_rsync = { "rsync", "[options of rsync] SRC... DEST",
	"send or receive as rsync would, with its options", run_rsync, rsync_groups, 1, INT_MAX,
	"needs a source and a destination" };
