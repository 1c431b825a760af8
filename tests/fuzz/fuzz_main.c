// SPDX-License-Identifier: Apache-2.0
/* Runs a fuzz target over the files in the directories named on the command line. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "fuzz.h"

static int run_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	struct stat st;
	uint8_t *data;
	size_t n;

	if (!f || fstat(fileno(f), &st) || !S_ISREG(st.st_mode)) {
		if (f)
			fclose(f);
		return 0;
	}
	/* Exactly as large as the input: a read behind it is found. */
	data = malloc(st.st_size ? (size_t)st.st_size : 1);
	n = data ? fread(data, 1, (size_t)st.st_size, f) : 0;
	fclose(f);
	LLVMFuzzerTestOneInput(data, n);
	free(data);
	return 1;
}

int main(int argc, char **argv)
{
	int runs = 0;

	for (int i = 1; i < argc; i++) {
		DIR *dir = opendir(argv[i]);
		const struct dirent *e;
		char path[4096];

		if (!dir)
			continue;
		while ((e = readdir(dir)) != NULL) {
			snprintf(path, sizeof(path), "%s/%s", argv[i], e->d_name);
			fflush(stdout);
			runs += run_file(path);
		}
		closedir(dir);
	}
	printf("%d inputs replayed\n", runs);
	return 0;
}
