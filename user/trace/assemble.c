// SPDX-License-Identifier: Apache-2.0
/* The span an exchange becomes. */
#include "trace.h"

#include <errno.h>

#include "trace/build.h"
#include "trace/event.h"
#include "trace/messages.h"

#define SCHEMA_URL "https://opentelemetry.io/schemas/1.44.0"

/* OTLP Span.flags: trace.proto, SpanFlags */
#define FLAG_HAS_IS_REMOTE 0x100
#define FLAG_IS_REMOTE	   0x200

static int copy_resource(struct rs_arena *a, const struct rs_resource *in, struct rs_resource *out)
{
	struct rs_attr *attrs = rs_arena_alloc(a, in->attrs.n * sizeof(*attrs));

	if (!attrs)
		return -ENOMEM;
	for (uint32_t i = 0; i < in->attrs.n; i++) {
		attrs[i] = in->attrs.a[i];
		if (attrs[i].key->id == RS_KEY_DYNAMIC) {
			struct rs_key *k = rs_arena_alloc(a, sizeof(*k));

			if (!k)
				return -ENOMEM;
			*k = *attrs[i].key;
			k->name = rs_arena_str(a, k->name);
			if (!k->name.ptr)
				return -ENOMEM;
			attrs[i].key = k;
		}
		if (!rs_val_own(a, &attrs[i].val))
			return -ENOMEM;
	}
	out->attrs =
		(struct rs_attrs){ .a = attrs, .n = in->attrs.n, .dropped = in->attrs.dropped };
	return 0;
}

/* Where spans of this process go in the batch. It borrows the process's attributes: most batches have hundreds of
 * them, and few processes change before they are sent. */
static struct rs_scope_spans *group(struct rs_batch *b, struct rs_proc *proc)
{
	struct rs_resource_spans *rs;
	struct rs_scope_spans *ss;

	if (proc->batch_serial == b->serial)
		return proc->batch_group;
	rs = rs_batch_add_resource(b);
	ss = rs ? rs_batch_add_scope(b, rs) : NULL;
	if (!ss)
		return NULL;
	rs->resource = proc->resource;
	rs->schema_url = RS_SPAN_STR(SCHEMA_URL);
	ss->scope.name = RS_SPAN_STR("ringspan");
	ss->scope.version = RS_SPAN_STR(RS_VERSION);
	ss->schema_url = rs->schema_url;
	proc->batch_serial = b->serial;
	proc->batch_group = ss;
	return ss;
}

int rs_trace_part(struct rs_batch *b, struct rs_proc *proc)
{
	struct rs_resource_spans *rs = b->first;

	if (proc->batch_serial != b->serial)
		return 0;
	proc->batch_serial = 0;
	while (rs->first != proc->batch_group)
		rs = rs->next;
	return copy_resource(&b->arena, &rs->resource, &rs->resource);
}

/* Whom the other node's agent calls the client's span. Not where the client was met on this node. */
static void derive_parent(struct rs_open *o, const struct rs_root *root)
{
	uint8_t trace[16], span[8];

	if (o->x.role != RS_ROLE_SERVER || !o->far_key || o->parent_source != RS_PARENT_NONE)
		return;
	rs_join_ids(o->far_key, trace, span);
	if (memcmp(trace, root->trace_id, sizeof(trace)) != 0) {
		rs_trace_link(o, RS_LINK_SEQUENCE, trace, span, true);
		return;
	}
	memcpy(o->parent_id, span, sizeof(span));
	o->parent_source = RS_PARENT_SEQUENCE;
	o->parent_remote = true;
}

static struct str source_name(uint8_t source)
{
	static const struct str names[] = {
		[RS_PARENT_NONE] = RS_SPAN_STR("none"),
		[RS_PARENT_WIRE] = RS_SPAN_STR("wire"),
		[RS_PARENT_THREAD] = RS_SPAN_STR("thread"),
		[RS_PARENT_GOROUTINE] = RS_SPAN_STR("goroutine"),
		[RS_PARENT_SDK] = RS_SPAN_STR("sdk"),
		[RS_PARENT_SEQUENCE] = RS_SPAN_STR("sequence"),
	};

	return names[source];
}

