/* Sequences of numbers, equal ones kept once. */
#ifndef LMC_INTERN_H
#define LMC_INTERN_H

#include <stdint.h>

typedef struct {
    int32_t *words;   /* all sequences, one after the other */
    int64_t *starts;  /* [count + 1] */
    uint64_t *hashes; /* [count] */
    int64_t count, room, word_room;
    int32_t *slots; /* open addressing by hash: the number of a sequence, or -1 */
    int64_t slot_count;
} interner;

/* Whether there was memory for it. What was begun is freed by the caller in any case. */
int intern_begin(interner *all);

void intern_free(interner *all);

/* Room for so many words behind the last sequence; null: no memory. The words may have moved. */
int32_t *intern_reserve(interner *all, int64_t words);

/* The number of the sequence of so many words that was written where `intern_reserve` said: that of an equal one if
 * there is one, else a new one. -2: no memory. */
int32_t intern_add(interner *all, int64_t words);

#endif
