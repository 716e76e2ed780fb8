/* Determines from a trusted list which signers and authorities were qualified. */
#include <stdlib.h>

#include "verify/verify_check.h"

static size_t add_questions(const struct verify_identities *list, bool seal,
                            struct list_question *questions, size_t count)
{
	for (const struct verify_identity *at = list->first; at; at = at->next)
		questions[count++] =
			(struct list_question){seal, at->first_gen_time_us, at->last_gen_time_us, at->path};
	return count;
}

static size_t take_answers(struct verify_identities *list, struct list_answer *answers,
                           size_t count)
{
	for (struct verify_identity *at = list->first; at; at = at->next) {
		char *texts[] = {answers[count].reason, answers[count].provider, answers[count].service};
		for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
			verify_make_visible(texts[i]);
		at->listed = &answers[count++];
	}
	return count;
}

static int ask(struct run *run, struct list_question *questions)
{
	struct verify_result *result = run->result;
	const struct verify_options *options = run->options;
	size_t count = add_questions(&result->signers, true, questions, 0);
	count = add_questions(&result->authorities, false, questions, count);
	struct list_answer *answers = arena_alloc(&result->arena, (count + 1) * sizeof *answers);
	struct list_facts *facts = arena_alloc(&result->arena, sizeof *facts);
	struct error error = {0};
	if (!answers || !facts)
		return ERR_NO_MEMORY;
	int status = trusted_list_query(options->trusted_list, options->trusted_list_roots,
	                                result->at_us, questions, count, answers, facts, &error);
	if (status == ERR_NO_MEMORY)
		return status;
	if (status) {
		verify_add_cause(run, VERIFY_UNCHECKED, options->trusted_list, "", FINDING_LIST_NOT_USABLE,
		                 error.cause);
		return 0;
	}
	char *texts[] = {facts->territory, facts->operator_name, facts->signer};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		verify_make_visible(texts[i]);
	result->list = facts;
	take_answers(&result->authorities, answers, take_answers(&result->signers, answers, 0));
	return 0;
}

int verify_qualified(struct run *run)
{
	size_t most = run->result->signers.count + run->result->authorities.count + 1;
	struct list_question *questions = calloc(most, sizeof *questions);
	int result = questions ? ask(run, questions) : ERR_NO_MEMORY;
	free(questions);
	return result;
}
