#include "cli/install.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/client_opts.h"
#include "cli/show/terminal.h"
#include "core/err.h"
#include "core/fd.h"
#include "core/text.h"
#include "core/units.h"

#define SELF "/proc/self/exe"
#define HEADERS_MAX 64

/* Whether the file is an executable without an interpreter, that is, without shared libraries. */
static bool install_is_static(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ElfW(Phdr) segment[HEADERS_MAX];
	bool interpreted = false;
	ElfW(Ehdr) head;
	ssize_t n = -1;
	unsigned i;

	if (fd >= 0 && read(fd, &head, sizeof head) == sizeof head && memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 &&
	    head.e_ident[EI_CLASS] == (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) &&
	    head.e_phentsize == sizeof *segment && head.e_phnum <= HEADERS_MAX)
		n = pread(fd, segment, head.e_phnum * sizeof *segment, (off_t)head.e_phoff);
	for (i = 0; n >= 0 && i < (size_t)n / sizeof *segment; i++)
		interpreted |= segment[i].p_type == PT_INTERP;
	fd_close(&fd);
	return n > 0 && (size_t)n == head.e_phnum * sizeof *segment && !interpreted;
}

/* This executable, or a static executable in the same folder. */
static int find(const char **path, struct ptcp_err *e)
{
	static const char *const places[] = { "%s/ptcp-static", "%s/static/ptcp", "%s/../libexec/ptcp/ptcp" };
	static _Thread_local char found[PATH_MAX + 32];
	char dir[PATH_MAX], shown[TEXT_NAME_BYTES];
	ssize_t n = readlink(SELF, dir, sizeof dir - 1);
	size_t i;

	*path = SELF;
	if (install_is_static(SELF))
		return 1;
	dir[n > 0 ? n : 0] = '\0';
	if (strrchr(dir, '/') != NULL)
		*strrchr(dir, '/') = '\0';
	*path = found;
	for (i = 0; i < sizeof places / sizeof *places; i++) {
		snprintf(found, sizeof found, places[i], dir);
		if (access(found, X_OK) == 0 && install_is_static(found))
			return 1;
	}
	return err_set(e, PTCP_ECONFIG, "--install: this ptcp needs shared libraries (make static builds an executable "
	    "that can be copied; name it %s/ptcp-static)", text_escape(shown, sizeof shown, dir));
}

static const char *size_of(char out[UNITS_TEXT_BYTES], const char *path)
{
	struct stat st;

	return units_size_text(out, stat(path, &st) == 0 ? (uint64_t)st.st_size : 0);
}

int install_requested(void *arg, const char *host, const char **path, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES], size[UNITS_TEXT_BYTES];
	int r = find(path, e);

	(void)arg;
	if (r > 0)
		terminal_line("ptcp: %s has no ptcp: copying this one (%s) to ~/.cache/ptcp/%s there",
		    text_escape(shown, sizeof shown, host), size_of(size, *path), ptcp_version());
	return r;
}

int install_after_asking(void *arg, const char *host, const char **path, struct ptcp_err *e)
{
	char line[64], shown[TEXT_NAME_BYTES], size[UNITS_TEXT_BYTES];

	if (find(path, NULL) < 0)
		return 0; /* the error names --install */
	terminal_line("%s has no ptcp.", text_escape(shown, sizeof shown, host));
	do {
		terminal_ask("Copy this one (%s) to ~/.cache/ptcp/%s there? (yes or no) ",
		    size_of(size, *path), ptcp_version());
		if (!connect_read_line(line, sizeof line)) {
			terminal_line("%s", "");
			return 0;
		}
	} while (strcasecmp(line, "yes") != 0 && strcasecmp(line, "no") != 0);
	return strcasecmp(line, "yes") == 0 ? install_requested(arg, host, path, e) : 0;
}
