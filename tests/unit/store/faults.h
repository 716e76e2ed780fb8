/* Faults between the store and its database, at any statement: the test is linked with
 * --wrap=db_execute,--wrap=db_commit. */
#ifndef FAULTS_H
#define FAULTS_H

#include <stdbool.h>

enum fault {
	FAULT_NONE,
	FAULT_STATEMENT,     /* the statement fails: the transaction is rolled back */
	FAULT_COMMIT,        /* the commit fails: likewise */
	FAULT_COMMIT_ANSWER, /* the commit is made, its answer lost */
};
/* Of the next such calls the `at`th (from 1) fails; it is used once. */
void fault_set(enum fault fault, int at);
/* Whether it happened since; takes it back if not. */
bool fault_take(void);

#endif
