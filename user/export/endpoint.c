// SPDX-License-Identifier: Apache-2.0
#include "exporter.h"

#include <errno.h>
#include <stdio.h>

static int bad_endpoint(struct rs_exporter *e, const char *text, char *err, size_t size,
			const char *why)
{
	/* The text itself may hold a password. */
	return rs_config_wrong(e->cfg, e->asked ? e->cfg->exporter : text, err, size,
			       "exporter %s: the endpoint is no URL: %s", e->ops->name, why);
}

static const char *url_part(struct rs_exporter *e, CURLU *u, CURLUPart part, unsigned flags)
{
	const char *copy = NULL;
	char *text = NULL;

	if (curl_url_get(u, part, &text, flags) == CURLUE_OK)
		copy = rs_exporter_str(e, str_c(text));
	curl_free(text);
	return copy;
}

/* Takes user and password out of the URL: they would be shown with it. */
static int take_userinfo(struct rs_exporter *e, CURLU *u)
{
	const char *user = url_part(e, u, CURLUPART_USER, CURLU_URLDECODE);
	const char *password = url_part(e, u, CURLUPART_PASSWORD, CURLU_URLDECODE);
	char both[1024];

	if (!user && !password)
		return 0;
	snprintf(both, sizeof(both), "%s:%s", user ? user : "", password ? password : "");
	e->conf.userpwd = rs_exporter_str(e, str_c(both));
	rs_exporter_secret(e, password);
	curl_url_set(u, CURLUPART_USER, NULL, 0);
	curl_url_set(u, CURLUPART_PASSWORD, NULL, 0);
	return e->conf.userpwd ? 0 : -ENOMEM;
}

static int set_path(struct rs_exporter *e, CURLU *u, enum rs_endpoint_path how)
{
	const char *path = url_part(e, u, CURLUPART_PATH, 0), *own = e->ops->path;
	char joined[2048];
	size_t n = path ? strlen(path) : 0;

	if (!own || how == RS_PATH_EXACT || (how == RS_PATH_AUTO && n > 1))
		return 0;
	while (n && path[n - 1] == '/')
		n--;
	snprintf(joined, sizeof(joined), "%.*s%s", (int)n, path ? path : "", own);
	return curl_url_set(u, CURLUPART_PATH, joined, 0) == CURLUE_OK ? 0 : -EINVAL;
}

static int parse_url(struct rs_exporter *e, CURLU *u, const char *text, enum rs_endpoint_path how,
		     const char *scheme)
{
	const char *query;
	char full[2048];

	snprintf(full, sizeof(full), "%s%s%s", strstr(text, "://") ? "" : scheme,
		 strstr(text, "://") ? "" : "://", text);
	if (curl_url_set(u, CURLUPART_URL, full, 0) != CURLUE_OK || take_userinfo(e, u) ||
	    set_path(e, u, how))
		return -EINVAL;
	e->url = url_part(e, u, CURLUPART_URL, 0);
	query = url_part(e, u, CURLUPART_QUERY, 0);
	rs_exporter_secret(e, query);
	curl_url_set(u, CURLUPART_QUERY, NULL, 0);
	curl_url_set(u, CURLUPART_FRAGMENT, NULL, 0);
	if (e->ops->grpc) /* the path names the method: of all the same */
		curl_url_set(u, CURLUPART_PATH, NULL, 0);
	if (!e->target)
		e->target = url_part(e, u, CURLUPART_URL, 0);
	return e->url && e->target ? 0 : -ENOMEM;
}

int rs_exporter_endpoint(struct rs_exporter *e, const char *text, enum rs_endpoint_path path,
			 const char *scheme, char *err, size_t size)
{
	const char *unix_prefix = "unix://", *given = text;
	CURLU *u;
	int rc;

	if (strncmp(text, unix_prefix, strlen(unix_prefix)) == 0) {
		e->conf.unix_path = text + strlen(unix_prefix);
		e->target = text;
		text = "http://localhost";
	}
	u = curl_url();
	rc = u ? parse_url(e, u, text, path, scheme) : -ENOMEM;
	curl_url_cleanup(u);
	if (rc)
		return bad_endpoint(e, given, err, size,
				    "it is written http://HOST:PORT, https://… or unix:///PATH");
	if (strncmp(e->url, "http://", 7) && strncmp(e->url, "https://", 8))
		return bad_endpoint(e, given, err, size, "only http, https and unix are known");
	return 0;
}

int rs_exporter_default_endpoint(struct rs_exporter *e, char *err, size_t size)
{
	const char *text = e->asked	      ? e->asked
			   : e->cfg->endpoint ? e->cfg->endpoint
					      : e->ops->endpoint;

	if (text)
		return rs_exporter_endpoint(e, text, RS_PATH_AUTO, "http", err, size);
	snprintf(err, size, "exporter %s: where to? give --endpoint", e->ops->name);
	return -EINVAL;
}
