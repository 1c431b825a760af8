// SPDX-License-Identifier: Apache-2.0
/*
 * Conversations from standard input through l7; their messages as text (tests/lib/drive.h) to standard
 * output, each followed by a line "==". Input, binary: side ('Q' to the server, 'A' to the client, 'X' the
 * connection ends), then the length of the bytes that follow (32 bits, little-endian).
 * Each conversation is fed three times: whole, byte by byte, in pieces of seven bytes; what differs is
 * printed after "pieces differ:".
 */
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>

#include "drive.h"

struct segment {
	char side;
	size_t len;
	char *bytes;
};

static void play(struct drive *d, const struct segment *s, size_t n, size_t piece)
{
	drive_again(d);
	for (size_t i = 0; i < n; i++) {
		enum drive_side side = s[i].side == 'Q' ? TO_SERVER : TO_CLIENT;
		struct str bytes = { s[i].bytes, s[i].len };

		for (size_t at = 0; at < bytes.len; at += piece)
			drive_send(d, side, str_at(bytes, at, piece));
	}
	drive_close(d, RS_CLOSE_ALL);
}

int main(void)
{
	static struct segment segs[4096];
	struct drive d, pieces;
	size_t n = 0;
	int side;

	drive_init(&d);
	drive_init(&pieces);
	while ((side = getchar()) != EOF) {
		uint32_t len;

		if (fread(&len, sizeof(len), 1, stdin) != 1 || n == sizeof(segs) / sizeof(segs[0]))
			return 2;
		len = le32toh(len);
		if (side != 'X') {
			segs[n] = (struct segment){ (char)side, len, malloc(len ? len : 1) };
			if (!segs[n].bytes || fread(segs[n].bytes, 1, len, stdin) != len)
				return 2;
			n++;
			continue;
		}
		play(&d, segs, n, SIZE_MAX / 2);
		fputs(d.text, stdout);
		for (size_t piece = 1; piece <= 7; piece += 6) {
			play(&pieces, segs, n, piece);
			if (strcmp(d.text, pieces.text) != 0)
				printf("pieces differ: %zu\n%s", piece, pieces.text);
		}
		puts("==");
		while (n)
			free(segs[--n].bytes);
	}
	drive_release(&d);
	drive_release(&pieces);
	return 0;
}
