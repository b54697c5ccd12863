/* The receiving half by hand: other names of a file, and dry runs. */
#include "one.h"

#include <stdlib.h>
#include <string.h>

#include "core/bitmap.h"
#include "core/err.h"
#include "wire/attrs.h"

#define FILE_ID ((uint64_t)2 << 16 | 2)
#define LINK_ID ((uint64_t)3 << 16 | 3)

static struct rcv *rcv_of(struct one *o) { return engine_rcv(o->s); }

static void put(struct one *o, uint8_t type, uint64_t id, uint64_t parent, uint64_t size_bytes)
{
	struct wire_entry f = one_entry(type, id, parent, size_bytes);

	ONE_PUT(o, entry, &f);
}

static void put_link(struct one *o, uint64_t id, uint64_t parent, uint64_t link_id)
{
	struct wire_entry f = one_link(id, parent, link_id);

	ONE_PUT(o, entry, &f);
}

static void write_file(struct one *o)
{
	rcv_block(rcv_of(o), FILE_ID, 0, RCV_BLOCK_WRITTEN, (struct digest){ 0, 0 }, NULL);
	rcv_committed(rcv_of(o), FILE_ID, NULL);
}

/* A file of one block and another name of it. */
static void begin(struct one *o)
{
	one_run(o, false, true);
	put(o, WIRE_FILE, FILE_ID, 0, 10);
	put_link(o, LINK_ID, 0, FILE_ID);
	assert_int_equal(o->cookies, 1); /* it waits */
	one_forget(o);
}

/* The receiver requests that the sender offers the link again, and does not fail it. */
static bool is_requested_again(struct one *o, uint64_t id)
{
	struct wire_answer a;
	struct wire_fail f;
	struct span p;
	unsigned type;
	bool again = false;

	while ((type = one_said(o, &p)) != 0) {
		if (type == WIRE_ANSWER && wire_answer_decode(&a, p, NULL) == 0 && a.id == id)
			again = a.verdict == WIRE_NO_LINK;
		if (type == WIRE_FAIL && wire_fail_decode(&f, p, NULL) == 0 && f.id == id)
			return false;
	}
	return again;
}

static void after_its_file(void **state)
{
	struct span p;
	struct one o;

	(void)state;
	begin(&o);
	write_file(&o);
	assert_int_equal(o.cookies, 1);
	assert_int_equal(o.commits, 2);
	one_forget(&o);
	rcv_committed(rcv_of(&o), LINK_ID, NULL);
	assert_int_equal(one_said(&o, &p), WIRE_DONE);
	assert_true(rcv_idle(rcv_of(&o)) && rcv_stats(rcv_of(&o)).done.files == 1);
	put_link(&o, one_id(4, 4), 0, FILE_ID); /* that has been complete for long */
	assert_int_equal(o.commits, 3);
	one_fini(&o);
}

static void after_a_file_that_is_here(void **state)
{
	struct one o;

	(void)state;
	one_run(&o, false, true);
	o.prep = RCV_LATER;
	put(&o, WIRE_FILE, FILE_ID, 0, 10);
	put_link(&o, LINK_ID, 0, FILE_ID);
	o.prep = RCV_ACCEPT;
	rcv_prepared(rcv_of(&o), FILE_ID, RCV_UP_TO_DATE, NULL, NULL);
	assert_true(o.skipped == 1 && o.commits == 1);
	one_fini(&o);

	one_run(&o, false, true);
	o.prep = RCV_COMPARE;
	put(&o, WIRE_FILE, FILE_ID, 0, 10);
	put_link(&o, LINK_ID, 0, FILE_ID);
	o.prep = RCV_ACCEPT;
	rcv_compared(rcv_of(&o), FILE_ID, (struct digest){ 0, 5 }, NULL);
	ONE_PUT(&o, file_end, &(struct wire_file_end){ FILE_ID, { 0, 5 } });
	rcv_prepared(rcv_of(&o), FILE_ID, RCV_UP_TO_DATE, NULL, NULL);
	assert_true(o.skipped == 1 && o.commits == 1);
	one_fini(&o);
}

