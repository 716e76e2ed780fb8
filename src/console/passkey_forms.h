/* Passkeys in the console: forms that the browser's authenticator fills in (assets/passkeys.js).
 *
 * A challenge is requested when the button is pressed. It is bound to the browser's cookie (of the
 * session, or of a browser that is not signed in) and is valid once (service/user_auth.h). */
#ifndef CONSOLE_PASSKEY_FORMS_H
#define CONSOLE_PASSKEY_FORMS_H

#include "console/visit.h"

/* Returns the origin for which passkeys are created and accepted; NULL: passkeys do not work. */
const char *passkeys_origin(const struct visit *visit);

/* Form handlers. Answers with the request to the authenticator as JSON. */
int passkey_challenge(struct visit *visit) MUST_CHECK;
/* Signs in; in an existing session, renews the sign-in of its user. */
int passkey_sign_in(struct visit *visit) MUST_CHECK;
int passkey_add(struct visit *visit) MUST_CHECK;

#endif
