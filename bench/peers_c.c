// SPDX-License-Identifier: Apache-2.0
/*
 * bench/peers_c — a payload written again by C libraries: peers_c LIBRARY FILE. Built by bench/peers.py with those
 * libraries that can be had.
 *
 *   msgpack-c, msgpuck  FILE: Datadog v0.4
 *   protobuf-c          FILE: OTLP protobuf
 *   yyjson              FILE: OTLP JSON
 *
 * The payload is read into the library's own objects first; timed is writing these objects into a buffer that is large
 * enough. So these peers do less than an encoder: their tree is there already, no mapping, no UTF-8 (but yyjson), no
 * grouping. Prints ns/span of the fastest and of the median chunk, tab-separated.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <msgpack.h>
#ifdef WITH_MSGPUCK
#include <msgpuck.h>
#endif
#ifdef WITH_PROTOBUF_C
#include "opentelemetry/proto/trace/v1/trace.pb-c.h"
#endif
#ifdef WITH_YYJSON
#include "yyjson.h"
#endif

#define CHUNKS	 40
#define CHUNK_NS 2000000

static char *out; /* twice the payload's size */
static size_t out_size;

/* -- MessagePack ------------------------------------------------------------------------------- */

static msgpack_object root;
static msgpack_sbuffer sbuf;

static size_t read_msgpack(char *data, size_t size)
{
	static msgpack_unpacked u;
	size_t at = 0, spans = 0;

	msgpack_unpacked_init(&u);
	msgpack_sbuffer_init(&sbuf);
	if (msgpack_unpack_next(&u, data, size, &at) != MSGPACK_UNPACK_SUCCESS)
		return 0;
	root = u.data;
	for (uint32_t i = 0; i < root.via.array.size; i++)
		spans += root.via.array.ptr[i].via.array.size;
	return spans;
}

static size_t write_msgpack_c(const char **ret)
{
	msgpack_packer pk;

	msgpack_sbuffer_clear(&sbuf);
	msgpack_packer_init(&pk, &sbuf, msgpack_sbuffer_write);
	msgpack_pack_object(&pk, root);
	*ret = sbuf.data;
	return sbuf.size;
}

#ifdef WITH_MSGPUCK
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

static size_t write_msgpuck(const char **ret)
{
	*ret = out;
	return (size_t)(puck(out, &root) - out);
}
#endif

/* -- protobuf ---------------------------------------------------------------------------------- */

#ifdef WITH_PROTOBUF_C
static Opentelemetry__Proto__Trace__V1__TracesData *traces;

static size_t read_protobuf(char *data, size_t size)
{
	size_t spans = 0;

	traces = opentelemetry__proto__trace__v1__traces_data__unpack(NULL, size,
								      (const uint8_t *)data);
	for (size_t i = 0; traces && i < traces->n_resource_spans; i++) {
		for (size_t j = 0; j < traces->resource_spans[i]->n_scope_spans; j++)
			spans += traces->resource_spans[i]->scope_spans[j]->n_spans;
	}
	return spans;
}

static size_t write_protobuf(const char **ret)
{
	*ret = out;
	return opentelemetry__proto__trace__v1__traces_data__pack(traces, (uint8_t *)out);
}
#endif

/* -- JSON -------------------------------------------------------------------------------------- */

#ifdef WITH_YYJSON
static yyjson_doc *doc;

static size_t read_json(char *data, size_t size)
{
	size_t spans = 0, i, j, n;
	yyjson_val *rs, *ss;

	doc = yyjson_read(data, size, 0);
	yyjson_arr_foreach(yyjson_obj_get(yyjson_doc_get_root(doc), "resourceSpans"), i, n, rs)
		yyjson_arr_foreach(yyjson_obj_get(rs, "scopeSpans"), j, n, ss) spans +=
		yyjson_arr_size(yyjson_obj_get(ss, "spans"));
	return spans;
}

static size_t write_json(const char **ret)
{
	static yyjson_alc alc;
	size_t n = 0;

	/* Its own allocator over our buffer: no malloc. */
	yyjson_alc_pool_init(&alc, out, out_size);
	*ret = yyjson_write_opts(doc, 0, &alc, &n, NULL);
	return *ret ? n : 0;
}
#endif

static const struct library {
	const char *name;
	/* Returns the spans that are in it; 0: it cannot be read. */
	size_t (*read)(char *data, size_t size);
	size_t (*write)(const char **ret);
} libraries[] = {
	{ "msgpack-c", read_msgpack, write_msgpack_c },
#ifdef WITH_MSGPUCK
	{ "msgpuck", read_msgpack, write_msgpuck },
#endif
#ifdef WITH_PROTOBUF_C
	{ "protobuf-c", read_protobuf, write_protobuf },
#endif
#ifdef WITH_YYJSON
	{ "yyjson", read_json, write_json },
#endif
};

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void time_it(const struct library *lib, size_t spans)
{
	double chunk[CHUNKS];
	const char *bytes;

	for (int c = 0; c < CHUNKS; c++) {
		uint64_t start = now(), end;
		unsigned calls = 0;

		do {
			lib->write(&bytes);
			calls++;
			end = now();
		} while (end - start < CHUNK_NS);
		chunk[c] = (double)(end - start) / calls / (double)spans;
	}
	qsort(chunk, CHUNKS, sizeof(double), by_value);
	printf("%.2f\t%.2f\n", chunk[0], chunk[CHUNKS / 2]);
}

int main(int argc, char **argv)
{
	const struct library *lib = NULL;
	size_t size, spans;
	const char *bytes;
	char *data;
	FILE *f;

	for (size_t i = 0; argc == 3 && i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		if (!strcmp(libraries[i].name, argv[1]))
			lib = &libraries[i];
	}
	if (!lib) {
		fputs("usage: peers_c LIBRARY FILE\n", stderr);
		return 2;
	}
	f = fopen(argv[2], "rb");
	if (!f) {
		perror(argv[2]);
		return 1;
	}
	fseek(f, 0, SEEK_END);
	size = (size_t)ftell(f);
	rewind(f);
	data = malloc(size);
	out_size = size * 8 + 65536;
	out = malloc(out_size);
	if (!data || !out || fread(data, 1, size, f) != size)
		return 1;
	spans = lib->read(data, size);
	/* They write what we wrote, byte for byte. */
	if (!spans || lib->write(&bytes) != size || memcmp(bytes, data, size)) {
		fprintf(stderr, "%s writes other bytes\n", lib->name);
		return 1;
	}
	time_it(lib, spans);
	return 0;
}
