/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files with cases include. The macros note where a case was when a helper
 * fails, so that the report names the case's line.
 */
#ifndef FUNC_HARNESS_H
#define FUNC_HARNESS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "atomics.h"
#include "env.h"
#include "far.h"

#define AT(call) (case_at(__FILE__, __LINE__), call)
#define me(...) AT(me(__VA_ARGS__))
#define peer(...) AT(peer(__VA_ARGS__))
#define target(...) AT(target(__VA_ARGS__))
#define buf(...) AT(buf(__VA_ARGS__))
#define buf_same(...) AT(buf_same(__VA_ARGS__))
#define start(...) AT(start(__VA_ARGS__))
#define access_ok(...) AT(access_ok(__VA_ARGS__))
#define op_run(...) AT(op_run(__VA_ARGS__))
#define fab_wait_ok(...) AT(fab_wait_ok(__VA_ARGS__))
#define fab_open(...) AT(fab_open(__VA_ARGS__))
#define fab_open_domain(...) AT(fab_open_domain(__VA_ARGS__))
#define fab_close(...) AT(fab_close(__VA_ARGS__))
#define fab_quiet(...) AT(fab_quiet(__VA_ARGS__))
#define fab_insert(...) AT(fab_insert(__VA_ARGS__))
#define peer_start(...) AT(peer_start(__VA_ARGS__))
#define peer_stop(...) AT(peer_stop(__VA_ARGS__))
#define peer_alloc(...) AT(peer_alloc(__VA_ARGS__))
#define peer_same(...) AT(peer_same(__VA_ARGS__))
#define peer_same_outside(...) AT(peer_same_outside(__VA_ARGS__))
#define peer_reg(...) AT(peer_reg(__VA_ARGS__))
#define peer_try_reg(...) AT(peer_try_reg(__VA_ARGS__))
#define peer_reg_many(...) AT(peer_reg_many(__VA_ARGS__))
#define peer_unreg(...) AT(peer_unreg(__VA_ARGS__))
#define peer_insert(...) AT(peer_insert(__VA_ARGS__))
#define peer_tsend(...) AT(peer_tsend(__VA_ARGS__))
#define peer_rma(...) AT(peer_rma(__VA_ARGS__))
#define peer_rma_end(...) AT(peer_rma_end(__VA_ARGS__))
#define peer_done(...) AT(peer_done(__VA_ARGS__))
#define peer_reopen(...) AT(peer_reopen(__VA_ARGS__))
#define peer_shut(...) AT(peer_shut(__VA_ARGS__))
#define fab_map(...) AT(fab_map(__VA_ARGS__))
#define fab_ready(...) AT(fab_ready(__VA_ARGS__))
#define far_sys(...) AT(far_sys(__VA_ARGS__))
#define far_call_(...) AT(far_call_(__VA_ARGS__))
#define far_map(...) AT(far_map(__VA_ARGS__))
#define far_map_fd(...) AT(far_map_fd(__VA_ARGS__))
#define far_unmap(...) AT(far_unmap(__VA_ARGS__))
#define far_advise(...) AT(far_advise(__VA_ARGS__))
#define far_move(...) AT(far_move(__VA_ARGS__))
#define far_memfd(...) AT(far_memfd(__VA_ARGS__))
#define far_poke(...) AT(far_poke(__VA_ARGS__))
#define far_peek(...) AT(far_peek(__VA_ARGS__))
#define far_pinned(...) AT(far_pinned(__VA_ARGS__))
#define far_stack(...) AT(far_stack(__VA_ARGS__))
#define far_try_regv(...) AT(far_try_regv(__VA_ARGS__))
#define far_try_reg(...) AT(far_try_reg(__VA_ARGS__))
#define far_regv(...) AT(far_regv(__VA_ARGS__))
#define far_reg(...) AT(far_reg(__VA_ARGS__))
#define far_bind(...) AT(far_bind(__VA_ARGS__))
#define far_enable(...) AT(far_enable(__VA_ARGS__))
#define far_refresh(...) AT(far_refresh(__VA_ARGS__))
#define far_key(...) AT(far_key(__VA_ARGS__))
#define far_raw(...) AT(far_raw(__VA_ARGS__))
#define far_take_key(...) AT(far_take_key(__VA_ARGS__))
#define far_access(...) AT(far_access(__VA_ARGS__))
#define far_lands(...) AT(far_lands(__VA_ARGS__))
#define far_brings(...) AT(far_brings(__VA_ARGS__))
#define peer_atomic_start(...) AT(peer_atomic_start(__VA_ARGS__))
#define peer_atomic_end(...) AT(peer_atomic_end(__VA_ARGS__))
#define peer_atomic(...) AT(peer_atomic(__VA_ARGS__))
#define far_refused(...) AT(far_refused(__VA_ARGS__))

#endif
