// SPDX-License-Identifier: Apache-2.0
#include "pod.h"

#include <arpa/inet.h>

#define MIRROR "kubernetes.io/config.mirror"
#define OTEL   "resource.opentelemetry.io/"

bool rs_pod_wanted(struct str list, struct str key)
{
	struct str item;

	while (list.len) {
		list = str_cut(list, ',', &item);
		item = str_trim(item);
		if (!item.len)
			continue;
		if (item.ptr[item.len - 1] == '*' ? str_starts(key, str_at(item, 0, item.len - 1))
						  : str_eq(key, item))
			return true;
	}
	return false;
}

/* A text; anything else is passed over. */
static struct str text(struct rs_json *j)
{
	struct str s = STR_NONE;

	if (rs_json_peek(j) != RS_JSON_STRING || !rs_json_str(j, &s))
		rs_json_skip(j);
	return s;
}

static bool truth(struct rs_json *j)
{
	bool b = false;

	if (rs_json_peek(j) == RS_JSON_BOOL)
		rs_json_bool(j, &b);
	else
		rs_json_skip(j);
	return b;
}

static bool object(struct rs_json *j)
{
	if (rs_json_peek(j) == RS_JSON_OBJECT)
		return rs_json_object(j);
	rs_json_skip(j);
	return false;
}

static bool array(struct rs_json *j)
{
	if (rs_json_peek(j) == RS_JSON_ARRAY)
		return rs_json_array(j);
	rs_json_skip(j);
	return false;
}

/* Room for one more of n elements: arrays begin with 4 and double. What was there is moved. */
static bool room(struct rs_pod *p, void **list, uint32_t n, size_t size)
{
	uint32_t cap = n < 4 ? 4 : n * 2;
	void *more;

	if (n == RS_POD_LIST_MAX)
		return false;
	if (n && (n < 4 || n & (n - 1)))
		return true;
	more = rs_arena_alloc(&p->mem, cap * size);
	if (more && n)
		memcpy(more, *list, n * size);
	if (more)
		*list = more;
	return more != NULL;
}

/* Keys borrow the text: what is kept is copied. */
static void add_kv(struct rs_pod *p, struct rs_pod_kv **list, uint32_t *n, struct str key,
		   struct str value)
{
	if (room(p, (void **)list, *n, sizeof(**list)))
		(*list)[(*n)++] = (struct rs_pod_kv){ rs_arena_str(&p->mem, key), value };
}

static void labels(struct rs_pod *p, struct rs_json *j)
{
	struct str key, value;

	if (!object(j))
		return;
	while (rs_json_key(j, &key)) {
		value = text(j);
		if (str_eq(key, STR("pod-template-hash")))
			p->template_hash = value;
		add_kv(p, &p->labels, &p->nlabels, key, value);
	}
}

static void annotations(struct rs_pod *p, struct rs_json *j, const struct rs_pod_conf *conf)
{
	struct str key;

	if (!object(j))
		return;
	while (rs_json_key(j, &key)) {
		if (str_eq(key, STR(MIRROR)))
			p->cgroup_uid = text(j);
		else if (str_starts(key, STR(OTEL)) || rs_pod_wanted(conf->annotations, key))
			add_kv(p, &p->annotations, &p->nannotations, key, text(j));
		else
			rs_json_skip(j);
	}
}

static void owners(struct rs_pod *p, struct rs_json *j)
{
	struct str key;

	if (!array(j))
		return;
	while (rs_json_elem(j)) {
		struct str kind = STR_NONE, name = STR_NONE, uid = STR_NONE;
		bool controller = false;

		if (!object(j))
			continue;
		while (rs_json_key(j, &key)) {
			if (str_eq(key, STR("kind")))
				kind = text(j);
			else if (str_eq(key, STR("name")))
				name = text(j);
			else if (str_eq(key, STR("uid")))
				uid = text(j);
			else if (str_eq(key, STR("controller")))
				controller = truth(j);
			else
				rs_json_skip(j);
		}
		if (!controller)
			continue;
		p->owner_kind = kind;
		p->owner_name = name;
		p->owner_uid = uid;
	}
}

static void metadata(struct rs_pod *p, struct rs_json *j, const struct rs_pod_conf *conf)
{
	struct str key;

	if (!object(j))
		return;
	while (rs_json_key(j, &key)) {
		if (str_eq(key, STR("name")))
			p->name = text(j);
		else if (str_eq(key, STR("namespace")))
			p->namespace = text(j);
		else if (str_eq(key, STR("uid")))
			p->uid = text(j);
		else if (str_eq(key, STR("labels")))
			labels(p, j);
		else if (str_eq(key, STR("deletionTimestamp")))
			p->leaving = text(j).len > 0;
		else if (str_eq(key, STR("annotations")))
			annotations(p, j, conf);
		else if (str_eq(key, STR("ownerReferences")))
			owners(p, j);
		else
			rs_json_skip(j);
	}
}

static struct rs_pod_container *container_named(struct rs_pod *p, struct str name)
{
	for (uint32_t i = 0; i < p->ncontainers; i++) {
		if (str_eq(p->containers[i].name, name))
			return &p->containers[i];
	}
	if (!room(p, (void **)&p->containers, p->ncontainers, sizeof(*p->containers)))
		return NULL;
	p->containers[p->ncontainers] = (struct rs_pod_container){ .name = name };
	return &p->containers[p->ncontainers++];
}

