/* What tokens do to states, as partial functions: a token's function maps each state that allows it to the one after
 * it. The function of a node of the trie is that of its parent followed by one byte. Equal functions are one, so the
 * work is one composition for each function and class of bytes, not one step for each node and state.
 *
 * Many states may go on alike: after the second byte of a character it does not matter which first byte there was. So a
 * function is a front, which maps states to fewer numbers, followed by where each number leads; what comes after is
 * composed with the latter. Front 0 maps every state to itself. Functions with different fronts may be equal. */
#ifndef LMC_FUNCTIONS_H
#define LMC_FUNCTIONS_H

#include "intern.h"

typedef struct {
    int64_t states;
    interner fronts; /* 1 + how many numbers, then pairs: state, ascending, and number; front 0 holds no pairs */
    interner all;    /* functions: front, then pairs: number, ascending, and the state it leads to */
    uint64_t *keys;  /* open addressing: function << 8 | class of bytes, all ones where there is none */
    int32_t *followed; /* the function of a key followed by the class, or DEAD */
    int64_t key_count, key_size;
    int32_t *numbers; /* [states] scratch */
    int64_t work;     /* pairs looked at */
} functions;

#endif
