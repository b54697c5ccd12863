/* What newcomers get wrong first: no server, nobody authorized, no room. */
#include "cli/doctor/doctor.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/err.h"
#include "core/text.h"
#include "core/units.h"

#define ROOM_WARN_BYTES 10e9
#define ROOM_BAD_BYTES 100e6

/* ---- Servers ---- */

struct port_listener {
	bool any, reachable;  /* a server listens on the port; it is reachable from other hosts */
	bool ours;            /* run by this user */
};

/* As in /proc/net/tcp and tcp6: words of the address in the byte order of the host, "0100007F" for 127.0.0.1. */
static bool is_loopback(const char *address)
{
	static const char mapped[] = "0000000000000000FFFF0000";
	size_t n = strlen(address);
	unsigned word = 0;

	if (strcmp(address, "00000000000000000000000001000000") == 0 ||
	    strcmp(address, "00000000000000000000000000000001") == 0)
		return true;
	if (n == 32 && strncmp(address, mapped, strlen(mapped)) == 0)
		address += strlen(mapped);
	return strlen(address) == 8 && sscanf(address, "%8x", &word) == 1 && (ntohl(word) >> 24) == 127;
}

static void find_listeners(const struct doctor *d, const char *table, struct port_listener *l)
{
	char path[300], line[300], address[33];
	unsigned port, state, uid;
	FILE *f;

	snprintf(path, sizeof path, "%.200s/proc/net/%s", d->root, table);
	if ((f = fopen(path, "re")) == NULL)
		return;
	while (fgets(line, sizeof line, f) != NULL) {
		if (sscanf(line, " %*[^:]: %32[0-9A-F]:%x %*[0-9A-F]:%*x %x %*s %*s %*s %u", address, &port,
		    &state, &uid) != 4 || state != 0x0a || port != PTCP_PORT)
			continue;
		l->any = true;
		l->reachable |= !is_loopback(address);
		l->ours |= uid == geteuid();
	}
	fclose(f);
}

static void count_client(void *arg, const struct ptcp_permission *p)
{
	(void)p;
	++*(size_t *)arg;
}

static void judge_server(struct doctor *d, const struct port_listener *l, size_t clients)
{
	struct finding *f;

	if (l->any && l->reachable) {
		doctor_add(d, "server", VERDICT_OK, 0, NULL, "listens on port %d", PTCP_PORT);
	} else if (l->any) {
		f = doctor_add(d, "server", VERDICT_BAD, 0, NULL, "listens on port %d for this host only", PTCP_PORT);
		doctor_fix(f, "ptcp serve --root DIR, without --listen");
	} else if (clients > 0) {
		f = doctor_add(d, "server", VERDICT_WARN, 0, NULL,
		    "none listens on port %d, but clients are authorized", PTCP_PORT);
		doctor_fix(f, "ptcp serve --root DIR, or for the service systemctl enable --now ptcp");
	} else {
		doctor_add(d, "server", VERDICT_OK, 0, NULL,
		    "none on port %d; other hosts need one here only without SSH", PTCP_PORT);
	}
}

static void judge_clients(struct doctor *d, const struct port_listener *l, size_t clients)
{
	struct finding *f;

	if (l->any && !l->ours) {
		f = doctor_add(d, "authorized", VERDICT_WARN, 0, NULL, "unknown: a different user runs the server");
		doctor_fix(f, "runuser -u ptcp -- ptcp doctor, for the service of the package");
	} else if (clients > 0) {
		doctor_add(d, "authorized", VERDICT_OK, (double)clients, "count", "%zu client%s may connect", clients,
		    plural(clients));
	} else if (l->any) {
		f = doctor_add(d, "authorized", VERDICT_BAD, 0, "count", "no client may connect");
		doctor_fix(f, "ptcp key authorize SHA256:.. (with what ptcp key show prints on the client)");
	}
}

void doctor_server(struct doctor *d)
{
	struct port_listener l = { .any = false };
	struct ptcp_err e;
	size_t clients = 0;
	int r;

	find_listeners(d, "tcp", &l);
	find_listeners(d, "tcp6", &l);
	r = ptcp_authorized_each(NULL, count_client, &clients, &e);
	judge_server(d, &l, clients);
	if (r == 0)
		judge_clients(d, &l, clients);
	else
		doctor_fix(doctor_add(d, "authorized", VERDICT_BAD, 0, NULL, "%s", e.msg),
		    "chmod go-w on the file and its directory");
}

/* ---- Room ---- */

void doctor_room(struct doctor *d, const char *dir)
{
	char size[UNITS_TEXT_BYTES], shown[TEXT_NAME_BYTES];
	struct finding *f;
	struct statvfs v;
	double room;

	if (statvfs(dir, &v) < 0)
		return; /* reported by doctor_disk() */
	text_escape(shown, sizeof shown, dir);
	room = (double)v.f_bavail * (double)v.f_frsize;
	f = doctor_add(d, "disk-space", room >= ROOM_WARN_BYTES ? VERDICT_OK : room >= ROOM_BAD_BYTES ? VERDICT_WARN :
	    VERDICT_BAD, room, "bytes", "%s free in %.100s", units_size_text(size, (uint64_t)room), shown);
	if (f->verdict == VERDICT_OK && v.f_files > 0 && v.f_favail < v.f_files / 100) {
		f->verdict = VERDICT_WARN;
		snprintf(f->found, sizeof f->found, "only %llu more files fit in %.100s",
		    (unsigned long long)v.f_favail, shown);
	}
	if (f->verdict != VERDICT_OK)
		doctor_fix(f, "ptcp clean %.100s (removes what interrupted transfers left), or receive elsewhere",
		    shown);
}

/* ---- File system ---- */

static void judge_file_system(struct doctor *d, const struct ptcp_file_system *is)
{
	const char *type = is->type[0] != '\0' ? is->type : "of unknown type";
	char shown[4 * sizeof is->refused];

	if (is->lacks[0] == '\0')
		doctor_add(d, "file-system", VERDICT_OK, 0, NULL, "%s, keeps all attributes of files", type);
	else
		doctor_fix(doctor_add(d, "file-system", VERDICT_WARN, 0, NULL, "%s: %.160s", type, is->lacks),
		    "receive on another file system if these attributes matter, or see --preserve in ptcp-send(1)");
	doctor_add(d, "file-times", VERDICT_OK, is->time_s, "s", is->time_s > 0 ? "multiples of %g s" : "not kept",
	    is->time_s);
	doctor_add(d, "file-names", VERDICT_OK, (double)is->name_max, "bytes", "up to %u bytes%s%s", is->name_max,
	    is->refused[0] != '\0' ? ", without " : "", text_escape(shown, sizeof shown, is->refused));
}

void doctor_file_system(struct doctor *d, const char *dir)
{
	struct ptcp_file_system is;
	struct ptcp_err e;

	if (ptcp_file_system_try(dir, &is, &e) == 0)
		judge_file_system(d, &is);
	else
		doctor_fix(doctor_add(d, "file-system", VERDICT_WARN, 0, NULL, "not tried: %.160s", e.msg),
		    "name the destination directory with --dir");
}
