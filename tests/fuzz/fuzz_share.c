/* libFuzzer target: the sharing socket. The first byte chooses: texts of registrations and answers, or a script of what
 * processes do at the socket of a service: connect, send messages with descriptors, take answers, leave, in any
 * order. */
#include <dirent.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/local_sock.h"
#include "core/log.h"
#include "fuzz.h"
#include "net/loop.h"
#include "scratch.h"
#include "server/port_share.h"

#define PORT 7811
#define SLOTS 5
#define KEYS 3

/* ---- Texts ---- */

/* Nothing that a log would obey. */
static bool harmless(const char *s)
{
	for (; *s != '\0'; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			return false;
	return true;
}

static void texts(const char *text)
{
	char again[LOCAL_SOCK_TEXT_BYTES];
	struct ptcp_err e = { 0 };
	const char *key = port_share_register_parse(text);
	unsigned port = 0;
	int r = port_share_answer_parse(&port, text, &e);

	if (key != NULL) {
		MUST(strlen(key) == TLS_SHARE_KEY_BYTES - 1 && strspn(key, "0123456789abcdef") == strlen(key));
		port_share_register_text(again, key);
		MUST(strcmp(again, text) == 0 && r < 0);
	}
	MUST(r == 0 ? port >= 1 && port <= 65535 : port == 0 && r == e.code && e.msg[0] != '\0' && harmless(e.msg));
	if (r == 0) {
		port_share_answer_text(again, port);
		MUST(port_share_answer_parse(&port, again, NULL) == 0 && strlen(again) <= strlen(text));
	}
}

/* ---- A service ---- */

static struct {
	struct loop *loop;
	struct port_share *share;
	struct log log;
	unsigned labels;
	int fd[SLOTS];       /* of processes; -1: none */
	bool registered[SLOTS];
	char label[KEYS][TLS_SHARE_LABEL_BYTES];
} t;

static void on_changed(void *arg, unsigned labels)
{
	(void)arg;
	t.labels = labels;
}

static void on_again(void *arg) { (void)arg; }

static void on_log(void *arg, enum log_level level, const char *component, const char *text)
{
	(void)arg, (void)level, (void)component;
	MUST(harmless(text));
}

static unsigned open_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	MUST(d != NULL);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

static const char *key_of(unsigned k)
{
	static char key[TLS_SHARE_KEY_BYTES];

	memset(key, "0a9"[k], sizeof key - 1);
	return key;
}

static void begin(void)
{
	struct port_share_opts o = { .loop = t.loop, .log = &t.log, .path = scratch_path("share"),
		.port = PORT, .max_user = 4, .max = 16, .changed = on_changed, .again = on_again };
	unsigned i;

	t.labels = 0;
	MUST(port_share_new(&t.share, &o, NULL) == 0);
	for (i = 0; i < SLOTS; i++) {
		t.fd[i] = -1;
		t.registered[i] = false;
	}
	for (i = 0; i < KEYS; i++)
		MUST(tls_share_label(t.label[i], key_of(i), NULL) == 0);
}

static void turns(unsigned n)
{
	while (n-- > 0)
		loop_run_once(t.loop, false);
}

static void leave(unsigned i)
{
	if (t.fd[i] >= 0)
		close(t.fd[i]);
	t.fd[i] = -1;
	t.registered[i] = false;
}

/* With up to three descriptors. */
static void say(unsigned i, struct input text, unsigned n_fd)
{
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(3 * sizeof(int))];
	} control;
	struct iovec io = { (void *)(uintptr_t)text.p, text.n };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1 };
	int fd[3] = { t.fd[i], STDIN_FILENO, t.fd[i] };

	if (n_fd > 0) {
		memset(&control, 0, sizeof control);
		control.h = (struct cmsghdr){ .cmsg_len = CMSG_LEN(n_fd * sizeof(int)), .cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(&control.h), fd, n_fd * sizeof(int));
		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(n_fd * sizeof(int));
	}
	(void)!sendmsg(t.fd[i], &m, MSG_NOSIGNAL | MSG_DONTWAIT); /* the service may have ended the registration */
}

/* An answer is one of ours. */
static void hear(unsigned i)
{
	char text[LOCAL_SOCK_TEXT_BYTES];
	unsigned port;
	int passed, r = local_sock_receive(t.fd[i], text, sizeof text, &passed);

	if (passed >= 0)
		close(passed);
	if (r == 0)
		leave(i);
	if (r <= 0)
		return;
	if (strcmp(text, PORT_SHARE_CONNECTION) == 0) {
		MUST(t.registered[i] && passed >= 0);
	} else if (port_share_answer_parse(&port, text, NULL) == 0) {
		MUST(port == PORT && !t.registered[i] && passed < 0);
		t.registered[i] = true;
	} else {
		MUST(strncmp(text, PORT_SHARE_ERROR " ", strlen(PORT_SHARE_ERROR) + 1) == 0);
	}
}

static void lend(unsigned k)
{
	int end[2];

	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, end) == 0);
	port_share_lend(t.share, t.label[k], end[0]);
	close(end[0]);
	close(end[1]);
}

static void act(struct input *in)
{
	unsigned op = take_byte(in), i = op / 8 % SLOTS;
	char text[LOCAL_SOCK_TEXT_BYTES];

	switch (op % 8) {
	case 0:
		leave(i);
		if (local_sock_connect(&t.fd[i], scratch_path("share"), 0, NULL) < 0)
			t.fd[i] = -1;
		break;
	case 1:
		port_share_register_text(text, key_of(take_byte(in) % KEYS));
		if (t.fd[i] >= 0)
			say(i, (struct input){ (uint8_t *)text, strlen(text) }, op / 64);
		break;
	case 2:
		if (t.fd[i] >= 0)
			say(i, take_bytes(in, take_byte(in)), op / 64);
		break;
	case 3:
		if (t.fd[i] >= 0)
			hear(i);
		break;
	case 4:
		leave(i);
		break;
	case 5:
		if (t.fd[i] >= 0)
			shutdown(t.fd[i], (int)(op / 64 % 3));
		break;
	case 6:
		lend(i % KEYS);
		break;
	default:
		turns(3);
	}
	MUST(t.labels <= KEYS);
}

static void scripted(struct input *in)
{
	struct ptcp_server_stats st = { 0 };
	unsigned i;

	begin();
	while (in->n > 0)
		act(in);
	for (i = 0; i < SLOTS; i++)
		leave(i);
	turns(12);
	port_share_stats(t.share, &st);
	MUST(st.shared_now == 0 && t.labels == 0); /* of processes that have left */
	port_share_free(t.share);
	turns(2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct input in = { data, n };
	unsigned before;
	char *text;

	if (t.loop == NULL) {
		t.log = (struct log){ .write = on_log, .level = LOG_DEBUG };
		MUST(loop_new(&t.loop, NULL) == 0);
	}
	if (take_byte(&in) % 4 != 0) {
		while (in.n > 0) {
			text = take_line(&in);
			texts(text);
			free(text);
		}
		return 0;
	}
	scratch(); /* whatever that opens */
	before = open_descriptors();
	scripted(&in);
	MUST(open_descriptors() == before);
	return 0;
}
