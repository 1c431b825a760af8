// SPDX-License-Identifier: Apache-2.0
#include "cgroup.h"

#define HEX_ID	   64 /* digits of a container's id */
#define HEX_TASK   32 /* digits of an ECS task's id, and of a static pod's uid */
#define UUID_LEN   36
#define GARDEN_LEN 28 /* 8-4-4-4-4 */

const char *rs_runtime_name(enum rs_runtime r)
{
	static const char *const names[] = {
		[RS_RUNTIME_UNKNOWN] = "",	[RS_RUNTIME_CONTAINERD] = "containerd",
		[RS_RUNTIME_CRIO] = "cri-o",	[RS_RUNTIME_DOCKER] = "docker",
		[RS_RUNTIME_PODMAN] = "podman", [RS_RUNTIME_GARDEN] = "garden",
		[RS_RUNTIME_LXC] = "lxc",	[RS_RUNTIME_MESOS] = "mesos",
	};

	return names[r];
}

static bool is_hex(struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		if (!((s.ptr[i] >= '0' && s.ptr[i] <= '9') || (s.ptr[i] >= 'a' && s.ptr[i] <= 'f')))
			return false;
	}
	return s.len > 0;
}

static bool is_digits(struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		if (s.ptr[i] < '0' || s.ptr[i] > '9')
			return false;
	}
	return s.len > 0;
}

/* Hex digits with a separator ('-', or '_' as systemd's slices need it) after 8, 13, 18, 23. */
static bool is_grouped(struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		bool sep = i == 8 || i == 13 || i == 18 || i == 23;

		if (sep ? s.ptr[i] != '-' && s.ptr[i] != '_' : !is_hex(str_at(s, i, 1)))
			return false;
	}
	return true;
}

static bool ends(struct str s, struct str tail)
{
	return s.len >= tail.len && str_eq(str_from(s, s.len - tail.len), tail);
}

static struct str without(struct str s, struct str tail)
{
	return ends(s, tail) ? str_at(s, 0, s.len - tail.len) : s;
}

static void set(char *to, size_t size, struct str s)
{
	s = str_at(s, 0, size - 1);
	memcpy(to, s.ptr, s.len);
	to[s.len] = 0;
}

/* What stands before the id in a container's name. */
static enum rs_runtime runtime_of_prefix(struct str prefix)
{
	static const struct {
		struct str prefix;
		enum rs_runtime runtime;
	} known[] = {
		{ { "cri-containerd", 14 }, RS_RUNTIME_CONTAINERD },
		{ { "containerd", 10 }, RS_RUNTIME_CONTAINERD },
		{ { "nerdctl", 7 }, RS_RUNTIME_CONTAINERD },
		{ { "crio", 4 }, RS_RUNTIME_CRIO },
		{ { "docker", 6 }, RS_RUNTIME_DOCKER },
		{ { "libpod", 6 }, RS_RUNTIME_PODMAN },
		{ { "libpod-payload", 14 }, RS_RUNTIME_PODMAN },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (str_eq(prefix, known[i].prefix))
			return known[i].runtime;
	}
	return RS_RUNTIME_UNKNOWN;
}

/* The directory that holds a bare id. */
static enum rs_runtime runtime_of_parent(struct str parent)
{
	if (str_eq(parent, STR("docker")) || str_eq(parent, STR("actions_job")))
		return RS_RUNTIME_DOCKER;
	if (str_eq(parent, STR("k8s.io")) || str_eq(parent, STR("moby")))
		return RS_RUNTIME_CONTAINERD;
	return RS_RUNTIME_UNKNOWN;
}

/* One component of the path, with the one above it, and what the path holds. */
struct part {
	struct str name, parent;
	bool garden;
	bool user; /* /user.slice/: people's sessions, and rootless containers */
};

static bool found(struct rs_cgroup *c, struct str id, enum rs_runtime r)
{
	if (!id.len || memchr(id.ptr, 0, id.len)) /* no file's name, whatever text this is */
		return false;
	set(c->container_id, sizeof(c->container_id), id);
	c->runtime = (uint8_t)r;
	return true;
}

