// SPDX-License-Identifier: Apache-2.0
#include "stream.h"

#include <errno.h>

/* Bytes of a window per class, and how many there may be: 16 + 16 + 8 MB at the very most. */
static const struct {
	uint32_t cap, max;
} classes[RS_WINDOW_CLASSES] = {
	{ 1024, 16384 },
	{ 8192, 2048 },
	{ RS_WINDOW_MAX, 128 },
};

void rs_windows_init(struct rs_windows *w)
{
	for (unsigned i = 0; i < RS_WINDOW_CLASSES; i++)
		rs_pool_init(&w->pool[i], sizeof(struct rs_window) + classes[i].cap,
			     classes[i].max);
}

void rs_windows_release(struct rs_windows *w)
{
	for (unsigned i = 0; i < RS_WINDOW_CLASSES; i++)
		rs_pool_release(&w->pool[i]);
}

/* A window for `need` bytes: of the smallest class that has one. */
static struct rs_window *get_window(struct rs_windows *w, size_t need)
{
	for (uint32_t i = 0; i < RS_WINDOW_CLASSES; i++) {
		struct rs_window *win;

		if (classes[i].cap < need)
			continue;
		win = rs_pool_get(&w->pool[i]);
		if (win) {
			*win = (struct rs_window){ .cap = classes[i].cap, .cls = i };
			return win;
		}
	}
	return NULL;
}

int rs_stream_hold(struct rs_stream *s, struct rs_windows *w, struct str bytes)
{
	struct rs_window *win = s->win;
	size_t have = win ? win->len : 0;

	if (!bytes.len)
		return 0;
	if (bytes.len > RS_WINDOW_MAX - have)
		return -EMSGSIZE;
	if (!win || have + bytes.len > win->cap) {
		struct rs_window *bigger = get_window(w, have + bytes.len);

		if (!bigger)
			return -ENOMEM;
		if (win) {
			memcpy(bigger->data, win->data + win->pos, have);
			bigger->len = win->len;
			bigger->first_ns = win->first_ns;
			bigger->first_seq = win->first_seq;
			rs_pool_put(&w->pool[win->cls], win);
		}
		s->win = win = bigger;
	} else if (win->pos + have + bytes.len > win->cap) {
		memmove(win->data, win->data + win->pos, have);
		win->pos = 0;
	}
	memcpy(win->data + win->pos + have, bytes.ptr, bytes.len);
	win->len += (uint32_t)bytes.len;
	return 0;
}

void rs_stream_drop(struct rs_stream *s, struct rs_windows *w, size_t n)
{
	struct rs_window *win = s->win;

	if (!win)
		return;
	if (n < win->len) {
		win->pos += (uint32_t)n;
		win->len -= (uint32_t)n;
		return;
	}
	s->win = NULL;
	rs_pool_put(&w->pool[win->cls], win);
}