/* However the file fails: the sender may have the content under the other name. */
static void of_a_file_that_fails(void **state)
{
	struct ptcp_err why;
	struct one o;
	unsigned how;

	(void)state;
	err_set(&why, PTCP_EIO, "x");
	for (how = 0; how < 4; how++) {
		begin(&o);
		if (how == 0) {
			rcv_block(rcv_of(&o), FILE_ID, 0, RCV_BLOCK_FAILED, (struct digest){ 0, 0 }, &why);
		} else if (how == 1) {
			one_fail(&o, FILE_ID, PTCP_EIO);
		} else if (how == 2) {
			rcv_block(rcv_of(&o), FILE_ID, 0, RCV_BLOCK_WRITTEN, (struct digest){ 0, 0 }, NULL);
			rcv_committed(rcv_of(&o), FILE_ID, &why);
		} else { /* the link was on its way */
			rcv_block(rcv_of(&o), FILE_ID, 0, RCV_BLOCK_FAILED, (struct digest){ 0, 0 }, &why);
			one_forget(&o);
			put_link(&o, one_id(4, 3), 0, FILE_ID);
			assert_true(is_requested_again(&o, one_id(4, 3)) && engine_failed(o.s) == 1);
			one_fini(&o);
			continue;
		}
		assert_true(is_requested_again(&o, LINK_ID));
		assert_true(rcv_idle(rcv_of(&o)) && engine_failed(o.s) == 1 && o.cookies == 0);
		assert_int_equal(rcv_stats(rcv_of(&o)).done.others, 0);
		one_fini(&o);
	}
}

static void of_a_file_that_was_refused(void **state)
{
	struct one o;

	(void)state;
	one_run(&o, false, true);
	o.prep = RCV_REFUSE;
	put(&o, WIRE_DIR, one_id(1, 1), 0, 0);
	o.prep = RCV_ACCEPT;
	put(&o, WIRE_FILE, FILE_ID, one_id(1, 1), 10); /* in a directory that failed */
	one_forget(&o);
	put_link(&o, LINK_ID, 0, FILE_ID);
	assert_true(is_requested_again(&o, LINK_ID));
	assert_int_equal(o.commits, 0);
	one_fini(&o);
}

/* A file, and another name of it in a directory that is not there yet. */
static void waits_for_directory(struct one *o)
{
	one_run(o, false, true);
	put(o, WIRE_FILE, FILE_ID, 0, 10);
	o->prep = RCV_LATER;
	put(o, WIRE_DIR, one_id(8, 8), 0, 0);
	put_link(o, one_id(9, 9), one_id(8, 8), FILE_ID);
	o->prep = RCV_ACCEPT;
}

/* First its directory, then its file; each can fail. */
static void two_things_to_wait_for(void **state)
{
	struct ptcp_err why;
	struct one o;
	unsigned how;

	(void)state;
	err_set(&why, PTCP_EIO, "x");
	for (how = 0; how < 3; how++) {
		waits_for_directory(&o);
		if (how == 0) {
			rcv_prepared(rcv_of(&o), one_id(8, 8), RCV_REFUSE, NULL, &why);
			assert_int_equal(engine_failed(o.s), 2);
		} else if (how == 1) {
			one_fail(&o, FILE_ID, PTCP_EIO);
			one_forget(&o);
			rcv_prepared(rcv_of(&o), one_id(8, 8), RCV_ACCEPT, NULL, NULL);
			assert_true(is_requested_again(&o, one_id(9, 9)) && engine_failed(o.s) == 1);
		} else {
			rcv_prepared(rcv_of(&o), one_id(8, 8), RCV_ACCEPT, NULL, NULL);
			assert_int_equal(o.commits, 0);
			write_file(&o);
			assert_int_equal(o.commits, 2);
		}
		assert_int_equal(o.ended, 0);
		one_fini(&o);
	}
}

/* Its file fails while the link waits for its directory; so does the file that comes in that slot. */
static void of_a_file_whose_slot_fails_again(void **state)
{
	struct one o;

	(void)state;
	waits_for_directory(&o);
	one_fail(&o, FILE_ID, PTCP_EIO);
	put(&o, WIRE_FILE, one_id(10, wire_slot(FILE_ID)), 0, 10);
	one_fail(&o, one_id(10, wire_slot(FILE_ID)), PTCP_EIO);
	one_forget(&o);
	rcv_prepared(rcv_of(&o), one_id(8, 8), RCV_ACCEPT, NULL, NULL);
	assert_int_equal(o.commits, 0);
	assert_true(is_requested_again(&o, one_id(9, 9)) && engine_failed(o.s) == 2);
	one_fini(&o);
}

