/* Passkeys in the console: the forms that the browser's authenticator fills in
 * (assets/passkeys.js).
 *
 * A challenge is asked for when the button is pressed, is bound to the browser's cookie (a
 * session's, or that of a browser that is not signed in) and counts once (service/people.h). */
#ifndef CONSOLE_PASSKEYS_H
#define CONSOLE_PASSKEYS_H

#include "console/visit.h"

/* Where passkeys work: the origin that is written in them; NULL: nowhere. */
const char *passkeys_origin(const struct visit *visit);

/* Answers of forms. What the authenticator is to be asked, as JSON. */
int passkey_challenge(struct visit *visit) MUST_CHECK;
/* Signs in; in an open session, as its user, afresh. */
int passkey_enter(struct visit *visit) MUST_CHECK;
int passkey_add(struct visit *visit) MUST_CHECK;

#endif
