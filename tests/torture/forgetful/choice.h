/* What a power cut keeps of unsynced data: chances drawn from a seed. */
#ifndef FORGETFUL_CHOICE_H
#define FORGETFUL_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

struct choice {
	uint64_t state;
	unsigned kept_percent; /* 0: all that was not synced is forgotten */
};

static inline uint64_t choice_next(struct choice *choice)
{
	/* SplitMix64 */
	uint64_t z = choice->state += 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* From 0 to bound - 1. */
static inline uint64_t choice_below(struct choice *choice, uint64_t bound)
{
	return choice_next(choice) % bound;
}

static inline bool choice_keep(struct choice *choice)
{
	return choice_below(choice, 100) < choice->kept_percent;
}

#endif
