/* What gated feed-forward parts apply to their gate. */
#ifndef LMC_ACTIVATIONS_H
#define LMC_ACTIVATIONS_H
#include "elements.h"

enum { SILU = 0, GELU_TANH = 1 }; /* GELU with the tanh approximation */

static inline vector sigmoid(vector x) {
    ivector positive = x > broadcast(0);
    vector decay = exponential(choose(positive, -x, x)); /* of -|x| */
    return choose(positive, broadcast(1.0f), decay) / (decay + 1.0f);
}

static inline vector activate(vector x, int activation) {
    if (activation == SILU) return x * sigmoid(x);
    vector inner = (x + x * x * x * 0.044715f) * 1.5957691216f; /* 2 sqrt(2 / pi) */
    return x * sigmoid(inner);                                  /* (1 + tanh(y)) / 2 = sigmoid(2 y) */
}
#endif