static bool container_name(const struct part *p, struct rs_cgroup *c)
{
	struct str name = without(p->name, STR(".scope")), id, prefix, tail;
	enum rs_runtime runtime;
	char sep;

	/* LXC names its containers as people do. */
	if (str_starts(name, STR("lxc.payload.")) && name.len > 12)
		return found(c, str_from(name, 12), RS_RUNTIME_LXC);
	if (str_eq(p->parent, STR("lxc")) || str_eq(p->parent, STR("lxc.payload")))
		return found(c, p->name, RS_RUNTIME_LXC);

	/* 32 digits, a dash and a number: a container of a Fargate task. */
	tail = str_from(name, HEX_TASK + 1);
	if (name.len == p->name.len && name.len > HEX_TASK + 1 && name.ptr[HEX_TASK] == '-' &&
	    is_hex(str_at(name, 0, HEX_TASK)) && is_digits(tail))
		return found(c, name, RS_RUNTIME_UNKNOWN);
	if (name.len == GARDEN_LEN && is_grouped(name))
		return found(c, name, RS_RUNTIME_GARDEN);
	/* UUIDs name much else too. */
	if (name.len == UUID_LEN && is_grouped(name)) {
		if (p->garden)
			return found(c, name, RS_RUNTIME_GARDEN);
		if (str_eq(p->parent, STR("mesos")))
			return found(c, name, RS_RUNTIME_MESOS);
	}

	if (name.len < HEX_ID)
		return false;
	id = str_from(name, name.len - HEX_ID);
	if (!is_hex(id))
		return false;
	prefix = str_at(name, 0, name.len - HEX_ID);
	if (!prefix.len) {
		if (str_eq(p->parent, STR("libpod_parent")))
			return false; /* a podman pod, the containers are below */
		if (str_eq(p->parent, STR("kata_overhead")))
			return false; /* the host's side of a sandbox: its runtime and hypervisor */
		return found(c, id, runtime_of_parent(p->parent));
	}
	sep = prefix.ptr[--prefix.len];
	/* "SLICE:RUNTIME:ID": written for the systemd driver, taken as it stands by the other. */
	if (sep == ':') {
		while (str_find(prefix, ':') < prefix.len)
			prefix = str_from(prefix, str_find(prefix, ':') + 1);
	} else if (sep != '-' && sep != '_') {
		return false;
	}
	if (ends(prefix, STR("conmon")))
		return false;
	runtime = runtime_of_prefix(prefix);
	/* systemd's own scopes may end as an id does: of sessions, applications, systemd-run. */
	if (runtime == RS_RUNTIME_UNKNOWN && name.len < p->name.len &&
	    (p->user || str_eq(prefix, STR("run"))))
		return false;
	return found(c, id, runtime);
}

static bool pod_uid(struct str uid, struct rs_cgroup *c)
{
	if (uid.len == UUID_LEN ? !is_grouped(uid) : uid.len != HEX_TASK || !is_hex(uid))
		return false;
	set(c->pod_uid, sizeof(c->pod_uid), uid);
	for (char *p = c->pod_uid; *p; p++) {
		if (*p == '_')
			*p = '-';
	}
	return true;
}

static bool pod_name(const struct part *p, struct rs_cgroup *c)
{
	struct str name, before;

	/* cgroupfs: [burstable|besteffort]/podUID */
	if (str_starts(p->name, STR("pod")) && pod_uid(str_from(p->name, 3), c))
		return true;
	/* systemd: [kubelet-]kubepods[-QOS]-podUID.slice[:RUNTIME:ID] */
	str_cut(p->name, ':', &name);
	if (!ends(name, STR(".slice")))
		return false;
	name = without(name, STR(".slice"));
	for (size_t n = HEX_TASK; n <= UUID_LEN; n += UUID_LEN - HEX_TASK) {
		if (name.len < n)
			break;
		before = str_at(name, 0, name.len - n);
		if (ends(before, STR("-pod")) && pod_uid(str_from(name, before.len), c))
			return true;
	}
	return false;
}

bool rs_cgroup_path(struct str path, struct rs_cgroup *ret)
{
	struct part p = { .user = false };

	*ret = (struct rs_cgroup){ 0 };
	/* The kernel says so of a cgroup that was removed under its process. */
	path = without(path, STR(" (deleted)"));
	for (size_t i = 0; i < path.len; i++) {
		p.garden |= str_starts(str_from(path, i), STR("/garden/"));
		p.user |= str_starts(str_from(path, i), STR("/user.slice/"));
	}
	while (path.len && !(*ret->container_id && *ret->pod_uid)) {
		size_t at = path.len;
		struct str rest;

		while (at && path.ptr[at - 1] != '/')
			at--;
		p.name = str_from(path, at);
		path.len = at ? at - 1 : 0;
		rest = path;
		while (rest.len && rest.ptr[rest.len - 1] != '/')
			rest.len--;
		p.parent = str_from(path, rest.len);
		if (!p.name.len)
			continue;
		/* Podman's monitor, before 2.0 with cgroupfs: a sibling of the container's "ctr". */
		if (str_eq(p.name, STR("conmon")) && str_starts(p.parent, STR("libpod-"))) {
			path = rest;
			continue;
		}
		if (!*ret->container_id)
			container_name(&p, ret);
		if (!*ret->pod_uid)
			pod_name(&p, ret);
	}
	return *ret->container_id || *ret->pod_uid;
}

bool rs_cgroup_text(struct str text, struct rs_cgroup *ret)
{
	struct rs_cgroup c;

	*ret = (struct rs_cgroup){ 0 };
	for (int unified = 1; unified >= 0; unified--) {
		struct str rest = text, line, number, controllers, path;

		while (rest.len) {
			rest = str_cut(rest, '\n', &line);
			path = str_cut(str_cut(line, ':', &number), ':', &controllers);
			if ((str_eq(number, STR("0")) && !controllers.len) != unified ||
			    !rs_cgroup_path(path, &c))
				continue;
			if (*c.container_id) {
				*ret = c;
				return true;
			}
			if (!*ret->pod_uid)
				*ret = c;
		}
	}
	return *ret->pod_uid;
}
