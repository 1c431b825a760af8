// SPDX-License-Identifier: Apache-2.0
#include "hpack.h"

/* RFC 7541 appendix A. */
#define ROW(name, value)                                                                           \
	{                                                                                          \
		{ name, sizeof(name) - 1 },                                                        \
		{                                                                                  \
			value, sizeof(value) - 1                                                   \
		}                                                                                  \
	}
static const struct {
	struct str name, value;
} statics[RS_HPACK_STATIC] = {
	ROW(":authority", ""),
	ROW(":method", "GET"),
	ROW(":method", "POST"),
	ROW(":path", "/"),
	ROW(":path", "/index.html"),
	ROW(":scheme", "http"),
	ROW(":scheme", "https"),
	ROW(":status", "200"),
	ROW(":status", "204"),
	ROW(":status", "206"),
	ROW(":status", "304"),
	ROW(":status", "400"),
	ROW(":status", "404"),
	ROW(":status", "500"),
	ROW("accept-charset", ""),
	ROW("accept-encoding", "gzip, deflate"),
	ROW("accept-language", ""),
	ROW("accept-ranges", ""),
	ROW("accept", ""),
	ROW("access-control-allow-origin", ""),
	ROW("age", ""),
	ROW("allow", ""),
	ROW("authorization", ""),
	ROW("cache-control", ""),
	ROW("content-disposition", ""),
	ROW("content-encoding", ""),
	ROW("content-language", ""),
	ROW("content-length", ""),
	ROW("content-location", ""),
	ROW("content-range", ""),
	ROW("content-type", ""),
	ROW("cookie", ""),
	ROW("date", ""),
	ROW("etag", ""),
	ROW("expect", ""),
	ROW("expires", ""),
	ROW("from", ""),
	ROW("host", ""),
	ROW("if-match", ""),
	ROW("if-modified-since", ""),
	ROW("if-none-match", ""),
	ROW("if-range", ""),
	ROW("if-unmodified-since", ""),
	ROW("last-modified", ""),
	ROW("link", ""),
	ROW("location", ""),
	ROW("max-forwards", ""),
	ROW("proxy-authenticate", ""),
	ROW("proxy-authorization", ""),
	ROW("range", ""),
	ROW("referer", ""),
	ROW("refresh", ""),
	ROW("retry-after", ""),
	ROW("server", ""),
	ROW("set-cookie", ""),
	ROW("strict-transport-security", ""),
	ROW("transfer-encoding", ""),
	ROW("user-agent", ""),
	ROW("vary", ""),
	ROW("via", ""),
	ROW("www-authenticate", ""),
};

/* RFC 7541 appendix B: the code is canonical, so that symbols in the order of their codes are all of it. */
static const uint8_t symbols[256] = {
	48,  49,  50,  97,  99,	 101, 105, 111, 115, 116, 32,  37,  45,	 46,  47,  51,	52,  53,
	54,  55,  56,  57,  61,	 65,  95,  98,	100, 102, 103, 104, 108, 109, 110, 112, 114, 117,
	58,  66,  67,  68,  69,	 70,  71,  72,	73,  74,  75,  76,  77,	 78,  79,  80,	81,  82,
	83,  84,  85,  86,  87,	 89,  106, 107, 113, 118, 119, 120, 121, 122, 38,  42,	44,  59,
	88,  90,  33,  34,  40,	 41,  63,  39,	43,  124, 35,  62,  0,	 36,  64,  91,	93,  126,
	94,  125, 60,  96,  123, 92,  195, 208, 128, 130, 131, 162, 184, 194, 224, 226, 153, 161,
	167, 172, 176, 177, 179, 209, 216, 217, 227, 229, 230, 129, 132, 133, 134, 136, 146, 154,
	156, 160, 163, 164, 169, 170, 173, 178, 181, 185, 186, 187, 189, 190, 196, 198, 228, 232,
	233, 1,	  135, 137, 138, 139, 140, 141, 143, 147, 149, 150, 151, 152, 155, 157, 158, 165,
	166, 168, 174, 175, 180, 182, 183, 188, 191, 197, 231, 239, 9,	 142, 144, 145, 148, 159,
	171, 206, 215, 225, 236, 237, 199, 207, 234, 235, 192, 193, 200, 201, 202, 205, 210, 213,
	218, 219, 238, 240, 242, 243, 255, 203, 204, 211, 212, 214, 221, 222, 223, 241, 244, 245,
	246, 247, 248, 250, 251, 252, 253, 254, 2,   3,	  4,   5,   6,	 7,   8,   11,	12,  14,
	15,  16,  17,  18,  19,	 20,  21,  23,	24,  25,  26,  27,  28,	 29,  30,  31,	127, 220,
	249, 10,  13,  22,
};
static const struct {
	uint32_t bits;
	uint32_t last;	/* greatest code of this length, left-aligned, with ones behind it */
	int32_t offset; /* of a code's symbol in symbols[], less the code */
} lengths[] = {
	{ 5, 0x4fffffff, 0 },
	{ 6, 0xb7ffffff, -10 },
	{ 7, 0xf7ffffff, -56 },
	{ 8, 0xfdffffff, -180 },
	{ 10, 0xff3fffff, -942 },
	{ 11, 0xff9fffff, -1963 },
	{ 12, 0xffbfffff, -4008 },
	{ 13, 0xffefffff, -8100 },
	{ 14, 0xfff7ffff, -16290 },
	{ 15, 0xfffdffff, -32672 },
	{ 19, 0xfffe5fff, -524177 },
	{ 20, 0xfffedfff, -1048452 },
	{ 21, 0xffff47ff, -2097010 },
	{ 22, 0xffffafff, -4194139 },
	{ 23, 0xffffe9ff, -8388423 },
	{ 24, 0xfffff5ff, -16777020 },
	{ 25, 0xfffff7ff, -33554226 },
	{ 26, 0xfffffbbf, -67108642 },
	{ 27, 0xfffffe1f, -134217489 },
	{ 28, 0xffffffef, -268435202 },
	{ 30, 0xffffffff, -1073741567 },
};
#define EOS ((uint32_t)sizeof(symbols))

