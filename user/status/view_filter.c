// SPDX-License-Identifier: Apache-2.0
/* What is wanted of a snapshot. */
#include <fnmatch.h>

#include "view_parts.h"

bool rs_view_filters(const struct rs_view_filter *f)
{
	return f->npids || f->ncomms || f->service || f->pod;
}

static bool matches(const json_t *o, const char *key, const char *glob)
{
	const char *value = json_string_value(json_object_get(o, key));

	return value && fnmatch(glob, value, 0) == 0;
}

/* A glob without a namespace is one of names. */
static bool pod_matches(const json_t *o, const char *glob)
{
	const char *pod = json_string_value(json_object_get(o, "pod"));
	const char *slash = pod ? strchr(pod, '/') : NULL;

	if (slash && !strchr(glob, '/'))
		pod = slash + 1;
	return pod && *pod && fnmatch(glob, pod, 0) == 0;
}

static bool wanted(const struct rs_view_filter *f, const json_t *process)
{
	bool pid = !f->npids, comm = !f->ncomms;

	for (uint32_t i = 0; i < f->npids; i++)
		pid |= view_num(process, "pid") == f->pids[i];
	for (uint32_t i = 0; i < f->ncomms; i++)
		comm |= view_is(process, "comm", f->comms[i]);
	return pid && comm && (!f->service || matches(process, "service", f->service)) &&
	       (!f->pod || pod_matches(process, f->pod));
}

/* A service is some process's; one whose processes have ended is known by its name alone. */
static bool service_wanted(const struct rs_view_filter *f, const json_t *service,
			   const json_t *processes)
{
	const char *name = json_string_value(json_object_get(service, "service"));
	const json_t *p;
	size_t i;

	if (f->service && matches(service, "service", f->service) && !f->npids && !f->ncomms &&
	    !f->pod)
		return true;
	json_array_foreach(processes, i, p)
	{
		if (name && view_is(p, "service", name))
			return true;
	}
	return false;
}

char *rs_view_filter(const struct rs_view_filter *f, struct str json, size_t *ret_len)
{
	json_t *o = json_loadb(json.ptr, json.len, 0, NULL), *all, *kept, *services, *one;
	char *out;
	size_t i;

	if (!json_is_object(o)) {
		json_decref(o);
		return NULL;
	}
	kept = json_array();
	services = json_array();
	all = json_object_get(o, "processes");
	json_array_foreach(all, i, one)
	{
		if (wanted(f, one))
			json_array_append(kept, one);
	}
	all = json_object_get(o, "services");
	json_array_foreach(all, i, one)
	{
		if (service_wanted(f, one, kept))
			json_array_append(services, one);
	}
	json_object_set_new(o, "processes", kept);
	json_object_set_new(o, "services", services);
	json_object_set_new(o, "filtered", json_true());
	out = json_dumps(o, JSON_COMPACT);
	json_decref(o);
	*ret_len = out ? strlen(out) : 0;
	return out;
}
