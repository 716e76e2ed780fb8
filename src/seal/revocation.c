#include "seal/revocation.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>

#include "seal/certificate.h"
#include "seal/revocation_data.h"

struct text_of_outcome {
	const char *text;
	int rank; /* the higher rank wins */
	bool suffices;
};
static const struct text_of_outcome outcomes[] = {
	[REVOCATION_UNPUBLISHED] = {"nothing published", 0, false},
	[REVOCATION_MISSING] = {"missing", 1, false},
	[REVOCATION_UNKNOWN] = {"unknown to its responder", 2, false},
	[REVOCATION_TOO_OLD] = {"too old", 3, false},
	[REVOCATION_GOOD_CURRENT] = {"good as of an earlier time", 4, true},
	[REVOCATION_GOOD_AFTER] = {"good", 5, true},
	[REVOCATION_REVOKED] = {"revoked", 6, false},
	[REVOCATION_NOT_NEEDED] = {"not needed", 7, true},
};

const char *revocation_outcome_text(enum revocation_outcome outcome)
{
	return outcomes[outcome].text;
}

bool revocation_is_sufficient(enum revocation_outcome outcome)
{
	return outcomes[outcome].suffices;
}

/* Returns whether the reason excludes a compromised key (RFC 3161 section 4). A missing reason does
 * not. */
static bool excludes_compromise(int reason)
{
	return reason == CRL_REASON_UNSPECIFIED || reason == CRL_REASON_AFFILIATION_CHANGED ||
	       reason == CRL_REASON_SUPERSEDED || reason == CRL_REASON_CESSATION_OF_OPERATION;
}

static enum revocation_outcome outcome_of(const struct revocation_facts *facts,
                                          const struct revocation_moment *at)
{
	switch (facts->status) {
	case REVOCATION_STATUS_NONE: return REVOCATION_UNKNOWN;
	case REVOCATION_STATUS_REVOKED:
		if (facts->revoked_us <= at->time_us ||
		    (at->is_self_dated && !excludes_compromise(facts->reason)))
			return REVOCATION_REVOKED;
		break;
	case REVOCATION_STATUS_GOOD: break;
	}
	if (facts->issued_us >= at->time_us)
		return REVOCATION_GOOD_AFTER;
	return facts->next_us != TIME_NONE && facts->next_us >= at->time_us ? REVOCATION_GOOD_CURRENT
	                                                                    : REVOCATION_TOO_OLD;
}

static void explain(struct revocation_verdict *verdict, const char *cause)
{
	snprintf(verdict->cause, sizeof verdict->cause, "%s", cause);
}

static bool knows_nothing(const struct revocation_verdict *verdict)
{
	return verdict->outcome == REVOCATION_MISSING || verdict->outcome == REVOCATION_UNPUBLISHED;
}

/* Takes the facts into the verdict if they outrank it. Data issued after the certificate's end may
 * no longer list a revocation, so it cannot show that the certificate is good. */
static void consider(const struct revocation_facts *facts, const struct revocation_moment *at,
                     const struct sha256 *object, struct revocation_verdict *verdict)
{
	enum revocation_outcome outcome = outcome_of(facts, at);

	if (outcome != REVOCATION_REVOKED && facts->issued_us > verdict->certificate.not_after_us) {
		if (knows_nothing(verdict))
			explain(verdict, "the data was issued after the certificate's end");
		return;
	}
	int gain = outcomes[outcome].rank - outcomes[verdict->outcome].rank;
	if (gain < 0 || (gain == 0 && facts->issued_us <= verdict->issued_us))
		return;
	verdict->outcome = outcome;
	verdict->object = *object;
	verdict->issued_us = facts->issued_us;
	verdict->next_us = facts->next_us;
	verdict->revoked_us = facts->revoked_us;
	verdict->reason = facts->reason;
	verdict->cause[0] = '\0';
}

static int judge(X509 *certificate, X509 *issuer, const struct validation_set *set,
                 const struct revocation_moment *at, bool crls_only,
                 struct revocation_verdict *verdict, struct error *error);

/* Finds out whether a responder that can be revoked is good; only CRLs count for this. */
static int consider_responder(X509 *responder, X509 *issuer, const struct validation_set *set,
                              const struct revocation_moment *at, bool *ret_good,
                              struct error *error)
{
	struct revocation_verdict verdict;
	int result = judge(responder, issuer, set, at, true, &verdict, error);

	if (!result)
		*ret_good = revocation_is_sufficient(verdict.outcome);
	return result;
}

static int consider_object(const struct validation_object *object, X509 *certificate, X509 *issuer,
                           const struct validation_set *set, const struct revocation_moment *at,
                           struct revocation_verdict *verdict, struct error *error)
{
	struct revocation_facts facts;
	struct error reason = {0};
	X509 *responder = NULL;
	bool counts = true;
	int result =
		object->kind == VALIDATION_CRL
			? revocation_check_crl(object->der, certificate, issuer, &facts, &reason)
			: revocation_check_ocsp(object->der, certificate, issuer, &facts, &responder, &reason);