/* RFC 7541 5.2: bytes of text, at most max, or -1: not Huffman code, or longer. */
static long huffman(struct str code, char *to, size_t max)
{
	uint64_t bits = 0; /* not yet decoded, left-aligned, zeros behind them */
	unsigned nbits = 0;
	size_t at = 0, n = 0;

	for (;;) {
		uint32_t window, symbol;
		unsigned i = 0;

		while (nbits <= 56 && at < code.len) {
			bits |= (uint64_t)(uint8_t)code.ptr[at++] << (56 - nbits);
			nbits += 8;
		}
		window = (uint32_t)(bits >> 32);
		if (nbits < 32)
			window |= UINT32_MAX >> nbits;
		while (window > lengths[i].last)
			i++;
		if (lengths[i].bits > nbits)
			break; /* padding, or a symbol that is cut */
		symbol = (window >> (32 - lengths[i].bits)) + (uint32_t)lengths[i].offset;
		if (symbol >= EOS || n == max)
			return -1;
		to[n++] = (char)symbols[symbol];
		bits <<= lengths[i].bits;
		nbits -= lengths[i].bits;
	}
	/* 5.2: fewer than eight bits, all ones */
	if (nbits > 7 || (nbits && bits >> (64 - nbits) != (1u << nbits) - 1))
		return -1;
	return (long)n;
}

/* An entry's bytes in data[]: this, then name (if it is none of the static ones) and value. */
struct entry {
	uint16_t nlen, vlen;
	uint8_t index; /* of the static table's entry with its name; or 0 */
	bool nameless; /* its name is not known */
};

/*
 * at[] is a ring of places, data[] a window of them that moves on: place p is data[p - base]. An entry is
 * counted with 32 bytes over its strings, more than it takes here.
 */
struct rs_hpack_block {
	uint32_t cap;  /* bytes of data[] */
	uint32_t next; /* number of the next entry; its place is at[next % (cap / 32)] */
	uint32_t base;
	uint32_t end; /* place behind the newest entry */
	uint32_t at[];
	/* char data[cap] */
};
_Static_assert(sizeof(struct rs_hpack_block) == 16, "RS_HPACK_BLOCK");

static char *data_of(struct rs_hpack_block *b, uint32_t place)
{
	return (char *)&b->at[b->cap / 32] + (place - b->base);
}

static uint32_t *place_of(struct rs_hpack_block *b, uint32_t number)
{
	return &b->at[number % (b->cap / 32)];
}

static uint32_t entry_size(const struct entry *e)
{
	size_t name = e->index ? statics[e->index - 1].name.len : e->nlen;

	return 32 + (uint32_t)name + e->vlen;
}

void rs_hpack_init(struct rs_hpack *h, bool whole, struct rs_pool *small, struct rs_pool *large)
{
	*h = (struct rs_hpack){
		.small = small, .large = large, .max = RS_HPACK_SMALL, .partial = !whole
	};
}

