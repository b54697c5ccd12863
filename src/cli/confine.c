/* Landlock by system call numbers, since headers are often older than the kernel
 * (Documentation/userspace-api/landlock.rst). */
#include "cli/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/log_opts.h"
#include "core/err.h"
#include "core/fd.h"
#include "core/text.h"

/* The same on all architectures. */
#define CREATE_RULESET 444
#define ADD_RULE 445
#define RESTRICT_SELF 446
#define VERSION_FLAG 1u
#define PATH_BENEATH 1

#define ABI_REFER 2     /* older versions forbid links and renames between directories */
#define ABI_TRUNCATE 3
#define ABI_TCP 4
#define ABI_IOCTL 5
#define ABI_SCOPE 6

enum {
	EXECUTE = 1 << 0, WRITE_FILE = 1 << 1, READ_FILE = 1 << 2, READ_DIR = 1 << 3, REMOVE_DIR = 1 << 4,
	REMOVE_FILE = 1 << 5, MAKE_CHAR = 1 << 6, MAKE_DIR = 1 << 7, MAKE_REG = 1 << 8, MAKE_SOCK = 1 << 9,
	MAKE_FIFO = 1 << 10, MAKE_BLOCK = 1 << 11, MAKE_SYM = 1 << 12, REFER = 1 << 13, TRUNCATE = 1 << 14,
	IOCTL_DEV = 1 << 15
};
enum { BIND_TCP = 1 << 0, CONNECT_TCP = 1 << 1 };
enum { ABSTRACT_UNIX = 1 << 0, SIGNAL = 1 << 1 };

#define READ (READ_FILE | READ_DIR)
#define WRITE (WRITE_FILE | TRUNCATE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_SYM | REFER)
#define REPLACE (READ_FILE | WRITE_FILE | MAKE_REG | REMOVE_FILE) /* replacement of files by rename() */
#define OF_A_FILE (EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV)

struct ruleset {
	uint64_t fs, tcp, scoped; /* accesses denied without a rule */
};

struct path_rule {
	uint64_t allowed;
	int32_t fd;
} __attribute__((packed));

/* Paths that the C library and OpenSSL read at run time: users, name services, time zones, modules. Landlock
 * identifies a file by its inode, so that a replaced file becomes inaccessible until a restart. Directories
 * avoid this, but would let root read too much of /etc. */
static const struct {
	const char *path;
	bool to_root, to_others;
} system_places[] = {
	{ "/etc", false, true },
	{ "/etc/passwd", true, false }, { "/etc/group", true, false }, { "/etc/nsswitch.conf", true, false },
	{ "/etc/hosts", true, false }, { "/etc/resolv.conf", true, false }, { "/etc/gai.conf", true, false },
	{ "/etc/host.conf", true, false }, { "/etc/services", true, false }, { "/etc/localtime", true, false },
	{ "/etc/ld.so.cache", true, false }, { "/etc/ssl/openssl.cnf", true, false },
	{ "/run/systemd/resolve", true, true }, { "/run/NetworkManager", true, true },
	{ "/run/systemd/userdb", true, true }, { "/run/nscd", true, true }, { "/var/lib/sss", true, true },
	{ "/lib", true, true }, { "/lib64", true, true }, { "/usr/lib", true, true },
	{ "/usr/lib64", true, true }, { "/usr/local/lib", true, true }, { "/nix/store", true, true },
	{ "/usr/share/zoneinfo", true, true },
	{ "/proc/self", true, true }, { "/proc/stat", true, true }, { "/sys/devices/system/cpu", true, true },
	{ "/dev/null", true, true }, { "/dev/urandom", true, true },
};
#define N_SYSTEM_PLACES (sizeof system_places / sizeof *system_places)

/* Capabilities to set owners of files, to access files of all owners, and to preserve setgid bits of
 * directories. */
#define RETAINED (1ull << CAP_CHOWN | 1ull << CAP_FOWNER | 1ull << CAP_DAC_OVERRIDE | 1ull << CAP_FSETID)

/* The leak sanitizer attaches a process, like a debugger. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define DUMPABLE 1
#else
#define DUMPABLE 0
#endif

static int failed(struct ptcp_err *e, const char *what)
{
	return err_set(e, PTCP_ECONFIG, "sandbox: %s: %s (--no-sandbox disables the sandbox)", what,
	    strerror(errno));
}

/* ---- Files, TCP, signals ---- */

/* Usable version of the kernel's Landlock, at most `newest`; 0: none, for the reason *why. */
static unsigned abi_of(unsigned newest, const char **why)
{
	long abi = syscall(CREATE_RULESET, NULL, 0, VERSION_FLAG);

	if (abi > (long)newest)
		abi = (long)newest;
	if (abi >= ABI_REFER)
		return (unsigned)abi;
	*why = abi < 1 ? "not offered by the kernel" : "the version of the kernel forbids links between directories";
	return 0;
}

static struct ruleset ruleset_of(unsigned abi, const struct ptcp_server_needs *n)
{
	struct ruleset r = { .fs = abi >= ABI_IOCTL ? (IOCTL_DEV << 1) - 1 :
		abi >= ABI_TRUNCATE ? (TRUNCATE << 1) - 1 : (REFER << 1) - 1 };

	if (abi >= ABI_TCP)
		r.tcp = (n->binds ? 0u : BIND_TCP) | (n->connects ? 0u : CONNECT_TCP);
	if (abi >= ABI_SCOPE)
		r.scoped = ABSTRACT_UNIX | (n->signals ? 0u : SIGNAL);
	return r;
}