static void add_links(const struct rs_open *o, struct rs_span *s, struct rs_arena *a)
{
	static const struct str types[] = {
		[RS_LINK_RETRY] = RS_SPAN_STR("retry"),
		[RS_LINK_REDIRECT] = RS_SPAN_STR("redirect"),
		[RS_LINK_CONNECTION] = RS_SPAN_STR("connection"),
		[RS_LINK_THREAD] = RS_SPAN_STR("thread"),
		[RS_LINK_THREAD_ENDED] = RS_SPAN_STR("thread_ended"),
		[RS_LINK_OTHER_CONTEXT] = RS_SPAN_STR("other_context"),
		[RS_LINK_SEQUENCE] = RS_SPAN_STR("sequence"),
		[RS_LINK_MESSAGE] = RS_SPAN_STR("message"),
	};
	uint32_t n = rs_messages_count(o);
	struct rs_link *l;
	struct rs_attr *attrs;

	s->dropped_links = o->dropped_links;
	if (!n)
		return;
	l = rs_arena_alloc(a, n * sizeof(*l));
	attrs = rs_arena_alloc(a, n * sizeof(*attrs));
	if (!l || !attrs) {
		s->dropped_links += n;
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct rs_open_link *from = rs_messages_at(o, i);

		l[i] = (struct rs_link){ .flags = FLAG_HAS_IS_REMOTE |
						  (from->remote ? FLAG_IS_REMOTE : 0),
					 .attrs = { .a = &attrs[i], .n = 1 } };
		memcpy(l[i].trace_id, from->trace_id, sizeof(l[i].trace_id));
		memcpy(l[i].span_id, from->span_id, sizeof(l[i].span_id));
		attrs[i] = (struct rs_attr){ rs_key(RS_K_RINGSPAN_LINK_TYPE),
					     { .type = RS_VAL_STR,
					       .len = (uint32_t)types[from->type].len,
					       .str = types[from->type].ptr } };
	}
	s->links = l;
	s->nlinks = n;
}

/* Bytes one span may need at most besides its kept fields, which describe() may copy a few times over. */
static size_t worst_case(const struct rs_open *o)
{
	return 24 * 1024 + o->nmessages * (sizeof(struct rs_link) + sizeof(struct rs_attr)) +
	       3 * (o->used + (o->more ? o->more_used : 0));
}

int rs_trace_assemble(struct rs_trace *t, struct rs_open *o, struct rs_proc *proc,
		      struct rs_batch *b)
{
	struct rs_root *root = rs_root_of(o->root);
	struct rs_scope_spans *ss;
	struct rs_build build;
	struct rs_span *s;

	if (!root)
		return -ENOMEM;
	/* A span is in the batch whole or not at all. */
	if (b->arena.limit - b->arena.held < worst_case(o) &&
	    (size_t)(b->arena.end - b->arena.pos) < worst_case(o))
		return -ENOMEM;
	ss = group(b, proc);
	s = ss ? rs_batch_add_span(b, ss) : NULL;
	if (!s)
		return -ENOMEM;
	derive_parent(o, root);
	root->emitted = true;
	memcpy(s->trace_id, root->trace_id, sizeof(s->trace_id));
	memcpy(s->span_id, o->span_id, sizeof(s->span_id));
	memcpy(s->parent_id, o->parent_id, sizeof(s->parent_id));
	s->kind = o->x.role == RS_ROLE_SERVER ? RS_KIND_SERVER : RS_KIND_CLIENT;
	s->flags = root->flags | FLAG_HAS_IS_REMOTE | (o->parent_remote ? FLAG_IS_REMOTE : 0);
	s->start_ns = o->x.start_ns + (uint64_t)t->wall_offset;
	s->end_ns = o->x.end_ns + (uint64_t)t->wall_offset;
	if (root->nstate)
		s->trace_state = rs_arena_str(&b->arena, str_of(root->state, root->nstate));

	rs_build_init(&build, s, &b->arena);
	build.redact = &t->redact;
	o->x.ops->describe(&o->x, &build);
	if (o->x.peer.len)
		rs_build_str(&build, RS_K_SERVICE_PEER_NAME, o->x.peer);
	rs_build_int(&build, RS_K_THREAD_ID, o->x.tid);
	rs_build_lit(&build, RS_K_RINGSPAN_PARENT_SOURCE, source_name(o->parent_source));
	if (o->resend)
		rs_build_int(&build, RS_K_HTTP_REQUEST_RESEND_COUNT, o->resend);
	if (o->x.cut)
		rs_build_bool(&build, RS_K_RINGSPAN_INCOMPLETE, true);
	rs_trace_events(t, o, &build);
	add_links(o, s, &b->arena);
	rs_build_redact(&build);
	rs_limits_apply(&t->limits, &build);
	rs_build_finish(&build);
	return 0;
}