/* Nor does it hold up the directory of its file. */
static void of_a_file_whose_directory_ends(void **state)
{
	struct wire_entry end = one_entry(WIRE_DIR_END, one_id(1, 1), 0, 0);
	struct one o;

	(void)state;
	one_run(&o, false, true);
	put(&o, WIRE_DIR, one_id(1, 1), 0, 0);
	put(&o, WIRE_FILE, FILE_ID, one_id(1, 1), 10);
	o.prep = RCV_LATER;
	put(&o, WIRE_DIR, one_id(8, 8), 0, 0);
	put_link(&o, one_id(9, 9), one_id(8, 8), FILE_ID);
	o.prep = RCV_ACCEPT;
	write_file(&o);
	ONE_PUT(&o, entry, &end);
	assert_int_equal(o.commits, 2);
	rcv_prepared(rcv_of(&o), one_id(8, 8), RCV_ACCEPT, NULL, NULL);
	assert_int_equal(o.commits, 3);
	assert_int_equal(o.ended, 0);
	one_fini(&o);
}

/* A symbolic link, and another name of it: as of a file, whether the first name is made, is there, or fails. */
static void of_a_symbolic_link(void **state)
{
	struct ptcp_err why;
	struct one o;
	unsigned how;

	(void)state;
	err_set(&why, PTCP_EIO, "x");
	for (how = 0; how < 4; how++) {
		one_run(&o, false, true);
		o.prep = how == 1 ? RCV_LATER : RCV_ACCEPT;
		put(&o, WIRE_SYMLINK, FILE_ID, 0, 0);
		put_link(&o, LINK_ID, 0, FILE_ID);
		assert_int_equal(o.cookies, 1); /* it waits */
		o.prep = RCV_ACCEPT;
		one_forget(&o);
		if (how == 1)
			rcv_prepared(rcv_of(&o), FILE_ID, RCV_UP_TO_DATE, NULL, NULL);
		else
			rcv_committed(rcv_of(&o), FILE_ID, how == 0 ? NULL : &why);
		if (how == 3) { /* a third name was on its way */
			one_forget(&o);
			put_link(&o, one_id(4, 3), 0, FILE_ID);
		}
		assert_int_equal(o.commits, how == 0 ? 2 : 1);
		if (how >= 2)
			assert_true(is_requested_again(&o, how == 2 ? LINK_ID : one_id(4, 3)) &&
			    engine_failed(o.s) == 1);
		else
			rcv_committed(rcv_of(&o), LINK_ID, NULL);
		assert_true(rcv_idle(rcv_of(&o)) && rcv_stats(rcv_of(&o)).done.others == (how < 2 ? 2 : 0));
		one_fini(&o);
	}
}

/* The session ends while it waits: nothing is left of either. */
static void dropped_while_it_waits(void **state)
{
	struct one o;

	(void)state;
	begin(&o);
	put_link(&o, one_id(4, 1), 0, FILE_ID); /* in a slot before, and one behind it */
	one_fini(&o);
}

/* ---- Links that cannot be made ---- */

/* Before it is accepted, or when it is made: the sender is told, and the id ends uncounted. */
static void that_cannot_be_made(void **state)
{
	struct wire_answer a = { 0 };
	struct span p;
	struct one o;
	bool late;

	(void)state;
	for (late = false;; late = true) {
		begin(&o);
		o.prep = late ? RCV_ACCEPT : RCV_NO_LINK;
		write_file(&o);
		if (late) {
			one_forget(&o);
			rcv_not_linked(rcv_of(&o), LINK_ID);
		}
		assert_true(one_found(&o, WIRE_ANSWER, &p) && wire_answer_decode(&a, p, NULL) == 0);
		assert_true(a.id == LINK_ID && a.verdict == WIRE_NO_LINK && o.skipped == 1 && o.cookies == 0);
		assert_true(rcv_idle(rcv_of(&o)) && rcv_stats(rcv_of(&o)).done.files == 1 &&
		    rcv_stats(rcv_of(&o)).done.others == 0);
		rcv_not_linked(rcv_of(&o), LINK_ID); /* has ended */
		one_fini(&o);
		if (late)
			return;
	}
}

