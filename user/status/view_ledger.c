// SPDX-License-Identifier: Apache-2.0
/* What was lost and where, and each stage's account. */
#include "view_parts.h"

struct stage {
	const char *name;
	uint64_t in, out, passed, lost, held;
};

#define MAX_STAGES 24

/* What is dropped has a remedy, or is passed over because it is of no interest. */
static bool has_remedy(const json_t *row)
{
	return json_string_length(json_object_get(row, "remedy"));
}

static size_t stages(const json_t *ledger, struct stage st[MAX_STAGES])
{
	size_t n = 0, i, k;
	json_t *row;

	json_array_foreach(ledger, i, row)
	{
		const char *name = json_string_value(json_object_get(row, "stage"));
		uint64_t value = view_num(row, "value");

		for (k = 0; name && k < n && strcmp(st[k].name, name); k++)
			;
		if (!name || (k == n && n == MAX_STAGES))
			continue;
		if (k == n)
			st[n++] = (struct stage){ .name = name };
		if (view_is(row, "kind", "in"))
			st[k].in += value;
		else if (view_is(row, "kind", "out"))
			st[k].out += value;
		else if (view_is(row, "kind", "dropped") && has_remedy(row))
			st[k].lost += value;
		else if (view_is(row, "kind", "dropped"))
			st[k].passed += value;
		else if (view_is(row, "kind", "held"))
			st[k].held += value;
	}
	return n;
}

/* Of the stage that a row belongs to: what entered it. */
static uint64_t entered(const json_t *ledger, const json_t *row)
{
	struct stage st[MAX_STAGES];
	size_t n = stages(ledger, st);

	for (size_t i = 0; i < n; i++) {
		if (view_is(row, "stage", st[i].name))
			return st[i].in ? st[i].in : st[i].out + st[i].passed + st[i].lost;
	}
	return 0;
}

/* ledger: to say how much of all that entered the stage it was; NULL: it is no part of that. */
static void put_loss(FILE *out, const struct rs_view *v, const char *color, const json_t *ledger,
		     const json_t *row)
{
	uint64_t value = view_num(row, "value"), of = ledger ? entered(ledger, row) : 0;
	char share[16] = "", line[1600];
	double percent = of ? 100.0 * (double)value / (double)of : 0;

	if (of && percent < 0.01)
		snprintf(share, sizeof(share), "<0.01%%");
	else if (of)
		snprintf(share, sizeof(share), "%.2f%%", percent);
	fprintf(out, "    %s%7s%s %7s  ", color, COUNT(value), v->style.reset, share);
	snprintf(line, sizeof(line), "%s.%s: %s", TEXT(row, "stage", 20), TEXT(row, "name", 30),
		 TEXT(row, "help", 0));
	rs_view_prose(out, v, "", 21, line);
	if (*TEXT(row, "remedy", 0)) {
		snprintf(line, sizeof(line), VIEW_ARROW "%s", TEXT(row, "remedy", 0));
		fprintf(out, "%21s", "");
		rs_view_prose(out, v, v->style.yellow, 21, line);
	}
}

static bool is_loss(const json_t *row)
{
	return view_is(row, "kind", "dropped") && view_num(row, "value") && has_remedy(row);
}

/* Nothing was lost, but something was not seen, and that can be changed. */
static bool is_blind(const json_t *row)
{
	return view_is(row, "kind", "info") && view_num(row, "value") && has_remedy(row);
}

void rs_view_losses(FILE *out, const struct rs_view *v, const json_t *o)
{
	const json_t *ledger = json_object_get(o, "ledger"), *row;
	size_t i, kinds = 0;
	struct rs_view_line f;

	json_array_foreach(ledger, i, row) kinds += is_loss(row);
	rs_view_begin(&f, out, v, "Losses");
	if (kinds)
		rs_view_fact(&f, v->style.red, "%zu kind%s", kinds, kinds == 1 ? "" : "s");
	else
		rs_view_fact(&f, v->style.green, "none");
	fputc('\n', out);
	json_array_foreach(ledger, i, row)
	{
		if (is_loss(row))
			put_loss(out, v, v->style.red, ledger, row);
	}
	json_array_foreach(ledger, i, row)
	{
		if (is_blind(row))
			put_loss(out, v, v->style.yellow, NULL, row);
	}
}

void rs_view_ledger(FILE *out, const struct rs_view *v, const json_t *o)
{
	struct stage st[MAX_STAGES];
	size_t n = stages(json_object_get(o, "ledger"), st);
	bool headed = false;

	for (size_t i = 0; i < n; i++) {
		struct stage *s = &st[i];
		uint64_t gone = s->out + s->passed + s->lost + s->held;
		char name[80];

		if (!s->in && !gone)
			continue;
		if (!headed)
			fprintf(out, "\n  %s%-10s %9s %9s %9s %9s %9s%s\n", v->style.bold, "STAGE",
				"IN", "OUT", "LEFT OUT", "LOST", "HELD", v->style.reset);
		headed = true;
		rs_utf8_clean(name, sizeof(name), str_c(s->name), 10);
		fprintf(out, "  %-10s %9s %9s %9s %s%9s%s %9s", name, s->in ? COUNT(s->in) : "-",
			COUNT(s->out), s->passed ? COUNT(s->passed) : "-",
			s->lost ? v->style.red : "", s->lost ? COUNT(s->lost) : "-",
			s->lost ? v->style.reset : "", s->held ? COUNT(s->held) : "-");
		if (s->in && s->in != gone)
			fprintf(out, "  %s%s unaccounted%s", v->style.red,
				COUNT(s->in > gone ? s->in - gone : gone - s->in), v->style.reset);
		fputc('\n', out);
	}
}
