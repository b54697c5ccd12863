/* Defaults of the public structs, and small facts. */
#include <ptcp/ptcp.h>
#include <string.h>

#include "net/identity.h"
#include "net/trust.h"

const char *ptcp_version(void)
{
	return PTCP_VERSION;
}

static const char *const cipher_names[PTCP_CIPHERS] = {
	[PTCP_CIPHER_AES128GCM] = "aes128gcm",
	[PTCP_CIPHER_AES256GCM] = "aes256gcm",
	[PTCP_CIPHER_CHACHA20] = "chacha20",
	[PTCP_CIPHER_NONE] = "none",
};

const char *ptcp_cipher_name(enum ptcp_cipher c)
{
	return (unsigned)c < PTCP_CIPHERS ? cipher_names[c] : NULL;
}

int ptcp_cipher_parse(const char *name, enum ptcp_cipher *out)
{
	unsigned i;

	for (i = 0; i < PTCP_CIPHERS; i++)
		if (strcmp(name, cipher_names[i]) == 0) {
			*out = (enum ptcp_cipher)i;
			return 0;
		}
	return -1;
}

static const char *const state_names[] = { [PTCP_STATE_RUNNING] = "running", [PTCP_STATE_DONE] = "done",
	[PTCP_STATE_FAILED] = "failed" };

const char *ptcp_state_name(enum ptcp_state s)
{
	return state_names[s];
}

void ptcp_transfer_opts_init(struct ptcp_transfer_opts *o)
{
	*o = (struct ptcp_transfer_opts){
		.size = sizeof *o, .cipher = PTCP_CIPHER_AES128GCM, .preserve_times = true,
		.preserve_mode = true, .preserve_links = true, .timeout_s = 30,
		.log_level = PTCP_LOG_WARN, .impact_percent = 10, .max_streams = 32
	};
}

void ptcp_server_opts_init(struct ptcp_server_opts *o)
{
	*o = (struct ptcp_server_opts){
		.size = sizeof *o,
		.ciphers = 1u << PTCP_CIPHER_AES128GCM | 1u << PTCP_CIPHER_AES256GCM |
		    1u << PTCP_CIPHER_CHACHA20,
		.max_streams = PTCP_STREAMS_MAX, .max_sessions = 64, .max_client_sessions = 16, .max_startups = 512,
		.timeout_s = 30, .max_relayed = 512,
		.log_level = PTCP_LOG_WARN, .in = 0, .out = 1
	};
}

void ptcp_server_stats_init(struct ptcp_server_stats *st)
{
	*st = (struct ptcp_server_stats){ .size = sizeof *st };
}

void ptcp_result_init(struct ptcp_result *r)
{
	*r = (struct ptcp_result){ .size = sizeof *r };
}

void ptcp_permission_init(struct ptcp_permission *p)
{
	*p = (struct ptcp_permission){ .size = sizeof *p };
}
