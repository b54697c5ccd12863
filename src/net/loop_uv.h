/* For the rest of net: the loop as libuv knows it. */
#ifndef NET_LOOP_UV_H
#define NET_LOOP_UV_H

#include <uv.h>

#include "net/loop.h"

uv_loop_t *loop_uv(struct loop *l);

#endif
