// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/str.h"
#include "option.h"

#define HIDDEN "***"

static bool names_secret(struct str name)
{
	static const struct str words[] = {
		{ "token", 5 },	  { "password", 8 }, { "secret", 6 },
		{ "api-key", 7 }, { "api_key", 7 },
	};

	for (size_t i = 0; i < name.len; i++) {
		for (size_t w = 0; w < sizeof(words) / sizeof(words[0]); w++) {
			if (str_starts(str_from(name, i), words[w]))
				return true;
		}
	}
	return false;
}

/* "name=value,name=value": without the values, all of them or those whose names say so. */
static void show_pairs(struct str v, bool all, FILE *out)
{
	struct str one, name, value;

	for (bool first = true; v.len; first = false) {
		v = str_cut(v, ',', &one);
		value = str_cut(one, '=', &name);
		if (all || names_secret(name))
			value = STR(HIDDEN);
		fprintf(out, "%s%.*s=%.*s", first ? "" : ",", STR_ARG(name), STR_ARG(value));
	}
}

/* What may be a URL, or several with commas between: without user, password and query. */
static void show_url(struct str v, FILE *out)
{
	struct str one;

	for (bool first = true; v.len; first = false) {
		const char *scheme, *at;
		size_t query, skip = 0;

		v = str_cut(v, ',', &one);
		query = str_find(one, '?');
		scheme = memmem(one.ptr, one.len, "://", 3);
		at = memrchr(one.ptr, '@', query);
		if (!first)
			fputc(',', out);
		if (scheme && at > scheme) {
			skip = (size_t)(scheme - one.ptr) + 3;
			fprintf(out, "%.*s" HIDDEN, (int)skip, one.ptr);
			skip = (size_t)(at - one.ptr);
		} else if (at && !scheme) { /* user:password@host */
			fputs(HIDDEN, out);
			skip = (size_t)(at - one.ptr);
		}
		fprintf(out, "%.*s%s", (int)(query - skip), one.ptr + skip,
			query < one.len ? "?" HIDDEN : "");
	}
}

static void show_text(const struct rs_option *o, const char *v, FILE *out)
{
	if (!v)
		return;
	if (!strcmp(o->name, "otlp-headers"))
		show_pairs(str_c(v), true, out);
	else if (!strcmp(o->name, "resource-attributes"))
		show_pairs(str_c(v), false, out);
	else if (names_secret(str_c(o->name)) && *v != '/') /* the name of a file is none */
		fputs(HIDDEN, out);
	else
		show_url(str_c(v), out);
}

static void show_enum(const struct rs_option *o, int v, FILE *out)
{
	struct str rest = str_c(o->arg), one = STR_NONE;

	for (int i = 0; i <= v && rest.len; i++)
		rest = str_cut(rest, '|', &one);
	fprintf(out, "%.*s", STR_ARG(one));
}

static void show_value(const struct rs_config *cfg, const struct rs_option *o, FILE *out)
{
	const void *v = (const char *)cfg + o->offset;
	const struct rs_config_pids *pids = v;
	const struct rs_config_ports *ports = v;
	const struct rs_config_comms *comms = v;

	switch ((enum rs_option_type)o->type) {
	case RS_OT_BOOL:
		fputs(*(const bool *)v ? "true" : "false", out);
		break;
	case RS_OT_STR:
	case RS_OT_RATIO:
		show_text(o, *(const char *const *)v, out);
		break;
	case RS_OT_ENUM:
		show_enum(o, *(const int *)v, out);
		break;
	case RS_OT_UINT:
	case RS_OT_BYTES:
		fprintf(out, "%llu", (unsigned long long)*(const uint64_t *)v);
		break;
	case RS_OT_DURATION:
		fprintf(out, "%lluns", (unsigned long long)*(const uint64_t *)v);
		break;
	case RS_OT_PIDS:
		for (uint32_t i = 0; i < pids->n; i++)
			fprintf(out, "%s%u", i ? ", " : "", pids->v[i]);
		break;
	case RS_OT_PORTS:
		for (uint32_t i = 0; i < ports->n; i++)
			fprintf(out, "%s%u", i ? ", " : "", ports->v[i]);
		break;
	case RS_OT_COMMS:
		for (uint32_t i = 0; i < comms->n; i++)
			fprintf(out, "%s%s", i ? ", " : "", comms->v[i]);
		break;
	case RS_OT_RULES:
		fprintf(out, "%u", ((const struct rs_rules *)v)->n);
		break;
	}
}

void rs_config_show(const struct rs_config *cfg, FILE *out)
{
	static const char *const from[] = {
		[RS_FROM_DEFAULT] = "default",	[RS_FROM_FILE] = "file",
		[RS_FROM_OTEL] = "environment", [RS_FROM_ENV] = "environment",
		[RS_FROM_FLAG] = "option",
	};

	for (int id = 0; id < RS_O_COUNT; id++) {
		const struct rs_option *o = &rs_options[id];

		if (cfg->source[id] == RS_FROM_DEFAULT || !(o->commands >> cfg->command & 1))
			continue;
		fprintf(out, "%s: ", o->name);
		show_value(cfg, o, out);
		fprintf(out, "  # %s\n", from[cfg->source[id]]);
	}
}
