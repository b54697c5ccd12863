/* Whether the hosts of movers see the same file system. The command of --movers starts `ptcp doctor --probe FOLDER` on
 * each of them: it reads a file that this host wrote, writes one of its own, and prints a line. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/doctor/doctor.h"
#include "cli/exec.h"
#include "cli/process.h"
#include "core/clock.h"
#include "core/err.h"
#include "core/fd.h"
#include "core/text.h"

#define SEEN_S 5          /* longest wait for a new file of another host */
#define LATE_S 1.0        /* a file that takes longer to appear is late */
#define COMMAND_S 60      /* the command must have ended then */
#define LOOK_NS (20 * NS_PER_MS)
#define TOKEN_BYTES 32    /* number of hexadecimal digits: the content of all files */
#define WORDS_MAX 64
#define PROBLEMS_MAX 8
#define FILE_NAME "probe"
#define LINE "ptcp-probe "

static void pause_ns(uint64_t ns)
{
	const struct timespec t = { .tv_nsec = (long)ns };

	nanosleep(&t, NULL);
}

static double since_s(struct mono then) { return (double)mono_diff_ns(mono_now(), then) / 1e9; }

static int path_of(char out[PTCP_PATH_BYTES], const char *folder, const char *name)
{
	if (snprintf(out, PTCP_PATH_BYTES, "%s/%s", folder, name) < PTCP_PATH_BYTES)
		return 0;
	errno = ENAMETOOLONG;
	return -1;
}

static int write_token(const char *folder, const char *name, const char *token)
{
	char path[PTCP_PATH_BYTES];
	int fd = path_of(path, folder, name) < 0 ? -1 : open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW,
	    0600);
	bool ok = fd >= 0 && write(fd, token, TOKEN_BYTES) == TOKEN_BYTES && fsync(fd) == 0;

	if (fd >= 0)
		ok &= fd_close(&fd) == 0;
	return ok ? 0 : -1;
}

/* Waits until the file is complete; -1 with errno. */
static int read_token(const char *folder, const char *name, char token[TOKEN_BYTES + 1], struct stat *st,
    double *waited_s)
{
	struct mono began = mono_now();
	char path[PTCP_PATH_BYTES];
	int fd, error;

	if (path_of(path, folder, name) < 0)
		return -1;
	for (;;) {
		error = ENODATA;
		if ((fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)) < 0)
			error = errno;
		else if (fstat(fd, st) == 0 && read(fd, token, TOKEN_BYTES) == TOKEN_BYTES)
			error = 0;
		fd_close(&fd);
		*waited_s = since_s(began);
		if (error == 0 || *waited_s > SEEN_S || process_stopping())
			break;
		pause_ns(LOOK_NS);
	}
	token[TOKEN_BYTES] = '\0';
	errno = error;
	return error == 0 ? 0 : -1;
}

/* ---- On a mover's host ---- */

