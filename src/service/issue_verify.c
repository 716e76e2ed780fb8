#include "proof/verify.h"
#include "service/issue_work.h"

static int tell(void *context, const char *path, uint64_t done, uint64_t total)
{
	return issue_progress(context, (int64_t)done, total > 0 ? (int64_t)total : 1);
}

static int not_valid(const struct verify_result *found, struct error *error)
{
	const struct verify_finding *finding = found->first;
	while (finding && finding->severity == VERIFY_WARNING)
		finding = finding->next;
	const char *slash = finding ? strrchr(finding->path, '/') : NULL;
	return error_cause(error, ERR_INVALID_EVIDENCE, "what was made does not verify: %s %s: %s",
	                   slash ? slash + 1 : "", finding ? finding->where : "",
	                   finding ? finding->what : "nothing says why");
}

int issue_verify(struct issue_work *work, const struct document *documents, size_t count,
                 struct error *error)
{
	const char **paths = arena_alloc(work->arena, count * sizeof *paths);
	if (!paths)
		return error_cause(error, ERR_NO_MEMORY, "%zu paths", count);
	for (size_t i = 0; i < count; i++) {
		paths[i] = arena_printf(work->arena, "%s/%s", work->directory, documents[i].name);
		if (!paths[i])
			return error_cause(error, ERR_NO_MEMORY, "%zu paths", count);
	}
	struct verify_options options = {
		.progress = tell, .progress_context = work, .stop_early = true};
	struct verify_result found;
	int result = verify_paths(paths, count, NULL, &options, &found, error);
	if (result)
		return result;
	if (verify_exit_code(&found) != 0)
		result = not_valid(&found, error);
	verify_result_free(&found);
	return result;
}