static void forget_all(struct rs_hpack *h)
{
	h->size = h->count = 0;
	if (h->b)
		h->b->base = h->b->end = 0;
}

void rs_hpack_release(struct rs_hpack *h)
{
	if (h->b)
		rs_pool_put(h->b->cap == RS_HPACK_SMALL ? h->small : h->large, h->b);
	h->b = NULL;
	forget_all(h);
}

void rs_hpack_lose(struct rs_hpack *h)
{
	forget_all(h);
	h->partial = true;
}

static void evict(struct rs_hpack *h)
{
	struct entry e;

	memcpy(&e, data_of(h->b, *place_of(h->b, h->b->next - h->count)), sizeof(e));
	h->size -= entry_size(&e);
	if (--h->count == 0)
		h->b->base = h->b->end = 0;
}

/* A block with room for `need` bytes of the table, if there is one. */
static void get_block(struct rs_hpack *h, uint32_t need)
{
	struct rs_hpack_block *old = h->b, *b = NULL;
	uint32_t cap = need > RS_HPACK_SMALL ? RS_HPACK_LARGE : RS_HPACK_SMALL;

	if (old && (old->cap >= cap || !h->large))
		return;
	if (cap == RS_HPACK_LARGE && h->large)
		b = rs_pool_get(h->large);
	if (!b && !old) {
		cap = RS_HPACK_SMALL;
		b = h->small ? rs_pool_get(h->small) : NULL;
	}
	if (!b)
		return;
	*b = (struct rs_hpack_block){ .cap = cap };
	if (old && h->count) {
		uint32_t first = *place_of(old, old->next - h->count);

		for (uint32_t i = old->next - h->count; i != old->next; i++)
			*place_of(b, i) = *place_of(old, i) - first;
		b->next = old->next;
		b->end = old->end - first;
		memcpy(data_of(b, 0), data_of(old, first), b->end);
	}
	if (old)
		rs_pool_put(old->cap == RS_HPACK_SMALL ? h->small : h->large, old);
	h->b = b;
}

/* RFC 7541 4.3. */
static void resize(struct rs_hpack *h, uint32_t max)
{
	h->max = max;
	if (!max) {
		forget_all(h);
		h->partial = false;
		return;
	}
	/* What a table that is not known whole has evicted is never referred to: it may stay. */
	while (!h->partial && h->size > max)
		evict(h);
}

/* RFC 7541 4.4. The strings are not the table's own. */
static void insert(struct rs_hpack *h, const struct rs_hpack_field *f, struct str name)
{
	struct entry e = { .vlen = (uint16_t)f->value.len, .index = f->index };
	size_t size, bytes;
	char *to;

	if (!f->index) {
		e.nlen = (uint16_t)name.len;
		e.nameless = !name.ptr;
	}
	size = 32 + (f->index ? statics[f->index - 1].name.len : name.len) + f->value.len;
	if (!h->partial && size > h->max) {
		forget_all(h);
		return;
	}
	get_block(h, size > h->max ? (uint32_t)size : h->max);
	if (!h->b || size > h->b->cap) {
		/* It stands in the encoder's table and not in ours: what was behind it has another index. */
		rs_hpack_lose(h);
		return;
	}
	while (!h->partial && h->size + size > h->max)
		evict(h);
	while (h->size + size > h->b->cap) {
		h->partial = true;
		evict(h);
	}
	h->partial |= e.nameless;
	bytes = sizeof(e) + e.nlen + e.vlen;
	if (h->b->end - h->b->base + bytes > h->b->cap) {
		uint32_t first = h->count ? *place_of(h->b, h->b->next - h->count) : h->b->end;

		memmove(data_of(h->b, h->b->base), data_of(h->b, first), h->b->end - first);
		h->b->base = first;
	}
	to = data_of(h->b, h->b->end);
	*place_of(h->b, h->b->next++) = h->b->end;
	h->b->end += (uint32_t)bytes;
	h->size += (uint32_t)size;
	h->count++;
	memcpy(to, &e, sizeof(e));
	if (e.nlen)
		memcpy(to + sizeof(e), name.ptr, e.nlen);
	if (e.vlen)
		memcpy(to + sizeof(e) + e.nlen, f->value.ptr, e.vlen);
}

