// SPDX-License-Identifier: Apache-2.0
/*
 * bench/peers_msgpack — a v0.4 payload written again by C libraries for MessagePack: peers_msgpack msgpack-c|msgpuck FILE
 *
 * The payload is unpacked into msgpack-c's objects first; timed is writing these objects into a buffer that is large
 * enough. So these peers do less than an encoder: no mapping, no UTF-8, no grouping. Prints ns/span of the fastest and of
 * the median chunk, tab-separated.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <msgpack.h>
#if __has_include(<msgpuck.h>)
#define MSGPUCK 1
#include <msgpuck.h>
#endif

#define CHUNKS	 40
#define CHUNK_NS 2000000

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

#ifdef MSGPUCK
static char *puck(char *p, const msgpack_object *o)
{
	switch (o->type) {
	case MSGPACK_OBJECT_BOOLEAN:
		return mp_encode_bool(p, o->via.boolean);
	case MSGPACK_OBJECT_POSITIVE_INTEGER:
		return mp_encode_uint(p, o->via.u64);
	case MSGPACK_OBJECT_NEGATIVE_INTEGER:
		return mp_encode_int(p, o->via.i64);
	case MSGPACK_OBJECT_FLOAT64:
		return mp_encode_double(p, o->via.f64);
	case MSGPACK_OBJECT_STR:
		return mp_encode_str(p, o->via.str.ptr, o->via.str.size);
	case MSGPACK_OBJECT_ARRAY:
		p = mp_encode_array(p, o->via.array.size);
		for (uint32_t i = 0; i < o->via.array.size; i++)
			p = puck(p, &o->via.array.ptr[i]);
		return p;
	case MSGPACK_OBJECT_MAP:
		p = mp_encode_map(p, o->via.map.size);
		for (uint32_t i = 0; i < o->via.map.size; i++) {
			p = puck(p, &o->via.map.ptr[i].key);
			p = puck(p, &o->via.map.ptr[i].val);
		}
		return p;
	default:
		return mp_encode_nil(p);
	}
}
#endif

static msgpack_object root;
static msgpack_sbuffer sbuf;
static char *out;

static size_t write_msgpack_c(void)
{
	msgpack_packer pk;

	msgpack_sbuffer_clear(&sbuf);
	msgpack_packer_init(&pk, &sbuf, msgpack_sbuffer_write);
	msgpack_pack_object(&pk, root);
	return sbuf.size;
}

static size_t write_msgpuck(void)
{
#ifdef MSGPUCK
	return (size_t)(puck(out, &root) - out);
#else
	return 0;
#endif
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
	size_t (*write_one)(void) = write_msgpack_c;
	double chunk[CHUNKS];
	msgpack_unpacked u;
	size_t size, at = 0;
	uint32_t spans = 0;
	char *data;
	FILE *f;

	if (argc != 3) {
		fputs("usage: peers_msgpack msgpack-c|msgpuck FILE\n", stderr);
		return 2;
	}
	if (!strcmp(argv[1], "msgpuck"))
		write_one = write_msgpuck;
	f = fopen(argv[2], "rb");
	if (!f) {
		perror(argv[2]);
		return 1;
	}
	fseek(f, 0, SEEK_END);
	size = (size_t)ftell(f);
	rewind(f);
	data = malloc(size);
	out = malloc(size * 2);
	if (!data || !out || fread(data, 1, size, f) != size)
		return 1;
	msgpack_unpacked_init(&u);
	msgpack_sbuffer_init(&sbuf);
	if (msgpack_unpack_next(&u, data, size, &at) != MSGPACK_UNPACK_SUCCESS)
		return 1;
	root = u.data;
	for (uint32_t i = 0; i < root.via.array.size; i++)
		spans += root.via.array.ptr[i].via.array.size;
	/* Both write what we wrote, byte for byte. */
	if (write_one() != at || memcmp(write_one == write_msgpack_c ? sbuf.data : out, data, at)) {
		fprintf(stderr, "%s is not to be had, or writes other bytes\n", argv[1]);
		return 1;
	}
	for (int c = 0; c < CHUNKS; c++) {
		uint64_t start = now(), end;
		unsigned calls = 0;

		do {
			write_one();
			calls++;
			end = now();
		} while (end - start < CHUNK_NS);
		chunk[c] = (double)(end - start) / calls / spans;
	}
	qsort(chunk, CHUNKS, sizeof(double), by_value);
	printf("%.2f\t%.2f\n", chunk[0], chunk[CHUNKS / 2]);
	return 0;
}
