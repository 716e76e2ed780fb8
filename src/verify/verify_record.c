/* Checks evidence records and the given files that they cover. */
#include "base/file.h"
#include "verify/verify_check.h"

#define FACTS_MAX ((size_t)16 << 20)
#define CHUNK_SIZE ((size_t)64 * 1024)

static int digest_open(const struct input *input, int file, struct digest_stream *digest,
                       struct error *error)
{
	char chunk[CHUNK_SIZE];
	for (uint64_t at = 0; at < input->sum.size_bytes;) {
		uint64_t left = input->sum.size_bytes - at;
		size_t size = left < sizeof chunk ? (size_t)left : sizeof chunk;
		if (!file_read_at(file, chunk, size, input->offset + at))
			return error_cause(error, ERR_IO, "read error");
		digest_add(digest, chunk, size);
		at += size;
	}
	return OK;
}

static int digest_file(const struct input *input, enum digest_algorithm algorithm,
                       struct digest *ret_digest, struct error *error)
{
	DESCRIPTOR_AUTO int fd = -1;
	int result = verify_open_file(input, &fd, error);
	struct digest_stream *digest = result ? NULL : digest_begin_by(algorithm);
	if (!result && !digest)
		result = error_cause(error, ERR_NO_MEMORY, "digesting a file");
	if (!result)
		result = digest_open(input, fd, digest, error);
	if (result) {
		digest_cancel(digest);
		return result;
	}
	*ret_digest = digest_end_by(digest);
	return OK;
}

/* Computes the digests by the algorithms that the record needs. Each is computed once for all
 * records. */
static int digest_data(struct run *run, struct input *input, const struct evidence_record *record,
                       struct digest digests[DIGEST_ALGORITHM_COUNT], struct error *error)
{
	int result = OK;
	digests[DIGEST_SHA256] = digest_of_sha256(&input->sum.sha256);
	for (int i = DIGEST_SHA256 + 1; i < DIGEST_ALGORITHM_COUNT && !result; i++) {
		if (!evidence_record_uses_digest(record, (enum digest_algorithm)i))
			continue;
		if (!input->digested[i]) {
			result = digest_file(input, (enum digest_algorithm)i, &input->digests[i], error);
			input->digested[i] = !result;
			run->digested_files++;
		}
		digests[i] = input->digests[i];
	}
	return result;
}

static int note_record(struct run *run, const struct input *input,
                       const struct evidence_facts *facts, struct verify_record **ret_record)
{
	int result = OK;
	for (size_t i = 0; i < facts->stamp_count && !result; i++)
		result = verify_note_timestamp(run, &facts->stamps[i].timestamp, facts->stamps[i].path);
	struct verify_record *made = result ? NULL : arena_alloc(&run->result->arena, sizeof *made);
	if (!made)
		return ERR_NO_MEMORY;
	*made = (struct verify_record){.path = input->path, .facts = *facts};
	if (run->result->last_record)
		run->result->last_record->next = made;
	else
		run->result->records = made;
	run->result->last_record = made;
	*ret_record = made;
	return OK;
}

static int note_covered(struct run *run, struct verify_record *record, struct input *data)
{
	struct verify_covered *covered = arena_alloc(&run->result->arena, sizeof *covered);
	if (!covered)
		return ERR_NO_MEMORY;
	covered->path = data->path;
	struct verify_covered **end = &record->covers;
	while (*end)
		end = &(*end)->next;
	*end = covered;
	data->covered = true;
	if (data->covered_since_us == TIME_NONE ||
	    data->covered_since_us > record->facts.exists_since_us)
		data->covered_since_us = record->facts.exists_since_us;
	return OK;
}

static bool is_member(const struct input *record, const struct input *data)
{
	return record->is_containers_record && data->container == record->container && data != record;
}

/* Each container is checked separately, which avoids quadratic work. */
static bool is_in_other_container(const struct input *record, const struct input *data)
{
	return record->is_containers_record && data->container && data->container != record->container;
}

