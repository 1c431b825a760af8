// SPDX-License-Identifier: Apache-2.0
#include "container.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/json.h"

#define CGROUP2_MAGIC 0x63677270
#define FILEID_KERNFS 0xfe
#define FILE_MAX      (1u << 20) /* bytes of a runtime's file that are read */
#define MEM_CHUNK     1024
#define MEM_MAX	      (16 * 1024)

static void take(struct rs_container *c, struct str *to, struct str value)
{
	if (!to->len && value.len)
		*to = rs_arena_str(&c->mem, str_at(value, 0, 512));
}

/* An annotation of a bundle, or a label of Docker's: by CRI of containerd, by CRI-O and cri-dockerd. */
static void take_note(struct rs_container *c, struct str key, struct str value)
{
	static const struct {
		struct str key;
		size_t off;
	} notes[] = {
#define NOTE(key, field) { { key, sizeof(key) - 1 }, offsetof(struct rs_container, field) }
		NOTE("io.kubernetes.cri.container-name", pod_container),
		NOTE("io.kubernetes.cri.sandbox-name", pod_name),
		NOTE("io.kubernetes.cri.sandbox-namespace", pod_namespace),
		NOTE("io.kubernetes.cri.image-name", image),
		NOTE("io.kubernetes.container.name", pod_container),
		NOTE("io.kubernetes.pod.name", pod_name),
		NOTE("io.kubernetes.pod.namespace", pod_namespace),
		NOTE("io.kubernetes.cri-o.ImageName", image),
		NOTE("nerdctl/name", name),
#undef NOTE
	};
	bool uid = str_eq(key, STR("io.kubernetes.cri.sandbox-uid")) ||
		   str_eq(key, STR("io.kubernetes.pod.uid"));

	for (size_t i = 0; i < sizeof(notes) / sizeof(notes[0]); i++) {
		if (str_eq(key, notes[i].key))
			take(c, (struct str *)(void *)((char *)c + notes[i].off), value);
	}
	if (uid && !*c->cg.pod_uid && value.len < sizeof(c->cg.pod_uid)) {
		memcpy(c->cg.pod_uid, value.ptr, value.len);
		c->cg.pod_uid[value.len] = 0;
	}
}

/* The next value as text, when it is one; else it is skipped. */
static struct str text_of(struct rs_json *j)
{
	struct str s = STR_NONE;

	if (rs_json_peek(j) != RS_JSON_STRING || !rs_json_str(j, &s))
		rs_json_skip(j);
	return s;
}

static bool enter(struct rs_json *j)
{
	if (rs_json_peek(j) == RS_JSON_OBJECT)
		return rs_json_object(j);
	rs_json_skip(j);
	return false;
}

static void take_notes(struct rs_container *c, struct rs_json *j)
{
	struct str key;

	if (!enter(j))
		return;
	while (rs_json_key(j, &key))
		take_note(c, key, text_of(j));
}

/* Docker's "Config": the image and the labels. */
static void take_docker(struct rs_container *c, struct rs_json *j)
{
	struct str key;

	if (!enter(j))
		return;
	while (rs_json_key(j, &key)) {
		if (str_eq(key, STR("Image")))
			take(c, &c->image, text_of(j));
		else if (str_eq(key, STR("Labels")))
			take_notes(c, j);
		else
			rs_json_skip(j);
	}
}

void rs_container_config(struct rs_container *c, struct str json)
{
	struct rs_arena mem;
	struct rs_json j;
	struct str key, name = STR_NONE;

	rs_arena_init(&mem, 8192, 4 * FILE_MAX);
	rs_json_init(&j, json, &mem);
	if (enter(&j)) {
		while (rs_json_key(&j, &key)) {
			if (str_eq(key, STR("annotations")))
				take_notes(c, &j);
			else if (str_eq(key, STR("Config")))
				take_docker(c, &j);
			else if (str_eq(key, STR("Name")))
				name = text_of(&j);
			else
				rs_json_skip(&j);
		}
	}
	if (str_starts(name, STR("/")))
		name = str_from(name, 1);
	take(c, &c->name, name);
	rs_arena_release(&mem);
}

