/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The model of fi_mr(3) and of messages (tests/model) against the library on a device: 4000 steps in 20
 * worlds, each of two threads and their peers, which are processes, in a mode of its own, and
 * 600 in 3 worlds with messages.
 *
 *	MRFAB_SEED		other worlds (1)
 *	MRFAB_MODEL_STEPS	how many steps in the 20 worlds (4000)
 *
 * What fails is shortened for as long as --timeout lets it: take much.
 */
#include <unistd.h>
#include "harness.h"
#include "../model/device.h"

#define WORLDS 20
#define CASES 5

static bool objects_left(void)
{
	uint64_t pid = (uint64_t)getpid();

	return kernel_objects(pid, "mr") >= 0 && !kernel_objects_gone(pid, 5000);
}

#define MESSAGE_WORLDS 3

static void worlds_run(struct env *e, unsigned number, bool messages)
{
	const char *text = getenv("MRFAB_MODEL_STEPS");
	unsigned steps = text && *text ? (unsigned)strtoul(text, NULL, 0) : 4000;
	unsigned worlds = messages ? MESSAGE_WORLDS : WORLDS / CASES;

	must(model_on_device(number * worlds, worlds, steps / WORLDS, 2,
			     (unsigned)e->timeout * 2 / 3, messages, objects_left),
	     "library and model do not agree: see above");
}

IN_MODES(MODES_ONE)

/* In parts, so that a slow machine has time for each. */
CASE(model_and_library_agree_in_worlds_0_to_3)
{
	worlds_run(e, 0, false);
}

CASE(model_and_library_agree_in_worlds_4_to_7)
{
	worlds_run(e, 1, false);
}

CASE(model_and_library_agree_in_worlds_8_to_11)
{
	worlds_run(e, 2, false);
}

CASE(model_and_library_agree_in_worlds_12_to_15)
{
	worlds_run(e, 3, false);
}

CASE(model_and_library_agree_in_worlds_16_to_19)
{
	worlds_run(e, 4, false);
}

CASE(model_and_library_agree_in_worlds_with_messages)
{
	worlds_run(e, 0, true);
}