/* The entry with this index. False: there can be none. */
static bool look_up(const struct rs_hpack *h, uint32_t index, struct rs_hpack_field *f)
{
	struct entry e;
	char *p;

	*f = (struct rs_hpack_field){ .fleeting = true };
	if (index == 0)
		return false;
	if (index <= RS_HPACK_STATIC) {
		f->name = statics[index - 1].name;
		f->value = statics[index - 1].value;
		f->index = (uint8_t)index;
		/* The first of those with its name: they stand together. */
		while (f->index > 1 && str_eq(statics[f->index - 2].name, f->name))
			f->index--;
		f->fleeting = false;
		return true;
	}
	index -= RS_HPACK_STATIC + 1;
	if (index >= h->count)
		return h->partial;
	p = data_of(h->b, *place_of(h->b, h->b->next - 1 - index));
	memcpy(&e, p, sizeof(e));
	f->index = e.index;
	if (e.index)
		f->name = statics[e.index - 1].name;
	else if (!e.nameless)
		f->name = str_of(p + sizeof(e), e.nlen);
	f->value = str_of(p + sizeof(e) + e.nlen, e.vlen);
	return true;
}

/* RFC 7541 5.1: an integer with a prefix of `bits`; the longest we take is far beyond what is used. */
static bool integer(struct str *in, unsigned bits, uint32_t *ret)
{
	uint32_t mask = (1u << bits) - 1, v;
	size_t at = 1;
	unsigned shift = 0;

	if (!in->len)
		return false;
	v = (uint8_t)in->ptr[0] & mask;
	if (v == mask) {
		uint8_t b;

		do {
			if (at == in->len || shift > 21)
				return false;
			b = (uint8_t)in->ptr[at++];
			v += (uint32_t)(b & 0x7f) << shift;
			shift += 7;
		} while (b & 0x80);
	}
	*in = str_from(*in, at);
	*ret = v;
	return true;
}

/* RFC 7541 5.2. */
static bool string(struct str *in, struct rs_hpack_mem *mem, struct str *ret)
{
	bool coded = in->len && (in->ptr[0] & 0x80);
	struct str s;
	uint32_t n;
	long len;

	if (!integer(in, 7, &n) || n > in->len)
		return false;
	s = str_at(*in, 0, n);
	*in = str_from(*in, n);
	if (coded) {
		len = huffman(s, mem->pos, (size_t)(mem->end - mem->pos));
		if (len < 0)
			return false;
		s = str_of(mem->pos, (size_t)len);
		mem->pos += len;
	}
	*ret = s;
	return true;
}

/* A static entry's index for a name that was spelled out: the same field then has one form. */
static uint8_t spelled(struct str name)
{
	for (unsigned i = 0; i < RS_HPACK_STATIC; i++) {
		if (statics[i].name.len == name.len &&
		    memcmp(statics[i].name.ptr, name.ptr, name.len) == 0)
			return (uint8_t)(i + 1);
	}
	return 0;
}

static bool literal(struct rs_hpack *h, struct str *in, bool indexed, struct rs_hpack_mem *mem,
		    rs_hpack_fn fn, void *arg)
{
	struct rs_hpack_field f = { 0 };
	char *start = mem->pos;
	struct str own; /* the name, where it stays while an entry is made of it */
	uint32_t index;

	if (!integer(in, indexed ? 6 : 4, &index))
		return false;
	if (index) {
		if (!look_up(h, index, &f))
			return false;
	} else {
		if (!string(in, mem, &f.name))
			return false;
		f.index = spelled(f.name);
	}
	own = f.name;
	if (index > RS_HPACK_STATIC && indexed && !f.index && f.name.len) {
		/* The entry it is taken from may have to go for this one. */
		own = STR_NONE;
		if ((size_t)(mem->end - mem->pos) >= f.name.len) {
			own = str_of(mem->pos, f.name.len);
			memcpy(mem->pos, f.name.ptr, f.name.len);
			mem->pos += f.name.len;
		}
	}
	f.fleeting = false;
	if (!string(in, mem, &f.value))
		return false;
	if (!fn(arg, &f))
		mem->pos = start;
	if (indexed)
		insert(h, &f, own);
	return true;
}

bool rs_hpack_decode(struct rs_hpack *h, struct str block, struct rs_hpack_mem *mem, rs_hpack_fn fn,
		     void *arg)
{
	while (block.len) {
		uint8_t b = (uint8_t)block.ptr[0];
		struct rs_hpack_field f;
		uint32_t n;

		if (b & 0x80) {
			if (!integer(&block, 7, &n) || !look_up(h, n, &f))
				return false;
			fn(arg, &f);
		} else if ((b & 0xe0) == 0x20) {
			if (!integer(&block, 5, &n))
				return false;
			resize(h, n);
		} else if (!literal(h, &block, b & 0x40, mem, fn, arg)) {
			return false;
		}
	}
	return true;
}
