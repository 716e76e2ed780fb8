/* Renews an evidence record with whatever timestamp authority answers, for the outside validators.
 *
 * usage: renew-record request RECORD [DATA]          the request, on standard output
 *        renew-record append RECORD [DATA] REPLY     the renewed record, on standard output
 *
 * With DATA, the data object, by hash tree and SHA-512; else by timestamp. In both, together with
 * other records that are renewed with the same token. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "seal/evidence_record.h"

static struct error error;

static void must(int result, const char *what)
{
	if (!result)
		return;
	fprintf(stderr, "%s: %s\n", what, error_reason(&error, result));
	exit(1);
}

static struct buf load(const char *path)
{
	struct buf content = {.limit = EVIDENCE_RECORD_MAX};
	must(file_read_whole(path, &content, &error), path);
	return content;
}

/* The record is the second of three; the other two are not known here. */
static void make_path(const struct digest *leaf, struct evidence_path *path)
{
	*path = (struct evidence_path){.leaf = *leaf, .count = 2};
	path->siblings[0] = digest_by(leaf->algorithm, "another record", 14);
	path->siblings[1] = digest_by(leaf->algorithm, "and one more", 12);
}

static void write_out(struct slice content)
{
	if (fwrite(content.data, 1, content.size, stdout) != content.size || fflush(stdout) != 0)
		exit(1);
}

int main(int argc, char **argv)
{
	bool append = argc > 1 && strcmp(argv[1], "append") == 0;
	if (argc < 3 + append || argc > 4 + append) {
		fprintf(stderr, "usage: renew-record (request|append) RECORD [DATA] [REPLY]\n");
		return 2;
	}
	struct buf der = load(argv[2]), data = {0}, out;
	struct evidence_record *record;
	must(evidence_record_parse(buf_slice(&der), &record, &error), argv[2]);
	bool hash_tree = argc == 4 + append;
	struct digest by_512, leaf;
	if (hash_tree) {
		data = load(argv[3]);
		by_512 = digest_by(DIGEST_SHA512, data.data, data.size);
	}
	const struct digest *new_data = hash_tree ? &by_512 : NULL;
	must(evidence_record_next_leaf(record, new_data, &leaf), "leaf");
	struct evidence_path path;
	make_path(&leaf, &path);
	buf_init(&out, EVIDENCE_RECORD_MAX);
	if (append) {
		struct buf reply = load(argv[argc - 1]);
		struct slice token;
		must(timestamp_response_token(buf_slice(&reply), &token, &error), argv[argc - 1]);
		must(evidence_record_renew(record, new_data, &path, token, &error), "renewal");
		must(evidence_record_write(record, &out), "record");
		buf_free(&reply);
	} else {
		struct digest root = evidence_path_root(&path);
		must(timestamp_request_over(&root, NULL, &out, &error), "request");
	}
	write_out(buf_slice(&out));
	buf_free(&out);
	buf_free(&data);
	buf_free(&der);
	evidence_record_free(record);
	return 0;
}
