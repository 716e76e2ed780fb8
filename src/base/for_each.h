/* A macro that repeats another one for each of its arguments. */
#ifndef BASE_FOR_EACH_H
#define BASE_FOR_EACH_H

/* FOR_EACH(EACH, struct account_record, name, balance) expands to EACH(struct account_record, name)
 * EACH(struct account_record, balance), for up to 81 arguments after the common one. */
/* clang-format off */
#define FOR_EACH(each, common, ...) FOR_EACH_81(FOR_EACH_NEXT(each, common, __VA_ARGS__))
#define FOR_EACH_81(...) FOR_EACH_27(FOR_EACH_27(FOR_EACH_27(__VA_ARGS__)))
#define FOR_EACH_27(...) FOR_EACH_9(FOR_EACH_9(FOR_EACH_9(__VA_ARGS__)))
#define FOR_EACH_9(...) FOR_EACH_3(FOR_EACH_3(FOR_EACH_3(__VA_ARGS__)))
#define FOR_EACH_3(...) FOR_EACH_1(FOR_EACH_1(FOR_EACH_1(__VA_ARGS__)))
#define FOR_EACH_1(...) __VA_ARGS__
#define FOR_EACH_NEXT(each, common, argument, ...)                                                 \
	each(common, argument) __VA_OPT__(FOR_EACH_AGAIN FOR_EACH_NONE (each, common, __VA_ARGS__))
#define FOR_EACH_AGAIN() FOR_EACH_NEXT
#define FOR_EACH_NONE ()
/* clang-format on */

#endif