/* "metadata" is JSON in a text: image-name and name. */
static void take_podman(struct rs_container *c, struct str json, struct rs_arena *mem)
{
	struct rs_json j;
	struct str key;

	rs_json_init(&j, json, mem);
	if (!enter(&j))
		return;
	while (rs_json_key(&j, &key)) {
		if (str_eq(key, STR("image-name")))
			take(c, &c->image, text_of(&j));
		else if (str_eq(key, STR("name")))
			take(c, &c->name, text_of(&j));
		else
			rs_json_skip(&j);
	}
}

void rs_container_podman(struct rs_container *c, struct str json)
{
	struct rs_arena mem;
	struct rs_json j;
	struct str key, id, meta;

	rs_arena_init(&mem, 8192, 4 * FILE_MAX);
	rs_json_init(&j, json, &mem);
	if (rs_json_peek(&j) == RS_JSON_ARRAY && rs_json_array(&j)) {
		while (rs_json_elem(&j)) {
			id = meta = STR_NONE;
			if (!enter(&j))
				continue;
			while (rs_json_key(&j, &key)) {
				if (str_eq(key, STR("id")))
					id = text_of(&j);
				else if (str_eq(key, STR("metadata")))
					meta = text_of(&j);
				else
					rs_json_skip(&j);
			}
			if (str_eq(id, str_c(c->cg.container_id)))
				take_podman(c, meta, &mem);
		}
	}
	rs_arena_release(&mem);
}

/* "ID PARENT MAJOR:MINOR ROOT MOUNTPOINT …" (proc_pid_mountinfo(5)) */
void rs_container_mount(struct rs_container *c, struct str line)
{
	struct str root = line, part;

	for (int i = 0; i < 3; i++)
		root = str_cut(root, ' ', &part);
	str_cut(root, ' ', &root);
	for (size_t i = 0; i < root.len; i++) {
		struct str uid, rest, name, word;

		if (!str_starts(str_from(root, i), STR("/pods/")))
			continue;
		rest = str_cut(str_from(root, i + 6), '/', &uid);
		if (*c->cg.pod_uid && !str_eq(uid, str_c(c->cg.pod_uid)))
			continue;
		if (!*c->cg.pod_uid && (uid.len == 36 || uid.len == 32)) {
			memcpy(c->cg.pod_uid, uid.ptr, uid.len);
			c->cg.pod_uid[uid.len] = 0;
		}
		rest = str_cut(rest, '/', &word);
		str_cut(rest, '/', &name);
		if (str_eq(word, STR("containers")))
			take(c, &c->pod_container, name);
	}
}

void rs_image_parse(struct str image, struct str *ret_name, struct str *ret_tag,
		    struct str *ret_digest)
{
	size_t slash = 0;
	struct str last;

	*ret_digest = str_cut(image, '@', &image);
	/* A colon before the last slash is a port's. */
	for (size_t i = 0; i < image.len; i++) {
		if (image.ptr[i] == '/')
			slash = i + 1;
	}
	*ret_tag = str_cut(str_from(image, slash), ':', &last);
	*ret_name = str_at(image, 0, slash + last.len);
}

/* -- files -- */

/* malloc'ed; len 0: it cannot be read, is empty or too big. */
static struct str read_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0, cap;
	struct stat st;
	char *buf;
	ssize_t r;

	if (fd < 0)
		return STR_NONE;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size > FILE_MAX) {
		close(fd);
		return STR_NONE;
	}
	cap = st.st_size ? (size_t)st.st_size : 65536; /* /proc tells no sizes */
	buf = malloc(cap);
	while (buf && len < cap && (r = read(fd, buf + len, cap - len)) > 0)
		len += (size_t)r;
	close(fd);
	return str_of(buf, buf ? len : 0);
}

/* Where a runtime keeps a file: below the host's root, the id between the two halves; without a second half
 * the first is the whole path. */
struct place {
	const char *before, *after;
};

static bool read_place(struct rs_containers *cs, struct rs_container *c, const struct place *p,
		       void (*parse)(struct rs_container *c, struct str json))
{
	char path[PATH_MAX];
	struct str json;

	snprintf(path, sizeof(path), "%s%s%s%s", cs->host_root, p->before,
		 p->after ? c->cg.container_id : "", p->after ? p->after : "");
	json = read_file(path);
	if (json.len)
		parse(c, json);
	free((char *)json.ptr);
	return json.len > 0;
}

#define TASKS	"io.containerd.runtime.v2.task/"
#define STORAGE "containers/storage/"