/* Allows `access` below `path`; on failure returns -1 with errno. */
static int allow(int ruleset, const struct ruleset *handled, const char *path, uint64_t access)
{
	int fd = open(path, O_PATH | O_CLOEXEC), r;
	struct path_rule rule = { access & handled->fs, fd };
	struct stat st;

	if (fd < 0)
		return -1;
	r = fstat(fd, &st);
	if (r == 0 && !S_ISDIR(st.st_mode))
		rule.allowed &= OF_A_FILE;
	if (r == 0)
		r = (int)syscall(ADD_RULE, ruleset, PATH_BENEATH, &rule, 0);
	fd_close(&fd);
	return r;
}

static int allow_all(int fd, const struct ruleset *r, const struct ptcp_server_needs *n,
    const struct confine_tool *tool, int level, struct ptcp_err *e)
{
	const char *const *root;
	char shown[TEXT_NAME_BYTES];
	size_t i;

	for (root = n->roots; *root != NULL; root++)
		if (allow(fd, r, *root, READ | WRITE) < 0)
			log_format(level, PTCP_LOG_WARN, "serve", "event=no-root root=\"%s\" why=\"%s\" hint=\"restart "
			    "once the directory exists\"", text_escape_quoted(shown, sizeof shown, *root),
			    strerror(errno));
	for (i = 0; i < N_SYSTEM_PLACES; i++)
		if (geteuid() == 0 ? system_places[i].to_root : system_places[i].to_others)
			allow(fd, r, system_places[i].path, READ); /* optional */
	allow(fd, r, "/dev/null", READ | WRITE);
	for (i = 0; i < sizeof tool->reads / sizeof *tool->reads; i++)
		if (tool->reads[i] != NULL)
			allow(fd, r, tool->reads[i], READ); /* failures surface on use */
	for (i = 0; i < sizeof tool->writes / sizeof *tool->writes; i++)
		if (tool->writes[i] != NULL)
			allow(fd, r, tool->writes[i], REPLACE);
	for (i = 0; i < tool->n_roots; i++)
		/* failures surface on use */
		allow(fd, r, tool->roots[i], READ | (tool->writes_roots ? WRITE_FILE : 0));
	if (n->state_dir != NULL)
		allow(fd, r, n->state_dir, READ_DIR); /* optional */
	if (n->storage_dir != NULL)
		allow(fd, r, n->storage_dir, REPLACE);
	/* optional for an ephemeral server */
	if (n->config_dir != NULL && allow(fd, r, n->config_dir, READ) < 0 && errno != ENOENT)
		return failed(e, "allowing the configuration directory");
	return 0;
}

static int restrict_self(unsigned abi, const struct ptcp_server_needs *n, const struct confine_tool *tool,
    int level, struct ptcp_err *e)
{
	struct ruleset r = ruleset_of(abi, n);
	int fd = (int)syscall(CREATE_RULESET, &r, sizeof r, 0), err;

	if (fd < 0)
		return failed(e, "creating a Landlock ruleset");
	err = allow_all(fd, &r, n, tool, level, e);
	if (err == 0 && syscall(RESTRICT_SELF, fd, 0) != 0)
		err = failed(e, "applying the Landlock ruleset");
	fd_close(&fd);
	return err;
}

/* ---- Privileges ---- */

static int drop_capabilities(uint64_t *retained, struct ptcp_err *e)
{
	struct __user_cap_header_struct h = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct d[2] = { { 0, 0, 0 }, { 0, 0, 0 } };
	unsigned long cap;
	int i;

	if (syscall(SYS_capget, &h, d) != 0)
		return failed(e, "reading capabilities");
	/* Fails without CAP_SETPCAP; then there is no capability to drop from the bounding set. */
	for (cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		if ((RETAINED >> cap & 1) == 0)
			(void)prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	for (i = 0; i < 2; i++) {
		d[i].permitted &= (uint32_t)(RETAINED >> 32 * i);
		d[i].effective = d[i].permitted;
		d[i].inheritable = 0;
	}
	*retained = (uint64_t)d[1].permitted << 32 | d[0].permitted;
	return syscall(SYS_capset, &h, d) == 0 ? 0 : failed(e, "dropping capabilities");
}

static void log_confined(const struct ptcp_server_needs *n, unsigned abi, const char *why, uint64_t capabilities,
    int level)
{
	struct ruleset r = ruleset_of(abi, n);

	if (abi == 0)
		log_format(level, PTCP_LOG_INFO, "serve", "event=confined landlock=none why=\"%s\" capabilities=%#llx",
		    why, (unsigned long long)capabilities);
	else
		log_format(level, PTCP_LOG_INFO, "serve", "event=confined landlock=%u bind=%s connect=%s signals=%s "
		    "capabilities=%#llx", abi, r.tcp & BIND_TCP ? "refused" : "open",
		    r.tcp & CONNECT_TCP ? "refused" : "open",
		    r.scoped & SIGNAL ? "refused" : "open", (unsigned long long)capabilities);
}

int confine(const struct ptcp_server_needs *n, const struct confine_tool *tool, unsigned newest, int level,
    struct ptcp_err *e)
{
	const char *why = NULL;
	unsigned abi = abi_of(newest, &why);
	uint64_t retained = 0;
	int r;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return failed(e, "forbidding new privileges");
	if (prctl(PR_SET_DUMPABLE, DUMPABLE, 0, 0, 0) != 0)
		return failed(e, "protecting the memory of the process");
	if ((abi > 0 && (r = restrict_self(abi, n, tool, level, e)) < 0) || (r = drop_capabilities(&retained, e)) < 0)
		return r;
	log_confined(n, abi, why, retained, level);
	return 0;
}
