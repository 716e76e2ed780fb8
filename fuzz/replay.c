/* Runs a fuzz target once for each file of a directory, which makes its corpus an ordinary test. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

#define FILE_SIZE_MAX ((size_t)4 * 1024 * 1024)

static int replay_file(const char *folder, const char *name)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	FILE *file = fopen(path, "rb");
	uint8_t *data = malloc(FILE_SIZE_MAX);
	if (!file || !data) {
		perror(path);
		return -1;
	}
	size_t size = fread(data, 1, FILE_SIZE_MAX, file);
	fclose(file);
	/* A buffer of exactly the input's size lets the address sanitizer detect reads beyond it. */
	uint8_t *input = malloc(size ? size : 1);
	if (!input)
		return -1;
	memcpy(input, data, size);
	free(data);
	printf("%s\n", path);
	fflush(stdout);
	LLVMFuzzerTestOneInput(input, size);
	free(input);
	return 0;
}

int main(int argc, char **argv)
{
	int count = 0;
	DIR *folder = argc == 2 ? opendir(argv[1]) : NULL;
	if (!folder) {
		fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
		return 2;
	}
	for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
		if (entry->d_name[0] == '.')
			continue;
		if (replay_file(argv[1], entry->d_name) != 0)
			return 1;
		count++;
	}
	closedir(folder);
	if (count == 0)
		fprintf(stderr, "%s is empty\n", argv[1]);
	return count == 0;
}