/* Elements of spec's and status's lists: both have name and image, the latter an id. */
static void containers(struct rs_pod *p, struct rs_json *j)
{
	struct rs_pod_container *c;
	struct str key;

	if (!array(j))
		return;
	while (rs_json_elem(j)) {
		struct str name = STR_NONE, image = STR_NONE, id = STR_NONE, scheme;

		if (!object(j))
			continue;
		while (rs_json_key(j, &key)) {
			if (str_eq(key, STR("name")))
				name = text(j);
			else if (str_eq(key, STR("image")))
				image = text(j);
			else if (str_eq(key, STR("containerID")))
				id = text(j);
			else
				rs_json_skip(j);
		}
		c = name.len ? container_named(p, name) : NULL;
		if (!c)
			continue;
		/* The spec's image is what was asked for; a status may have it as the digest alone. */
		if (!c->image.len)
			c->image = image;
		str_cut(id, ':', &scheme);
		if (str_starts(str_from(id, scheme.len), STR("://")))
			c->id = str_from(id, scheme.len + 3);
	}
}

bool rs_pod_ip(struct str text, uint8_t ret[16])
{
	char buf[INET6_ADDRSTRLEN];

	text = str_starts(text, STR("::ffff:")) && str_find(text, '.') < text.len
		       ? str_from(text, 7)
		       : text;
	memset(ret, 0, 16);
	if (!text.len || text.len >= sizeof(buf))
		return false;
	memcpy(buf, text.ptr, text.len);
	buf[text.len] = 0;
	return inet_pton(strchr(buf, ':') ? AF_INET6 : AF_INET, buf, ret) == 1;
}

static void add_ip(struct rs_pod *p, struct str ip)
{
	uint8_t addr[16];

	if (!rs_pod_ip(ip, addr))
		return; /* "None": a Service without an address of its own */
	for (uint8_t i = 0; i < p->nips; i++) {
		if (memcmp(p->ip[i], addr, sizeof(addr)) == 0)
			return;
	}
	if (p->nips < RS_POD_IPS)
		memcpy(p->ip[p->nips++], addr, sizeof(addr));
}

static void ips(struct rs_pod *p, struct rs_json *j)
{
	struct str key;

	if (!array(j))
		return;
	while (rs_json_elem(j)) {
		if (!object(j))
			continue;
		while (rs_json_key(j, &key)) {
			if (str_eq(key, STR("ip")))
				add_ip(p, text(j));
			else
				rs_json_skip(j);
		}
	}
}

static void ip_texts(struct rs_pod *p, struct rs_json *j)
{
	if (!array(j))
		return;
	while (rs_json_elem(j))
		add_ip(p, text(j));
}

static bool container_list(struct str key)
{
	return str_eq(key, STR("containers")) || str_eq(key, STR("initContainers")) ||
	       str_eq(key, STR("ephemeralContainers")) || str_eq(key, STR("containerStatuses")) ||
	       str_eq(key, STR("initContainerStatuses")) ||
	       str_eq(key, STR("ephemeralContainerStatuses"));
}

static void spec(struct rs_pod *p, struct rs_json *j)
{
	struct str key;

	if (!object(j))
		return;
	while (rs_json_key(j, &key)) {
		if (container_list(key))
			containers(p, j);
		else if (str_eq(key, STR("hostNetwork")))
			p->host_network = truth(j);
		else if (str_eq(key, STR("clusterIP")))
			add_ip(p, text(j));
		else if (str_eq(key, STR("clusterIPs")))
			ip_texts(p, j);
		else
			rs_json_skip(j);
	}
}

static void status(struct rs_pod *p, struct rs_json *j)
{
	struct str key, phase;

	if (!object(j))
		return;
	while (rs_json_key(j, &key)) {
		if (container_list(key)) {
			containers(p, j);
		} else if (str_eq(key, STR("podIP"))) {
			add_ip(p, text(j));
		} else if (str_eq(key, STR("podIPs"))) {
			ips(p, j);
		} else if (str_eq(key, STR("phase"))) {
			phase = text(j);
			p->ended = str_eq(phase, STR("Succeeded")) || str_eq(phase, STR("Failed"));
		} else {
			rs_json_skip(j);
		}
	}
}

bool rs_pod_parse(struct rs_pod *p, struct rs_json *j, const struct rs_pod_conf *conf)
{
	struct str key;

	if (!object(j))
		return false;
	while (rs_json_key(j, &key)) {
		if (str_eq(key, STR("metadata")))
			metadata(p, j, conf);
		else if (str_eq(key, STR("spec")))
			spec(p, j);
		else if (str_eq(key, STR("status")))
			status(p, j);
		else
			rs_json_skip(j);
	}
	if (!p->cgroup_uid.len)
		p->cgroup_uid = p->uid;
	return !j->err && p->uid.len && p->name.len;
}

bool rs_pod_set_top(struct rs_pod *p, struct str kind, struct str name, struct str uid)
{
	if (str_eq(p->top_uid, uid))
		return false;
	p->top_kind = rs_arena_str(&p->mem, kind);
	p->top_name = rs_arena_str(&p->mem, name);
	p->top_uid = rs_arena_str(&p->mem, uid);
	return true;
}

static struct str find(const struct rs_pod_kv *list, uint32_t n, struct str key)
{
	for (uint32_t i = 0; i < n; i++) {
		if (str_eq(list[i].key, key))
			return list[i].value;
	}
	return STR_NONE;
}

struct str rs_pod_label(const struct rs_pod *p, struct str key)
{
	return find(p->labels, p->nlabels, key);
}

struct str rs_pod_annotation(const struct rs_pod *p, struct str key)
{
	return find(p->annotations, p->nannotations, key);
}

const struct rs_pod_container *rs_pod_container(const struct rs_pod *p, struct str name,
						struct str id)
{
	for (uint32_t i = 0; i < p->ncontainers; i++) {
		const struct rs_pod_container *c = &p->containers[i];

		if (name.len ? str_eq(c->name, name) : c->id.len && str_eq(c->id, id))
			return c;
	}
	return !name.len && p->ncontainers == 1 ? &p->containers[0] : NULL;
}