static void read_bundle(struct rs_containers *cs, struct rs_container *c)
{
	static const struct place bundles[] = {
		{ "/run/containerd/" TASKS "k8s.io/", "/config.json" },
		{ "/run/k3s/containerd/" TASKS "k8s.io/", "/config.json" },
		{ "/run/k0s/containerd/" TASKS "k8s.io/", "/config.json" },
		{ "/var/snap/microk8s/common/run/containerd/" TASKS "k8s.io/", "/config.json" },
		{ "/run/containerd/" TASKS "default/", "/config.json" },
		{ "/run/" STORAGE "overlay-containers/", "/userdata/config.json" },
		{ "/run/" STORAGE "vfs-containers/", "/userdata/config.json" },
		{ "/var/lib/docker/containers/", "/config.v2.json" },
		{ "/var/snap/docker/common/var-lib-docker/containers/", "/config.v2.json" },
	};
	static const struct place lists[] = {
		{ "/var/lib/" STORAGE "overlay-containers/containers.json", NULL },
		{ "/var/lib/" STORAGE "vfs-containers/containers.json", NULL },
	};
	struct str id = str_c(c->cg.container_id);

	/* LXC's names are its users'; files are looked for by ids alone. */
	if (c->cg.runtime == RS_RUNTIME_LXC || str_find(id, '/') < id.len)
		return;
	for (size_t i = 0; i < sizeof(bundles) / sizeof(bundles[0]); i++) {
		if (read_place(cs, c, &bundles[i], rs_container_config))
			break;
	}
	if (c->cg.runtime != RS_RUNTIME_PODMAN)
		return;
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]) && !c->name.len; i++)
		read_place(cs, c, &lists[i], rs_container_podman);
}

/* kubelet's directories: NAMESPACE_NAME_UID. Neither of the names has an underscore. */
static void read_logs(struct rs_containers *cs, struct rs_container *c)
{
	char path[PATH_MAX];
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "%s/var/log/pods", cs->host_root);
	d = opendir(path);
	while (d && !c->pod_name.len && (e = readdir(d))) {
		struct str rest = str_c(e->d_name), ns, name;

		rest = str_cut(str_cut(rest, '_', &ns), '_', &name);
		if (!str_eq(rest, str_c(c->cg.pod_uid)))
			continue;
		take(c, &c->pod_namespace, ns);
		take(c, &c->pod_name, name);
	}
	if (d)
		closedir(d);
}

/* False: the process is gone. */
static bool read_mounts(struct rs_container *c, uint32_t tgid)
{
	char path[64], line[4096];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/mountinfo", tgid);
	f = fopen(path, "re");
	if (!f)
		return false;
	while (!c->pod_container.len && fgets(line, sizeof(line), f))
		rs_container_mount(c, str_c(line));
	fclose(f);
	return true;
}

/* -- cgroups -- */

static bool path_of(int fd, char *buf, size_t size)
{
	char link[64];
	ssize_t r;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	r = readlink(link, buf, size - 1);
	buf[r > 0 ? r : 0] = '\0';
	return r > 0;
}

