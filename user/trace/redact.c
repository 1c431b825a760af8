// SPDX-License-Identifier: Apache-2.0
#include "redact.h"

/* The next member of a list that is not empty; false at its end. */
static bool next(struct str *list, struct str *ret_one)
{
	while (list->len) {
		*list = str_cut(*list, ',', ret_one);
		*ret_one = str_trim(*ret_one);
		if (ret_one->len)
			return true;
	}
	return false;
}

static bool holds(struct str s, struct str part)
{
	for (size_t i = 0; i + part.len <= s.len; i++) {
		if (str_starts(str_from(s, i), part))
			return true;
	}
	return false;
}

/* Does a header field of this name (lower case) carry a secret? Better one too many than one too few. */
static bool secret(struct str name)
{
	static const struct str words[] = {
		{ "authorization", 13 },
		{ "authentication", 14 },
		{ "cookie", 6 },
		{ "token", 5 },
		{ "api-key", 7 },
		{ "apikey", 6 },
		{ "x-auth", 6 },
		{ "secret", 6 },
		{ "password", 8 },
		{ "credential", 10 },
		{ "session", 7 },
		{ "signature", 9 },
		{ "jwt", 3 },
		{ "access-key", 10 },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (holds(name, words[i]))
			return true;
	}
	return false;
}

/* RFC 9110 5.6.2: what a field's name is made of. */
static bool is_field_name(struct str s)
{
	static const struct str others = { "!#$%&'*+-.^_`|~", 15 };

	for (size_t i = 0; i < s.len; i++) {
		char c = str_lower_char(s.ptr[i]);

		if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
		      str_find(others, c) < others.len))
			return false;
	}
	return s.len > 0;
}

static bool add_header(struct rs_redact_headers *to, struct str prefix, struct str name)
{
	struct rs_redact_header *h = &to->v[to->n];

	for (uint32_t i = 0; i < to->n; i++) {
		if (str_ieq(name, to->v[i].name))
			return true;
	}
	if (to->n == RS_REDACT_HEADERS || name.len > RS_REDACT_NAME || !is_field_name(name))
		return false;
	memcpy(h->text, prefix.ptr, prefix.len);
	for (size_t i = 0; i < name.len; i++)
		h->text[prefix.len + i] = str_lower_char(name.ptr[i]);
	h->key = rs_key_make(str_of(h->text, prefix.len + name.len));
	h->name = str_from(h->key.name, prefix.len);
	h->secret = secret(h->name);
	to->n++;
	return true;
}

/* An attribute that was asked for and is to be left out is left out. */
static bool drop_header(struct rs_redact_headers *from, struct str key)
{
	for (uint32_t i = 0; i < from->n; i++) {
		if (str_eq(from->v[i].key.name, key)) {
			from->v[i].dropped = true;
			return true;
		}
	}
	return false;
}

static bool drop(struct rs_redact *r, struct str key)
{
	for (unsigned k = 0; k < RS_K_COUNT; k++) {
		if (str_eq(rs_known_keys[k].name, key)) {
			r->drops = true;
			r->drop[k / 64] |= 1ull << (k % 64);
			return true;
		}
	}
	return drop_header(&r->request, key) || drop_header(&r->response, key);
}

struct str rs_redact_init(struct rs_redact *r, const struct rs_redact_lists *l)
{
	struct str list, one;

	memset(r, 0, sizeof(*r));
	for (list = str_c(l->query); next(&list, &one);) {
		if (r->nquery == RS_REDACT_QUERY)
			return one;
		r->query[r->nquery++] = one;
	}
	for (list = str_c(l->request); next(&list, &one);) {
		if (!add_header(&r->request, STR("http.request.header."), one))
			return one;
	}
	for (list = str_c(l->response); next(&list, &one);) {
		if (!add_header(&r->response, STR("http.response.header."), one))
			return one;
	}
	for (list = str_c(l->drop); next(&list, &one);) {
		if (!drop(r, one))
			return one;
	}
	return STR_NONE;
}
