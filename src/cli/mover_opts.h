/* Options of a transfer about movers. */
#ifndef CLI_MOVER_OPTS_H
#define CLI_MOVER_OPTS_H

#include "cli/transfer.h"

/* For struct transfer_args. */
extern const struct opt mover_options[];
/* Frees what the options have allocated. */
void mover_options_fini(struct transfer_args *a);
/* The path of this program; NULL: unknown. */
const char *mover_own_path(char *out, size_t cap);

#endif