static bool cgroup_by_id(struct rs_containers *cs, uint64_t id, struct rs_cgroup *ret)
{
	union {
		struct file_handle h;
		char room[sizeof(struct file_handle) + sizeof(id)];
	} u = { .h = { .handle_bytes = sizeof(id), .handle_type = FILEID_KERNFS } };
	char path[RS_CGROUP_PATH_MAX];
	bool ok;
	int fd;

	if (cs->cgroup_fd < 0 || !id)
		return false;
	memcpy(u.h.f_handle, &id, sizeof(id));
	fd = open_by_handle_at(cs->cgroup_fd, &u.h, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ok = path_of(fd, path, sizeof(path)) && rs_cgroup_path(str_c(path), ret);
	close(fd);
	return ok;
}

static bool cgroup_by_proc(uint32_t tgid, struct rs_cgroup *ret)
{
	char path[64];
	struct str text;
	bool ok;

	snprintf(path, sizeof(path), "/proc/%u/cgroup", tgid);
	text = read_file(path);
	ok = rs_cgroup_text(text, ret);
	free((char *)text.ptr);
	return ok;
}

/* -- the cache -- */

static void drop(struct rs_containers *cs, struct rs_container *c)
{
	rs_map_del(&cs->by_key, c->key);
	rs_list_del(&c->lru);
	rs_arena_release(&c->mem);
	rs_pool_put(&cs->pool, c);
}

static struct rs_container *add(struct rs_containers *cs, uint64_t key, const struct rs_cgroup *cg)
{
	struct rs_container *c;

	if (cs->pool.in_use == cs->pool.max)
		drop(cs, rs_list_entry(cs->lru.next, struct rs_container, lru));
	c = rs_pool_get(&cs->pool);
	if (!c)
		return NULL;
	*c = (struct rs_container){ .cg = *cg, .key = key };
	rs_arena_init(&c->mem, MEM_CHUNK, MEM_MAX);
	if (rs_map_put(&cs->by_key, key, c)) {
		rs_pool_put(&cs->pool, c);
		return NULL;
	}
	rs_list_add_tail(&cs->lru, &c->lru);
	read_bundle(cs, c);
	return c;
}

void rs_containers_made(struct rs_containers *cs, uint64_t cgroup, struct str path)
{
	struct rs_cgroup cg;

	if (rs_cgroup_path(path, &cg) && *cg.container_id && !rs_map_get(&cs->by_key, cgroup))
		add(cs, cgroup, &cg);
}

const struct rs_container *rs_containers_of(struct rs_containers *cs, uint32_t tgid,
					    uint64_t cgroup)
{
	struct rs_container *c = cgroup ? rs_map_get(&cs->by_key, cgroup) : NULL;
	struct rs_cgroup cg = { 0 };

	if (!c) {
		/* In a hybrid setup a runtime may keep to v1: then only the process's file tells. */
		if (!cgroup_by_id(cs, cgroup, &cg) || !*cg.container_id) {
			cgroup = 0;
			if (!cgroup_by_proc(tgid, &cg) || !*cg.container_id)
				return NULL;
		}
		if (!cgroup)
			cgroup = rs_hash_str(0, str_c(cg.container_id));
		c = rs_map_get(&cs->by_key, cgroup);
		if (!c)
			c = add(cs, cgroup, &cg);
		if (!c)
			return NULL;
	}
	if (!c->asked) {
		if (!c->image.len) /* the runtime may write its files after the cgroup was made */
			read_bundle(cs, c);
		/* Its first process may be gone already; the next one has the same mounts. */
		c->asked = (*c->cg.pod_uid ? c->pod_container.len : c->name.len) ||
			   read_mounts(c, tgid);
		if (*c->cg.pod_uid && !c->pod_name.len)
			read_logs(cs, c);
	}
	rs_list_del(&c->lru);
	rs_list_add_tail(&cs->lru, &c->lru);
	return c;
}

static int open_unified(const char *root, const char *below)
{
	char path[PATH_MAX];
	struct statfs fs;
	int fd;

	snprintf(path, sizeof(path), "%s%s", root, below);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && (fstatfs(fd, &fs) || fs.f_type != CGROUP2_MAGIC)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

void rs_containers_init(struct rs_containers *cs, const char *host_root, struct rs_counters *n)
{
	*cs = (struct rs_containers){ .n = n, .cgroup_fd = -1, .host_root = host_root };
	rs_map_init(&cs->by_key, RS_CONTAINERS_MAX);
	rs_pool_init(&cs->pool, sizeof(struct rs_container), RS_CONTAINERS_MAX);
	rs_list_init(&cs->lru);
	if (!host_root)
		cs->host_root = access("/proc/1/root/proc", X_OK) == 0 ? "/proc/1/root" : "";
	cs->cgroup_fd = open_unified(cs->host_root, "/sys/fs/cgroup");
	if (cs->cgroup_fd < 0)
		cs->cgroup_fd = open_unified(cs->host_root, "/sys/fs/cgroup/unified");
	if (cs->cgroup_fd < 0)
		cs->cgroup_fd = open_unified("", "/sys/fs/cgroup");
}

void rs_containers_release(struct rs_containers *cs)
{
	if (!cs->lru.next)
		return;
	while (!rs_list_empty(&cs->lru))
		drop(cs, rs_list_entry(cs->lru.next, struct rs_container, lru));
	if (cs->cgroup_fd >= 0)
		close(cs->cgroup_fd);
	rs_map_release(&cs->by_key);
	rs_pool_release(&cs->pool);
}