/* Compares the members of the group one to one: a copy of a file does not replace another one. */
static int check_copies(const struct run *run, const struct input *input, size_t covered,
                        const struct input *data, struct error *error)
{
	size_t found = 0;
	for (size_t i = 0; i < run->input_count; i++)
		found += is_member(input, &run->inputs[i]) &&
		         sha256_equal(&run->inputs[i].sum.sha256, &data->sum.sha256);
	return found == covered
	           ? OK
	           : finding_fail(error, FINDING_CONTAINER_COPIES, found, data->path, covered);
}

/* Returns 1 if the record covers the file and is valid, 0 if it covers other files only. */
static int check_data(struct run *run, const struct input *input,
                      const struct evidence_record *record, struct input *data,
                      struct verify_record **noted, struct error *error)
{
	struct digest digests[DIGEST_ALGORITHM_COUNT] = {0};
	int result = digest_data(run, data, record, digests, error);
	size_t covered = result ? 0 : evidence_record_covers(record, digests);
	if (covered == 0)
		return result;
	data->covered = true;
	if (is_member(input, data))
		result = check_copies(run, input, covered, data, error);
	if (result)
		return result;
	struct evidence_query question = {
		.roots_pem = run->roots.timestamps, .at_us = run->result->at_us, .tolerant = true};
	struct evidence_facts facts;
	ARENA_AUTO struct arena
		scratch; /* the result is reported once, although it is computed for each file */
	arena_init(&scratch, FACTS_MAX);
	result = evidence_record_verify(record, digests, &question,
	                                *noted ? &scratch : &run->result->arena, &facts, error);
	if (!result && verify_is_later(run, facts.exists_since_us))
		return finding_fail_as(error, ERR_NOT_FOUND, FINDING_RECORD_NOT_YET);
	if (!result && !*noted)
		result = note_record(run, input, &facts, noted);
	if (!result)
		result = note_covered(run, *noted, data);
	return result ? result : 1;
}

static int check_inputs(struct run *run, struct input *input, const struct evidence_record *record)
{
	struct verify_record *noted = NULL;
	bool covers = false;
	size_t members = 0; /* members of its container */
	for (size_t i = 0; i < run->input_count; i++) {
		struct input *data = &run->inputs[i];
		struct error error = {0};
		bool member = is_member(input, data);
		if (data == input || data->unread || (data->kind == INPUT_RECORD && !member) ||
		    is_in_other_container(input, data))
			continue;
		int result = check_data(run, input, record, data, &noted, &error);
		members += member;
		if (member && result == 0)
			verify_add(run, VERIFY_WRONG, data->path, "", FINDING_CONTAINER_NOT_COVERED);
		covers |= result == 1 || result == ERR_INVALID_EVIDENCE;
		if (result < 0)
			result =
				verify_add_error(run, input->path, "", FINDING_RECORD_NOT_VALID, result, &error);
		if (result < 0)
			return result;
	}
	if (!covers)
		verify_add(run, VERIFY_UNCHECKED, input->path, "", FINDING_RECORD_DATA_NOT_GIVEN);
	if (input->is_containers_record && members != evidence_record_group_size(record))
		verify_add(run, VERIFY_WRONG, input->path, "", FINDING_CONTAINER_COVERED_COUNT,
		           evidence_record_group_size(record), members);
	return OK;
}

int verify_record(struct run *run, struct input *input)
{
	EVIDENCE_RECORD_AUTO struct evidence_record *record = NULL;
	BUF_AUTO struct buf der;
	struct error error = {0};
	buf_init(&der, EVIDENCE_RECORD_MAX);
	run->result->checked.records++;
	int result = verify_load_input(input, &der, &error);
	if (!result)
		result = evidence_record_parse(buf_slice(&der), &record, &error);
	return result ? verify_add_error(run, input->path, "", FINDING_RECORD_MALFORMED, result, &error)
	              : check_inputs(run, input, record);
}
