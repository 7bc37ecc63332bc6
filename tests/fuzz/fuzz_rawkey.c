/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target for the decoder of raw keys, in libFuzzer's form. With an odd first byte
 *the rest is decoded as it is; with an even one it first gets the magic, the version, its
 * length and the checksum that it should have, so that changed bytes get further than to
 * these. What is accepted must be what the encoder makes of it, byte for byte.
 *
 *	configure CC=clang && make tests/fuzz/fuzz_rawkey &&
 *	tests/fuzz/fuzz_rawkey corpus-copy/
 *
 * The corpus in corpus-rawkey is replayed, and changed a little, by
 * tests/unit/t_fuzz_rawkey.c.
 */
#include <stdlib.h>
#include <string.h>
#include <rdma/fabric.h>
#include "fuzz.h"
#include "proto/rawkey_one.h"

#define FRAME 16

static void must(int ok)
{
	if (!ok)
		abort();
}

static uint64_t word_at(const uint8_t *buf, size_t len, size_t at)
{
	uint64_t word = 0;
	size_t i;

	for (i = 0; i < 8 && at + i < len; i++)
		word |= (uint64_t)buf[at + i] << 8 * i;
	return word;
}

static void mend(uint8_t *buf, size_t len)
{
	uint64_t sum, factor = 1;
	size_t i;

	if (len < FRAME || len > UINT16_MAX)
		return;
	memcpy(buf, "mrfk", 4);
	buf[4] = MRF_RAWKEY_VERSION;
	buf[6] = (uint8_t)len;
	buf[7] = (uint8_t)(len >> 8);
	sum = word_at(buf, len, 0);
	for (i = FRAME; i < len; i += 8) {
		sum += word_at(buf, len, i) * factor;
		factor = factor * 0x5851f42d & 0x7fffffff;
	}
	for (i = 0; i < 8; i++)
		buf[8 + i] = (uint8_t)(sum >> 8 * i);
}

/* What users of the structure rely on. */
static void check(const struct mrf_rawkey *raw)
{
	bool virt = raw->mr_mode & FI_MR_VIRT_ADDR;
	uint64_t sum = 0;
	uint32_t i;

	must(raw->space_id && raw->serial);
	must(!(raw->access & ~(FI_REMOTE_READ | FI_REMOTE_WRITE)));
	must(raw->nseg <= MRF_RAWKEY_MAX_SEG && raw->complete == (raw->nseg > 0));
	must(virt || !raw->base);
	for (i = 0; i < raw->nseg; i++) {
		const struct mrf_wire_seg *seg = &raw->seg[i];

		must(seg->len || raw->nseg == 1);
		must(seg->len <= UINT64_MAX - seg->pos);
		must(seg->len <= UINT64_MAX - seg->iova_off);
		must(virt ? !seg->iova_off : seg->pos == sum && seg->iova_off < 65536);
		must(seg->len <= UINT64_MAX - sum);
		sum += seg->len;
	}
	must(!raw->nseg || (sum == raw->len && (!virt || raw->seg[0].pos == raw->base)));
}

static void decode(const uint8_t *buf, size_t len)
{
	uint8_t again[MRF_RAWKEY_MAX];
	struct mrf_rawkey raw;
	const char *why = NULL;
	size_t used;
	int ret = mrf_rawkey_decode(buf, len, &raw, &why);

	if (ret) {
		must(why != NULL);
		return;
	}
	check(&raw);
	used = mrf_rawkey_encode(&raw, again);
	must(used == mrf_rawkey_size(raw.nseg) && used <= len);
	must(used == mrf_rawkey_len(buf) && mrf_rawkey_base(buf) == raw.base);
	must(!memcmp(buf, again, used));
	for (; used < len; used++)
		must(!buf[used]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy;

	if (!size)
		return 0;
	/* Memory of exactly that size, so that a sanitizer sees every byte read too many.
	 */
	copy = malloc(size > 1 ? size - 1 : 1);
	must(copy != NULL);
	memcpy(copy, data + 1, size - 1);
	if (!(data[0] & 1))
		mend(copy, size - 1);
	decode(copy, size - 1);
	free(copy);
	return 0;
}
