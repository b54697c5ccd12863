/* libFuzzer target: what a receiver finds beside its files and believes only if it is its own: the journal
 * of a part, whose header is made right where the script says so, and the mark of an unfinished
 * directory. */
#include <unistd.h>

#include "core/text.h"
#include "fuzz.h"
#include "scratch.h"
#include "store/destination.h"
#include "store/journal.h"
#include "store/part.h"

static const uint8_t version[JOURNAL_VERSION_BYTES] = "sixteen bytes...";
static const struct journal_key key = { "big file", 1000000, { 1234567890, 987654321 }, version, 262144, NULL };

struct place_to_be {
	struct tree *tree;
	struct dir *d;
	int at;
};

/* What can be read of it, each record one of the file's blocks. */
static uint64_t read_all(const struct journal *j)
{
	struct journal_record r[JOURNAL_READ];
	uint64_t slot, good = 0;
	int n, i;

	for (slot = 0; slot < atomic_load(&j->next); slot += JOURNAL_READ) {
		n = journal_read(j, &sys_real, slot, JOURNAL_READ, r);
		MUST(n >= 0 && n <= (int)JOURNAL_READ);
		for (i = 0; i < n; i++)
			MUST(r[i].block < j->n_blocks && r[i].slot >= slot && r[i].slot < slot + JOURNAL_READ);
		good += (uint64_t)n;
	}
	return good;
}

static void read_journal(const struct place_to_be *p)
{
	struct journal j = { .fd = -1 };
	struct journal_record r[1];
	uint64_t next, good;

	if (journal_open(&j, p->d, p->at, &key) != JOURNAL_MATCHES) {
		MUST(j.fd == -1);
		return;
	}
	good = read_all(&j);
	next = atomic_load(&j.next);
	/* It goes on behind what is there, whatever that is. */
	journal_append(&j, &sys_real, 1, 0x77);
	if (atomic_load(&j.next) > next && journal_read(&j, &sys_real, next, 1, r) == 1) {
		MUST(r[0].block == 1 && r[0].hash == 0x77 && read_all(&j) == good + 1);
		journal_cut(&j, &sys_real, next);
		MUST(read_all(&j) == good);
	}
	journal_close(&j, &sys_real);
}

/* The records of the input, some with a check that is right. */
static void write_journal(const struct place_to_be *p, struct input in)
{
	struct journal j = { .fd = -1 };

	journal_create(&j, p->d, p->at, &key);
	MUST(j.fd >= 0);
	while (in.n > 0) {
		if (*in.p & 1) {
			uint8_t block = take_byte(&in);

			journal_append(&j, &sys_real, block >> 1, take_byte(&in));
		} else {
			struct input record = take_bytes(&in, JOURNAL_RECORD_BYTES);

			MUST(pwrite(j.fd, record.p, record.n, (off_t)(JOURNAL_HEADER_BYTES +
			    JOURNAL_RECORD_BYTES * atomic_fetch_add(&j.next, 1))) == (ssize_t)record.n);
		}
	}
	journal_close(&j, &sys_real);
}

static void read_mark(const struct place_to_be *p, struct input in)
{
	char mark[PART_NAME_BYTES], source[DESTINATION_NAME_BYTES];

	scratch_write(part_name(mark, "dir", PART_DIR_SUFFIX), in);
	if (destination_marked(p->d, "dir", source)) {
		MUST(text_name_ok(source, strlen(source)) && strlen(source) <= in.n);
		MUST(memcmp(source, in.p, strlen(source)) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct input in = { data, n };
	char name[PART_NAME_BYTES];
	struct place_to_be p;

	mkdir(scratch_path("dir"), 0700);
	MUST(tree_open(&p.tree, scratch(), &sys_real, NULL) == 0);
	p.d = tree_root(p.tree);
	MUST((p.at = dir_fd(p.d, NULL)) >= 0);
	switch (take_byte(&in) % 3) {
	case 0:
		scratch_write(part_name(name, key.name, PART_JOURNAL_SUFFIX), in);
		read_journal(&p);
		break;
	case 1:
		write_journal(&p, in);
		read_journal(&p);
		break;
	default:
		read_mark(&p, in);
	}
	dir_fd_done(p.d);
	dir_unref(p.d);
	tree_unref(p.tree);
	return 0;
}