/* A hard link in a directory that is left, which the receiver cannot make. */
static uint64_t refused_link(struct one *o, uint64_t *dir, void **cookie)
{
	struct wire_entry f;
	uint64_t id;

	one_run(o, true, true);
	*dir = one_offer(o, WIRE_DIR, 0);
	one_answer(o, *dir, WIRE_SEND_ALL);
	id = one_offer(o, WIRE_FILE, 0);
	one_answer(o, id, WIRE_SEND_NONE);
	f = one_link(0, 0, id);
	*cookie = malloc(1);
	id = snd_offer(engine_snd(o->s), &f, *cookie);
	snd_leave(engine_snd(o->s));
	one_answer(o, id, WIRE_NO_LINK);
	assert_true(o->again == id && o->ended == 0);
	return id;
}

/* The directory ends with what is offered instead, or after the sender has given the name up. */
static void is_offered_again(void **state)
{
	static const uint8_t name[] = "n";
	struct wire_entry f = { .type = WIRE_FILE, .name = { name, 1 } }, got;
	uint64_t dir, id, next;
	struct span p;
	struct one o;
	void *cookie;

	(void)state;
	id = refused_link(&o, &dir, &cookie);
	one_forget(&o);
	next = snd_offer_again(engine_snd(o.s), id, &f, malloc(1));
	free(cookie); /* the caller's again */
	assert_true(wire_slot(next) == wire_slot(id) && next > id);
	assert_true(one_found(&o, WIRE_ENTRY, &p) && wire_entry_decode(&got, p, NULL) == 0);
	assert_true(got.type == WIRE_FILE && got.id == next && got.parent == dir);
	one_answer(&o, next, WIRE_SEND_NONE);
	assert_true(o.ended == 0 && o.fates[SND_SKIPPED] == 2 && one_found(&o, WIRE_ENTRY, &p));
	assert_true(wire_entry_decode(&got, p, NULL) == 0 && got.type == WIRE_DIR_END && got.id == dir);
	one_fini(&o);

	id = refused_link(&o, &dir, &cookie);
	one_forget(&o);
	snd_give_up(engine_snd(o.s), id);
	assert_true(o.fates[SND_DROPPED] == 1 && one_found(&o, WIRE_ENTRY, &p));
	assert_true(wire_entry_decode(&got, p, NULL) == 0 && got.type == WIRE_DIR_END && got.id == dir);
	one_fini(&o);

	id = refused_link(&o, &dir, &cookie); /* and the directory fails meanwhile */
	one_fail(&o, dir, PTCP_EIO);
	assert_true(snd_offer_again(engine_snd(o.s), id, &f, malloc(1)) == 0 &&
	    o.fates[SND_FAILED] == 2 && o.ended == 0);
	free(cookie);
	one_fini(&o);
}

/* ---- Directories that lack something ---- */

/* The directory entered last, or none. */
static void lacking(void **state)
{
	struct wire_entry got;
	uint64_t outer, inner;
	struct span p;
	struct one o;

	(void)state;
	one_run(&o, true, true);
	assert_false(snd_lack(engine_snd(o.s)));
	outer = one_offer(&o, WIRE_DIR, 0);
	inner = one_offer(&o, WIRE_DIR, 0);
	one_answer(&o, outer, WIRE_SEND_ALL);
	one_answer(&o, inner, WIRE_SEND_ALL);
	assert_true(snd_lack(engine_snd(o.s)));
	one_forget(&o);
	snd_leave(engine_snd(o.s));
	assert_true(one_found(&o, WIRE_ENTRY, &p) && wire_entry_decode(&got, p, NULL) == 0);
	assert_true(got.type == WIRE_DIR_END && got.id == inner && got.size_bytes == 1);
	ONE_PUT(&o, done, &(struct wire_done){ inner });
	snd_leave(engine_snd(o.s));
	assert_true(one_found(&o, WIRE_ENTRY, &p) && wire_entry_decode(&got, p, NULL) == 0);
	assert_true(got.id == outer && got.size_bytes == 0);
	one_fini(&o);
}

/* ---- Files to which links may follow ---- */

static struct wire_entry linked_file(uint64_t id, uint64_t parent, const uint8_t *name, size_t n)
{
	static const uint8_t linked[] = { 0, WIRE_ATTR_LINKED, 0, 0 };
	struct wire_entry f = one_entry(WIRE_FILE, id, parent, 10);

