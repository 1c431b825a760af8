// SPDX-License-Identifier: Apache-2.0
/* What `ringspan COMMAND --help` prints. */
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "option.h"

#define HELP_WIDTH  80
#define HELP_INDENT 28 /* columns before an option's text */
#define HELP_FLAT   14 /* so many options need no headings */

/* The next word; one that is too long for a line ends after a '|' or '/' in it. */
static struct str next_word(struct str rest, size_t room, struct str *ret_word)
{
	struct str after = str_cut(rest, ' ', ret_word);
	size_t cut = 0;

	if (ret_word->len <= room)
		return after;
	for (size_t i = 0; i < room; i++) {
		if (ret_word->ptr[i] == '|' || ret_word->ptr[i] == '/')
			cut = i + 1;
	}
	if (!cut)
		return after;
	*ret_word = str_at(rest, 0, cut);
	return str_from(rest, cut);
}

/* Prints words of `text` from column `indent` on, the first line being at column `at` already. */
static void wrap(FILE *out, const char *text, int indent, int at)
{
	struct str rest = str_c(text), word;

	while (rest.len) {
		rest = next_word(rest, HELP_WIDTH - (size_t)indent, &word);
		if (at > indent && at + 1 + rs_utf8_width(word) > HELP_WIDTH) {
			fputc('\n', out);
			at = 0;
		}
		if (at < indent) {
			fprintf(out, "%*s", indent - at, "");
			at = indent;
		} else if (at > indent) {
			fputc(' ', out);
			at++;
		}
		fprintf(out, "%.*s", STR_ARG(word));
		at += rs_utf8_width(word);
	}
	fputc('\n', out);
}

static bool is_of(int id, enum rs_command_id command, const char *path)
{
	return rs_options[id].commands & (1u << command) &&
	       (!path || !strcmp(rs_option_section((enum rs_option_id)id)->path, path));
}

/* How many options of this section (NULL: of all) the command takes. */
static int count(enum rs_command_id command, const char *path)
{
	int n = 0;

	for (int id = 0; id < RS_O_COUNT; id++)
		n += is_of(id, command, path);
	return n;
}

static void put_option(const struct rs_option *o, FILE *out)
{
	char text[512], letter[8] = "    ";
	int at;

	if (o->letter)
		snprintf(letter, sizeof(letter), "-%c, ", o->letter);
	at = fprintf(out, "  %s--%s", letter, o->name);
	/* Long lists of values go into the text. */
	if (o->arg && o->type != RS_OT_ENUM) {
		fprintf(out, " %s", o->arg);
		at += 1 + rs_utf8_width(str_c(o->arg));
	}
	snprintf(text, sizeof(text), "%s%s%s%s%s%s", o->type == RS_OT_ENUM ? o->arg : "",
		 o->type == RS_OT_ENUM ? ": " : "", o->help, o->def ? " [" : "",
		 o->def ? o->def : "", o->def ? "]" : "");
	if (at >= HELP_INDENT) {
		fputc('\n', out);
		at = 0;
	}
	wrap(out, text, HELP_INDENT, at);
}

static void put_options(enum rs_command_id command, const char *path, FILE *out)
{
	for (int id = 0; id < RS_O_COUNT; id++) {
		if (is_of(id, command, path))
			put_option(&rs_options[id], out);
	}
}

void rs_config_help(enum rs_command_id command, FILE *out)
{
	const struct rs_command_info *c = &rs_command_info[command];

	fprintf(out, "usage: ringspan %s [options]%s%s\n\n", c->name, *c->args ? " " : "", c->args);
	wrap(out, c->summary, 0, 0);
	fputs("\noptions:\n", out);
	if (count(command, NULL) <= HELP_FLAT) {
		put_options(command, NULL, out);
		return;
	}
	/* What stands in no section of the config file first, then its sections. */
	put_options(command, "", out);
	for (const struct rs_section *s = rs_sections; s < rs_sections + RS_SECTION_COUNT; s++) {
		if (!*s->help || !count(command, s->path))
			continue;
		fprintf(out, "\n%s:\n", s->help);
		put_options(command, s->path, out);
	}
}
