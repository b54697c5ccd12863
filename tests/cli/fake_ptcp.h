/* A fake of libptcp for the tests of src/cli: records the arguments of calls, and returns results and events from
 * `fake`. */
#ifndef TESTS_CLI_FAKE_PTCP_H
#define TESTS_CLI_FAKE_PTCP_H

#include <ptcp/ptcp.h>

struct fake {
	char rate_set[64];       /* ptcp_transfer_set_rate() */
	int rate_code;
	/* Results and events. */
	int new_code;                    /* of ptcp_send_new, ptcp_recv_new, ptcp_server_new */
	int run_code;                    /* of ptcp_task_run, ptcp_server_run */
	const char *sentence;            /* of a failure */
	const struct ptcp_event *events; /* during ptcp_task_run */
	size_t n_events;
	struct ptcp_result result;
	int raise;                       /* a signal to raise during run; 0: none */
	int key_code;                    /* of the key functions */
	struct ptcp_advice advice;
	const struct ptcp_round *rounds; /* during ptcp_task_run */
	size_t n_rounds;
	const struct ptcp_level *levels;
	size_t n_levels;
	unsigned saturates_at;
	const char *config_dir;
	struct ptcp_server_stats stats;
	double aes_bps, chacha_bps, hash_bps;
	const char *openssl;
	struct ptcp_file_system file_system;
	int file_system_code;

	/* Recorded arguments. */
	unsigned sends, recvs, runs, cancels, stops, frees;
	struct ptcp_transfer_opts opts;
	struct ptcp_server_opts server, changed;
	unsigned steps, changes;
	struct ptcp_advice_opts advice_opts;
	struct ptcp_measure_opts measure;
	bool status_cancel;
	struct ptcp_clean_opts clean;   /* of the last ptcp_clean(), which reports one leftover;
	                                   clean_why: why it remains */
	const char *clean_why;
	enum ptcp_manage_op op;          /* of the last ptcp_manage_new(), */
	struct ptcp_manage_opts manage;  /* which fails on the host "b"; */
	const struct ptcp_entry *entries; /* ptcp_task_run() reports them */
	size_t n_entries;
	uint64_t failed;
	char srcs[512];                  /* joined by '|' */
	char dest[256];
	char listen[64], root[256];
	const char *called;              /* "show", "generate", "authorize", "revoke" */
	char fingerprint[128], perm_root[512], perm_name[64];
	char ca[64];
	int64_t valid_s;
	bool perm_read_only, perm_no_relay, perm_authority;
	uint64_t perm_quota;
	unsigned n_clients; /* authorized */
};

extern struct fake fake;
void fake_reset(void);

#endif
