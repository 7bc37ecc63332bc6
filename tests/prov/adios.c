/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steps of data from one program to another by ADIOS2's SST engine, whose reader gets them by RDMA.
 * Usage: adios write|spoil|read NAME. The reader checks every value, and prints "ok N steps"; spoil
 * writes a wrong one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <adios2_c.h>

#define STEPS 4
#define COUNT ((size_t)1 << 17)

static void must(const char *what, int ok)
{
	if (ok)
		return;
	fprintf(stderr, "adios: %s failed\n", what);
	exit(1);
}

#define MUST(call) must(#call, (call) == adios2_error_none)

static double value_at(size_t step, size_t i)
{
	return (double)(step * COUNT + i);
}

static adios2_io *declare(adios2_adios *adios)
{
	adios2_io *io = adios2_declare_io(adios, "data");

	must("adios2_declare_io", !!io);
	MUST(adios2_set_engine(io, "SST"));
	MUST(adios2_set_parameter(io, "DataTransport", "RDMA"));
	MUST(adios2_set_parameter(io, "RendezvousReaderCount", "1"));
	MUST(adios2_set_parameter(io, "OpenTimeoutSecs", "100"));
	return io;
}

static void write_all(adios2_io *io, const char *name, double wrong)
{
	const size_t shape = COUNT, start = 0, count = COUNT;
	adios2_variable *variable =
		adios2_define_variable(io, "values", adios2_type_double, 1, &shape, &start, &count,
				       adios2_constant_dims_true);
	adios2_engine *engine = adios2_open(io, name, adios2_mode_write);
	double *data = malloc(COUNT * sizeof(*data));
	adios2_step_status status;

	must("adios2_open", variable && engine && data);
	for (size_t step = 0; step < STEPS; step++) {
		for (size_t i = 0; i < COUNT; i++)
			data[i] = value_at(step, i);
		data[COUNT - 1] += wrong;
		MUST(adios2_begin_step(engine, adios2_step_mode_append, -1, &status));
		MUST(adios2_put(engine, variable, data, adios2_mode_sync));
		MUST(adios2_end_step(engine));
	}
	MUST(adios2_close(engine));
	free(data);
}

static size_t wrong_values(const double *data, size_t step)
{
	size_t n = 0;

	for (size_t i = 0; i < COUNT; i++)
		n += data[i] != value_at(step, i);
	return n;
}

static void read_all(adios2_io *io, const char *name)
{
	adios2_engine *engine = adios2_open(io, name, adios2_mode_read);
	double *data = calloc(COUNT, sizeof(*data));
	adios2_step_status status;
	size_t step;

	must("adios2_open", engine && data);
	for (step = 0;; step++) {
		adios2_variable *variable;

		MUST(adios2_begin_step(engine, adios2_step_mode_read, 100, &status));
		if (status != adios2_step_status_ok)
			break;
		variable = adios2_inquire_variable(io, "values");
		must("adios2_inquire_variable", !!variable);
		MUST(adios2_get(engine, variable, data, adios2_mode_sync));
		must("the comparison", !wrong_values(data, step));
		MUST(adios2_end_step(engine));
	}
	must("the number of steps", status == adios2_step_status_end_of_stream && step == STEPS);
	MUST(adios2_close(engine));
	free(data);
	printf("ok %zu steps\n", step);
}

int main(int argc, char **argv)
{
	adios2_adios *adios = adios2_init_serial();
	const char *what = argc == 3 ? argv[1] : "";

	must("adios2_init", !!adios);
	if (!strcmp(what, "write"))
		write_all(declare(adios), argv[2], 0);
	else if (!strcmp(what, "spoil"))
		write_all(declare(adios), argv[2], 1);
	else if (!strcmp(what, "read"))
		read_all(declare(adios), argv[2]);
	else
		must("Usage: adios write|spoil|read NAME;", 0);
	MUST(adios2_finalize(adios));
	return 0;
}