	f.name = (struct span){ name, n };
	f.attrs = (struct span){ linked, sizeof linked };
	return f;
}

/* Number of LINKED files, with that name and in a directory of that name, which the receiver remembers. */
static unsigned accepted(const uint8_t *name, size_t n)
{
	struct wire_entry f = one_entry(WIRE_DIR, one_id(1, 1), 0, 0);
	struct one o;
	unsigned i;

	one_run(&o, false, true);
	o.prep = RCV_ACCEPT;
	f.name = (struct span){ name, n };
	ONE_PUT(&o, entry, &f);
	o.prep = RCV_UP_TO_DATE;
	for (i = 0; o.ended == 0; i++) {
		f = linked_file(one_id(i + 2, 2), one_id(1, 1), name, n);
		ONE_PUT(&o, entry, &f);
		one_forget(&o);
	}
	assert_true(one_broke(&o));
	one_fini(&o);
	return i - 1;
}

/* Number of those that the sender offers as LINKED. */
static unsigned offered(const uint8_t *name, size_t n)
{
	struct wire_entry f = one_entry(WIRE_DIR, 0, 0, 0);
	unsigned i = 0;
	struct one o;

	one_run(&o, true, true);
	f.name = (struct span){ name, n };
	snd_offer(engine_snd(o.s), &f, malloc(1));
	while (snd_may_link(engine_snd(o.s), 0, n))
		i++;
	one_fini(&o);
	return i;
}

/* Both sides count alike, the sender stays below the limit. */
static void files_that_are_remembered(void **state)
{
	static uint8_t name[255];
	size_t n;

	(void)state;
	memset(name, 'n', sizeof name);
	for (n = 1; n <= sizeof name; n += 254) {
		assert_int_equal(offered(name, n), (32u << 20) / (64 + 2 * n + 1));
		assert_int_equal(accepted(name, n), offered(name, n));
	}
}

/* ---- Dry runs ---- */

static void says_what_it_would_take(void **state)
{
	struct wire_entry end = one_entry(WIRE_DIR_END, one_id(1, 1), 0, 0);
	unsigned done = 0, answers = 0, type;
	struct span p;
	struct one o;

	(void)state;
	one_run_dry(&o, false);
	put(&o, WIRE_DIR, one_id(1, 1), 0, 0);
	put(&o, WIRE_FILE, FILE_ID, one_id(1, 1), 1u << 30);
	put_link(&o, LINK_ID, one_id(1, 1), FILE_ID);
	put(&o, WIRE_SYMLINK, one_id(4, 4), one_id(1, 1), 0);
	o.prep = RCV_PARTS; /* what it has of it does not matter */
	o.claimed = bitmap_new(4096);
	put(&o, WIRE_FILE, one_id(5, 5), one_id(1, 1), 1u << 30);
	o.prep = RCV_UP_TO_DATE;
	put(&o, WIRE_FILE, one_id(6, 6), one_id(1, 1), 10);
	ONE_PUT(&o, entry, &end);
	while ((type = one_said(&o, &p)) != 0) {
		done += type == WIRE_DONE;
		answers += type == WIRE_ANSWER;
	}
	assert_true(done == 5 && answers == 2); /* the directory and what is here */
	assert_true(o.commits == 0 && o.accepted == 0 && o.skipped == 1 && rcv_idle(rcv_of(&o)));
	assert_true(rcv_stats(rcv_of(&o)).done.files == 3 && rcv_stats(rcv_of(&o)).done.bytes == 10);
	one_fini(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(after_its_file),
		cmocka_unit_test(after_a_file_that_is_here),
		cmocka_unit_test(of_a_file_that_fails),
		cmocka_unit_test(of_a_file_that_was_refused),
		cmocka_unit_test(two_things_to_wait_for),
		cmocka_unit_test(of_a_file_whose_slot_fails_again),
		cmocka_unit_test(of_a_file_whose_directory_ends),
		cmocka_unit_test(of_a_symbolic_link),
		cmocka_unit_test(dropped_while_it_waits),
		cmocka_unit_test(that_cannot_be_made),
		cmocka_unit_test(is_offered_again),
		cmocka_unit_test(lacking),
		cmocka_unit_test(files_that_are_remembered),
		cmocka_unit_test(says_what_it_would_take),
	};
	return cmocka_run_group_tests_name("engine/receiver_hardlinks", tests, NULL, NULL);
}
