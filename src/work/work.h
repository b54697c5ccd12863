/* A mover: a process that joins the engine of a striped transfer and carries out streams, until the engine ends or its
 * connection is lost. */
#ifndef WORK_WORK_H
#define WORK_WORK_H

#include <ptcp/ptcp.h>

#include "core/err.h"

/* 0: the engine has ended. */
int mover_work(const struct ptcp_mover_opts *o, struct ptcp_err *e);

#endif