	if (!result && responder) {
		result = consider_responder(responder, issuer, set, at, &counts, error);
		if (!result && !counts && knows_nothing(verdict))
			explain(verdict, "it is not known whether the OCSP responder itself was revoked");
	}
	X509_free(responder);
	if (!result && counts)
		consider(&facts, at, &object->sha256, verdict);
	if (result == ERR_INVALID_EVIDENCE && knows_nothing(verdict))
		explain(verdict, reason.cause);
	return result == ERR_NO_MEMORY ? result : OK;
}

static int begin(X509 *certificate, struct revocation_verdict *verdict, struct error *error)
{
	struct revocation_sources *sources = OPENSSL_malloc(sizeof *sources);

	*verdict = (struct revocation_verdict){.outcome = REVOCATION_MISSING,
	                                       .issued_us = TIME_NONE,
	                                       .next_us = TIME_NONE,
	                                       .revoked_us = TIME_NONE,
	                                       .reason = REVOCATION_REASON_NONE};
	int result = sources ? revocation_sources(certificate, sources, error) : ERR_NO_MEMORY;
	if (!result && sources->ocsp.count + sources->crl.count == 0) {
		verdict->outcome = REVOCATION_UNPUBLISHED;
		explain(verdict, sources->others > 0
		                     ? "the certificate names no HTTP source of revocation data"
		                     : "the certificate names no source of revocation data");
	}
	OPENSSL_free(sources);
	return result ? result : certificate_describe(certificate, &verdict->certificate, error);
}

static int judge(X509 *certificate, X509 *issuer, const struct validation_set *set,
                 const struct revocation_moment *at, bool crls_only,
                 struct revocation_verdict *verdict, struct error *error)
{
	int result = begin(certificate, verdict, error);

	for (size_t i = 0; !result && i < set->count; i++) {
		const struct validation_object *object = &set->objects[i];
		if (object->kind == VALIDATION_CRL || (object->kind == VALIDATION_OCSP && !crls_only))
			result = consider_object(object, certificate, issuer, set, at, verdict, error);
	}
	return result;
}

/* Checks that `issuer` issued `certificate`. A self-signed certificate need not be a certification
 * authority. */
static int check_issue(X509 *issuer, X509 *certificate, struct error *error)
{
	ERR_clear_error();
	if ((issuer == certificate || X509_check_issued(issuer, certificate) == X509_V_OK) &&
	    X509_verify(certificate, X509_get0_pubkey(issuer)) == 1)
		return OK;
	return openssl_failure(error, "a certificate of the path was not issued by the next one");
}

static int judge_topmost(X509 *certificate, struct revocation_verdict *verdict, struct error *error)
{
	int result = begin(certificate, verdict, error);

	if (result)
		return result;
	if (X509_get_extension_flags(certificate) & EXFLAG_SS) {
		verdict->outcome = REVOCATION_NOT_NEEDED;
		verdict->cause[0] = '\0';
		return check_issue(certificate, certificate, error);
	}
	verdict->outcome = REVOCATION_MISSING;
	explain(verdict, "the certificate of its issuer is not known");
	return OK;
}

int revocation_judge(struct slice path_pem, const struct validation_set *set,
                     const struct revocation_moment *at,
                     struct revocation_verdict ret_verdicts[REVOCATION_PATH_MAX], size_t *ret_count,
                     struct error *error)
{
	CERTIFICATES_AUTO STACK_OF(X509) *path = NULL;
	int result = certificates_read(path_pem, &path, error);
	int count = !result ? sk_X509_num(path) : 0;

	if (count > REVOCATION_PATH_MAX)
		result = error_cause(error, ERR_VALIDATION, "the path has %d certificates", count);
	for (int i = 0; !result && i + 1 < count; i++) {
		X509 *certificate = sk_X509_value(path, i);
		X509 *issuer = sk_X509_value(path, i + 1);
		result = check_issue(issuer, certificate, error);
		if (!result)
			result = judge(certificate, issuer, set, at, false, &ret_verdicts[i], error);
	}
	if (!result)
		result = judge_topmost(sk_X509_value(path, count - 1), &ret_verdicts[count - 1], error);
	if (!result)
		*ret_count = (size_t)count;
	return result;
}

const struct revocation_verdict *revocation_find_insufficient(
	const struct revocation_verdict *verdicts, size_t count)
{
	const struct revocation_verdict *insufficient = NULL;

	for (size_t i = 0; i < count; i++) {
		if (verdicts[i].outcome == REVOCATION_REVOKED)
			return &verdicts[i];
		if (!insufficient && !revocation_is_sufficient(verdicts[i].outcome))
			insufficient = &verdicts[i];
	}
	return insufficient;
}