void doctor_probe(const char *folder)
{
	char host[256] = "?", name[300], token[TOKEN_BYTES + 1], line[800];
	double waited_s;
	struct stat st;

	gethostname(host, sizeof host - 1);
	snprintf(name, sizeof name, "%s.%ld", host, (long)getpid());
	if (read_token(folder, FILE_NAME, token, &st, &waited_s) < 0)
		snprintf(line, sizeof line, LINE "%s unseen %s\n", host, strerror(errno));
	else if (write_token(folder, name, token) < 0)
		snprintf(line, sizeof line, LINE "%s unwritten %s\n", host, strerror(errno));
	else
		snprintf(line, sizeof line, LINE "%s seen %s %s %" PRIu64 " %" PRId64 ".%09ld %.2f\n",
		    host, name, token, (uint64_t)st.st_ino, (int64_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec, waited_s);
	fputs(line, stdout); /* one piece, among the lines of other hosts */
	fflush(stdout);
}

/* ---- On this host ---- */

struct mover_probe {
	struct doctor *d;
	const struct doctor_movers *o;
	char folder[PTCP_PATH_BYTES], token[TOKEN_BYTES + 1];
	struct stat st;
	unsigned n, bad;          /* hosts that answered, and those with problems */
	char last[160];           /* other output of the command */
};

static struct finding *problem(struct mover_probe *p, enum verdict v, const char *host,
    const char *what, const char *fix)
{
	char shown[TEXT_NAME_BYTES];
	struct finding *f;

	if (p->bad++ >= PROBLEMS_MAX)
		return NULL;
	f = doctor_add(p->d, "movers", v, 0, NULL, "%.60s %s", text_escape(shown, sizeof shown, host), what);
	doctor_fix(f, "%s", fix);
	return f;
}

static void judge_seen(struct mover_probe *p, const char *host, const char *rest)
{
	const char *other = "mount the same file system at the same path there";
	char name[300], token[TOKEN_BYTES + 1], back[TOKEN_BYTES + 1], what[160];
	uint64_t inode;
	int64_t at_s;
	long at_ns;
	double waited_s, back_s;
	struct stat st;

	if (sscanf(rest, "%299s %32s %" SCNu64 " %" SCNd64 ".%ld %lf", name, token, &inode, &at_s, &at_ns,
	    &waited_s) != 6 || strchr(name, '/') != NULL || strcmp(token, p->token) != 0)
		problem(p, VERDICT_BAD, host, "read other data than this host wrote", other);
	else if (read_token(p->folder, name, back, &st, &back_s) < 0 || strcmp(back, p->token) != 0)
		problem(p, VERDICT_BAD, host, "wrote a file that this host does not see", other);
	else if (inode != (uint64_t)p->st.st_ino)
		problem(p, VERDICT_BAD, host, "sees other inode numbers: its movers take each file for a changed one",
		    "mount the file system with inode numbers that are the same on all hosts");
	else if (at_s != (int64_t)p->st.st_mtim.tv_sec || at_ns != p->st.st_mtim.tv_nsec)
		problem(p, VERDICT_BAD, host, "sees other times of files: its movers take each file for a changed one",
		    "mount the file system with the same version of its protocol on all hosts");
	else if (waited_s > LATE_S || back_s > LATE_S) {
		snprintf(what, sizeof what,
		    "sees a new file after %.1f s, and this host sees one of its files after %.1f s", waited_s, back_s);
		problem(p, VERDICT_WARN, host, what, "movers wait for new files; a shorter attribute cache (NFS: "
		    "actimeo=1) starts them sooner");
	}
}

static void take_line(struct mover_probe *p, char *line)
{
	char *at = strstr(line, LINE), host[256], kind[16], what[200];
	int n = 0;

	if (at == NULL || sscanf(at + strlen(LINE), "%255s %15s %n", host, kind, &n) < 2 || n == 0) {
		if (line[0] != '\0')
			text_escape(p->last, sizeof p->last, line);
		return;
	}
	p->n++;
	at += strlen(LINE) + (size_t)n;
	if (strcmp(kind, "seen") == 0) {
		judge_seen(p, host, at);
	} else {
		text_escape(p->last, sizeof p->last, at);
		snprintf(what, sizeof what, "%s: %.100s",
		    strcmp(kind, "unseen") == 0 ? "does not see a file that this host wrote" :
		    "cannot write in the directory", p->last);
		problem(p, VERDICT_BAD, host, what, strcmp(kind,
		    "unseen") == 0 ? "mount the same file system at the same path there" :
		    "let this user write there, too");
	}
}

/* The words of the command, and those of the program that it starts. False: too many, or a quote without end. */
static bool words_of(char *argv[WORDS_MAX + 1], char *text, size_t cap, const struct mover_probe *p, const char *host)
{
	const char *const ours[] = { p->o->ptcp, "doctor", "--probe", p->folder };
	const char *from;
	char *command = malloc(cap), *to = text;
	size_t n = 0, i;
	bool ok = command != NULL && text_substitute(command, cap, p->o->command, "{host}", host != NULL ? host : "");

	for (from = command; ok && n < WORDS_MAX - 4 && (argv[n] = text_next_word(&from, &to, &ok)) != NULL; n++)
		;
	ok = ok && n > 0 && n < WORDS_MAX - 4;
	for (i = 0; i < 4; i++)
		argv[n++] = (char *)(uintptr_t)ours[i];
	argv[n] = NULL;
	free(command);
	return ok;
}

/* Reads lines until the command and all it has started have ended; -1: they did not end in time. */
static int read_lines(struct mover_probe *p, int fd)
{
	struct mono began = mono_now();
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	char text[4096], *end;
	size_t n = 0;
	ssize_t got;

	while (since_s(began) < COMMAND_S && !process_stopping()) {
		if (poll(&poll_fd, 1, 100) <= 0)
			continue;
		if ((got = read(fd, text + n, sizeof text - 1 - n)) <= 0)
			return 0;
		n += (size_t)got;
		text[n] = '\0';
		while ((end = strchr(text, '\n')) != NULL || n == sizeof text - 1) {
			end = end != NULL ? end : text + n - 1;
			*end = '\0';
			take_line(p, text);
			n -= (size_t)(end + 1 - text);
			memmove(text, end + 1, n + 1);
		}
	}
	return -1;
}

/* A command for one host must have started ptcp there; one for all hosts tells by its status that it did not on all. */
static void judge_end(struct mover_probe *p, const char *host, unsigned answers, int status)
{
	char what[260];

	if (process_stopping() || (p->n == 0 && host == NULL))
		return; /* see conclude() */
	if (host != NULL && p->n == answers)
		snprintf(what, sizeof what, "did not start ptcp%s%s", p->last[0] != '\0' ? ": " : "", p->last);
	else if (host == NULL && WIFEXITED(status) && WEXITSTATUS(status) != 0)
		snprintf(what, sizeof what, "did not start ptcp on all hosts: it ended with status %d%s%s",
		    WEXITSTATUS(status), p->last[0] != '\0' ? ": " : "", p->last);
	else
		return;
	problem(p, VERDICT_BAD, host != NULL ? host : "the command", what,
	    "check the command, and name the path of ptcp there with --mover-ptcp");
}

static int run_on(struct mover_probe *p, const char *host, struct ptcp_err *e)
{
	size_t cap = strlen(p->o->command) + 1024;
	char *argv[WORDS_MAX + 1], shown[TEXT_NAME_BYTES], *text = malloc(cap);
	unsigned answers = p->n;
	int fd[2] = { -1, -1 }, r = 0;
	pid_t pid = 0;

	p->last[0] = '\0';
	if (text == NULL)
		return err_nomem(e);
	if (!words_of(argv, text, cap, p, host)) {
		r = err_set(e, PTCP_EUSAGE, "--movers: not a command: it is empty or too long, or a quote is missing "
		    "(name the command that starts movers, such as 'srun -N4')");
	} else if (pipe2(fd, O_CLOEXEC) != 0) {
		r = err_sys(e, PTCP_EIO, "cannot create a pipe");
	} else if ((r = exec_spawn(&pid, argv, EXEC_NO_INPUT, fd[1], fd[1])) != 0) {
		r = err_set(e, PTCP_EUSAGE, "--movers: %.100s: %s (install this program, or name another)",
		    text_escape(shown, sizeof shown, argv[0]), strerror(r));
	} else {
		fd_close(&fd[1]);
		if (read_lines(p, fd[0]) < 0 && !process_stopping())
			problem(p, VERDICT_BAD, argv[0], "has not ended after a minute",
			    "check whether it waits for hosts or a password");
		judge_end(p, host, answers, exec_end(pid));
	}
	fd_close(&fd[0]);
	fd_close(&fd[1]);
	free(text);
	return r;
}

static int begin(struct mover_probe *p, const char *dir, struct ptcp_err *e)
{
	unsigned char random[TOKEN_BYTES / 2];
	char shown[TEXT_NAME_BYTES], path[PTCP_PATH_BYTES];

	if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
		return err_sys(e, PTCP_EIO, "cannot get random numbers");
	text_hex(p->token, random, sizeof random);
	text_escape(shown, sizeof shown, dir);
	if (realpath(dir, path) == NULL || path_of(p->folder, path, ".ptcp-probe.XXXXXX") < 0 ||
	    mkdtemp(p->folder) == NULL) {
		p->folder[0] = '\0';
		return err_sys(e, PTCP_EIO,
		    "cannot create a directory in %.100s (name a directory that all movers see with --dir)", shown);
	}
	if (write_token(p->folder, FILE_NAME, p->token) < 0 || path_of(path, p->folder, FILE_NAME) < 0 ||
	    stat(path, &p->st) < 0)
		return err_sys(e, PTCP_EIO, "cannot write in %.100s", shown);
	return 0;
}

static void clean_up(const char *folder)
{
	DIR *d = folder[0] != '\0' ? opendir(folder) : NULL;
	struct dirent *x;

	while (d != NULL && (x = readdir(d)) != NULL)
		unlinkat(dirfd(d), x->d_name, 0);
	if (d != NULL)
		closedir(d);
	if (folder[0] != '\0')
		rmdir(folder);
}

static void conclude(struct mover_probe *p, const char *dir)
{
	char shown[TEXT_NAME_BYTES];
	struct finding *f;

	if (p->n == 0 && p->bad == 0) {
		f = doctor_add(p->d, "movers", VERDICT_BAD, 0, "count", "the command started ptcp on no host%s%s",
		    p->last[0] != '\0' ? "; it printed: " : "", p->last);
		doctor_fix(f, "check the command, and name the path of ptcp there with --mover-ptcp");
	} else if (p->bad > PROBLEMS_MAX) {
		doctor_fix(doctor_add(p->d, "movers", VERDICT_BAD, p->bad, "count", "%u further host%s such problems",
		    p->bad - PROBLEMS_MAX, p->bad - PROBLEMS_MAX == 1 ? " has" : "s have"), "see above");
	} else if (p->bad == 0) {
		doctor_add(p->d, "movers", VERDICT_OK, p->n, "count", "%u see%s the files in %.100s as this host does",
		    p->n, p->n == 1 ? "s" : "", text_escape(shown, sizeof shown, dir));
	}
}

int doctor_movers(struct doctor *d, const struct doctor_movers *o, const char *dir, struct ptcp_err *e)
{
	struct mover_probe p = { .d = d, .o = o };
	size_t i;
	int r;

	process_catch(EXIT_INTERRUPTED, INTERRUPTED_TWICE);
	if ((r = begin(&p, dir, e)) == 0 && o->n_hosts == 0)
		r = run_on(&p, NULL, e);
	for (i = 0; i < o->n_hosts && r == 0 && !process_stopping(); i++)
		r = run_on(&p, o->host[i], e);
	clean_up(p.folder);
	if (r == 0 && process_stopping())
		return process_result(err_set(e, PTCP_ECANCELED, "%s", ptcp_err_text(PTCP_ECANCELED)), e);
	if (r == 0)
		conclude(&p, dir);
	return r;
}
