/* What this service says of a file that it may have issued, or may not. */
#include <limits.h>
#include <stdio.h>

#include "base/durable.h"
#include "proof/verifier.h"
#include "seal/authority.h"
#include "seal/signer.h"
#include "service/signers.h"
#include "service/timestamp_roots.h"

int service_trust(struct service *service, struct buf *out, struct error *error)
{
	buf_add_slice(out, signer_trust(service->signer));
	authorities_trust(service->authorities, out);
	int result = signers_add_roots(service->store, out, error);
	if (!result)
		result = timestamp_roots_add(service->store, out, error);
	return result ? result : buf_check(out);
}

int service_write_trust(struct service *service, struct error *error)
{
	BUF_AUTO struct buf roots;
	buf_init(&roots, SERVICE_TRUST_MAX);
	int result = service_trust(service, &roots, error);
	if (result)
		return result;
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s/trust.pem", service->settings->service_data_dir);
	return durable_replace(path, 0644, buf_slice(&roots), error);
}

int service_check_file(struct service *service, int file, struct buf *out, struct error *error)
{
	BUF_AUTO struct buf roots;
	buf_init(&roots, SERVICE_TRUST_MAX);
	int result = service_trust(service, &roots, error);
	return result ? result : verifier_check(file, buf_slice(&roots), out, error);
}
